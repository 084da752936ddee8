# ---
# jupyter:
#   deep_learning_cases:
#     graded_run: false
# ---

# %% [markdown]
# # How long does one answer take?
#
# A colleague has timed the network once. "0.02 milliseconds. Put it on the slide." You have
# 45 minutes, a laptop and a doubt. At the end you will know what that number was a number
# *of*, and you will have a record that somebody else can check.
#
# | graded here | points |
# |---|---|
# | `latency.json`: the batches, trials and boundaries of your plan, sums that add up | 3 |
# | your report to a colleague, read by a person | 4 |
#
# Nobody grades milliseconds: they belong to your machine. Predictions are not graded either.
# Write them down before you run the next cell, or the numbers cannot surprise you.

# %% locked="setup_measure"
import copy
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt

from deep_learning_cases import cases, latency_case, latency_engine, stats, timing
from deep_learning_cases.notebook_figures import show

EVIDENCE = Path("evidence")
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def plain_log(axis):
    """A logarithmic axis with labels such as 0.02 and 0.5 instead of powers of ten."""
    axis.set_major_formatter("{x:g}")


# %% [markdown]
# ## One reading
#
# The network is small: 18,154 parameters, written in NumPy, one picture of 8 by 8 pixels in,
# ten numbers out. The next cell asks it the same question twenty times and reads the clock
# around each call.
#
# Predict: by what factor will the slowest of the twenty differ from the fastest? And which
# one will be the slowest?

# %% locked="twenty_readings" measures=true
with latency_engine.opened("numpy", None, 1729, 1, "cpu") as network:
    (picture,) = latency_engine.draw_inputs(1, 1, 1729, fresh=False)
    readings_ms = []
    for _ in range(20):
        start = time.perf_counter_ns()
        network.run(picture)
        stop = time.perf_counter_ns()
        readings_ms.append((stop - start) / 1e6)

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.plot(range(1, 21), readings_ms, "o", color=BLUE)
axes.set_yscale("log", subs=[2, 5])
plain_log(axes.yaxis)
axes.yaxis.set_minor_formatter("{x:g}")
axes.set(
    xlabel="reading",
    ylabel="time of one call, ms",
    title="The same call, twenty times",
    xticks=range(1, 21),
)
slow, fast = max(readings_ms), min(readings_ms)
show(
    figure,
    f"20 readings from {fast:.4f} to {slow:.4f} ms, a factor of {slow / fast:.1f};"
    f" the slowest is reading {readings_ms.index(slow) + 1}.",
)

# %% [markdown]
# Now put one number on the slide. Take any of your twenty readings, in milliseconds, the one
# you would stand up for.

# %% solution="my_reading"
my_reading_ms = None  # ms
### BEGIN SOLUTION
my_reading_ms = readings_ms[9]
### END SOLUTION

# %% locked="thousand_readings" measures=true
many_ms = sorted(latency_case((1,), trials=1000)["results"][1]["samples_ms"])
heights = [(rank + 1) / len(many_ms) for rank in range(len(many_ms))]
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.step(many_ms, heights, where="post", color=BLUE, label="1,000 calls")
if my_reading_ms:
    axes.axvline(my_reading_ms, color=ORANGE, linestyle="--", label="your slide")
for share in (0.5, 0.95, 0.99):
    axes.axhline(share, color="grey", linewidth=0.6, linestyle=":")
axes.set_xscale("log", subs=[2, 5])
plain_log(axes.xaxis)
axes.xaxis.set_minor_formatter("{x:g}")
axes.set(
    xlabel="time of one call, ms (log scale)",
    ylabel="share of calls at most so slow",
    title="A thousand of the same call",
)
axes.legend(loc="lower right")
half, tail = stats.percentile(many_ms, 0.5), stats.percentile(many_ms, 0.95)
in_words = f"half of 1,000 calls within {half:.4f} ms, 95 % within {tail:.4f} ms"
if my_reading_ms:
    slower = sum(value > my_reading_ms for value in many_ms)
    in_words += (
        f"; {100 * slower / len(many_ms):.1f} % are slower than your {my_reading_ms:.4f} ms"
    )
show(figure, in_words + ".")
if not my_reading_ms:
    print("Not yet: choose one of your twenty readings above, and run this cell again.")

# %% [markdown]
# Your colleague measures again, takes the *fastest* of a thousand, and says: "That is the
# true time, everything else is disturbance." **For which question is the fastest call a good
# answer, and who would be misled by it?**
#
# <details><summary>One answer</summary>
#
# It is close to what the processor needs when nothing gets in its way: good for asking
# whether a change saved instructions. A user never lives in that world. The disturbances
# (other programs, the cooling, the rest of your own service) are there tomorrow as well.
#
# </details>

# %% [markdown]
# ## How noisy is it here?
#
# Before a number goes into a record, measure something whose answer you know: one network
# against *itself*, in fresh processes. Every difference is the machine's noise. The load
# counts the processes that want a core, over the last 1, 5 and 15 minutes.

# %% locked="how_noisy" measures=true
from deep_learning_cases import doctor

print(*doctor.lines(doctor.examine()), sep="\n")

# %% [markdown]
# A difference below the percentage in the A/A lines cannot be told from noise here today.
# With a load above the number of your cores you measure the queue for a core as well: then
# believe medians and ratios of things that took turns, not a p95. On a shared server you may
# have to live with that; write the load down beside your numbers. It costs no points.

# %% [markdown]
# ## What a usable report states
#
# `latency_case()` makes 8 warm-up calls and 60 timed ones at batches 1 and 32, and writes
# down everything around them. It shows itself as a table and a figure.

# %% locked="default_case" measures=true
quick = latency_case()
quick

# %% [markdown]
# The table will be copied into mails without the lines above it. So write the one line that
# survives the copying: a function that turns a record and a batch size into a sentence from
# which somebody could repeat the measurement.
#
# The record is a dictionary; `quick.keys()` and `quick["results"][32].keys()` show what is in
# it. The check changes one fact of the record after the other. Whatever it changes, your
# sentence has to change.


# %% solution="report_line"
def report_line(record, batch):
    """One line: what was measured, on what, how often, and what came out."""
    ### BEGIN SOLUTION
    row = record["results"][batch]
    return (
        f"batch {batch}: median {row['median_ms']:.4g} ms, p95 {row['p95_ms']:.4g} ms by nearest"
        f" rank, {row['trials']} trials after {row['warmups']} warm-ups;"
        f" {record['engine']['name']}, {record['precision']}, {record['threads']} thread(s),"
        f" input {record['input_shape']}, {record['hardware']['cpu']['model']},"
        f" Python {record['software']['python']}. {record['boundary']}"
    )
    ### END SOLUTION


# %% locked="check_report_line" measures=true
def changed(path, value):
    """A copy of the record with one fact replaced."""
    other = copy.deepcopy(dict(quick))
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return other


facts = {
    "the processor": (["hardware", "cpu", "model"], "a processor of another kind"),
    "the Python it ran in": (["software", "python"], "1.0"),
    "the engine": (["engine", "name"], "another engine"),
    "the threads": (["threads"], 77),
    "the number format": (["precision"], "another format"),
    "the shape of an input": (["input_shape"], ["batch", 3, 224, 224]),
    "what the timer includes": (["boundary"], "Something else altogether."),
    "the warm-ups": (["results", 32, "warmups"], 7777),
    "the number of trials": (["results", 32, "trials"], 7777),
    "the median": (["results", 32, "median_ms"], 7777.0),
    "the 95th percentile": (["results", 32, "p95_ms"], 7777.0),
}
try:
    line = report_line(quick, 32)
    lost = [name for name, change in facts.items() if report_line(changed(*change), 32) == line]
    if line == report_line(quick, 1):
        lost.append("the batch size")
    if " ms" not in line:
        lost.append("the unit")
    if "nearest" not in line:
        lost.append("by which definition (here: nearest rank)")
except (NotImplementedError, AttributeError, KeyError, TypeError) as error:
    print(f"Not yet: report_line gave {type(error).__name__}: {error}")
else:
    print(line)
    print("Not yet. What a reader cannot know:" if lost else "Nothing is lost in the mail.")
    print(*(f"- {name}" for name in lost), sep="\n")

# %% [markdown]
# ## How many calls does a p99 need?
#
# The table has a dash where p99 should be. Somebody suggests: "Take the slowest of the 60,
# that is on the safe side." Is it?
#
# Each call is slower than the true p99 with probability 1/100. So all n calls are *faster*
# with probability 0.99 to the power n, and then even the slowest one is below the true p99.
# How many calls until that happens in at most 5 of 100 such measurements?

# %% solution="calls_for_p99"
chance_for_60_calls = None  # that even the slowest of 60 calls lies below the true p99
calls_for_p99 = None  # calls, as few as possible
### BEGIN SOLUTION
chance_for_60_calls = 0.99**60
calls_for_p99 = next(n for n in range(1, 1000) if 0.99**n <= 0.05)
### END SOLUTION

# %% locked="check_calls_for_p99"
wrong = []
if not chance_for_60_calls or abs(chance_for_60_calls - 0.99**60) > 0.005:
    wrong.append("60 calls: multiply the chance that one call is faster, once for each call")
if not calls_for_p99 or not 0.99**calls_for_p99 <= 0.05 < 0.99 ** (calls_for_p99 - 1):
    wrong.append("calls: the first n for which the chance is 5 % or less; try some")
if wrong:
    print("Not yet.", *wrong, sep="\n- ")
else:
    print(f"Right: {100 * chance_for_60_calls:.0f} % of the time the safe side was not safe.")
    print(
        f"{calls_for_p99} calls, and the slowest is an upper bound. That is still no interval."
    )

# %% [markdown]
# ## Your plan
#
# Fill in `plan`: batches 1, 8, 32 and 128, at least 8 warm-ups, and as many trials as you
# want your p99 to rest on (5,000 is the most). The cell after it measures and keeps every
# sample in `evidence/latency.json`.
#
# Predict before you run: a batch of 32 has 32 times the work of a batch of 1. How many times
# as long will it take?

# %% solution="plan"
plan = {}  # {"batches": (...), "warmups": ..., "trials": ...}
batch_32_takes_times_as_long = None  # your prediction
### BEGIN SOLUTION
plan = {"batches": (1, 8, 32, 128), "warmups": 8, "trials": 500}
batch_32_takes_times_as_long = 10
### END SOLUTION

# %% locked="measure" measures=true
LATENCY = EVIDENCE / "latency.json"
record = cases.load_latency_case(LATENCY) if LATENCY.exists() else None
wanted = plan | {"batches": list(plan.get("batches", ()))}
if not plan:
    print("Not yet: fill in plan, and run this cell again.")
elif record and all(record["protocol"].get(name) == value for name, value in wanted.items()):
    print("evidence/latency.json holds this plan already and stays as it is.")
else:
    EVIDENCE.mkdir(exist_ok=True)
    record = latency_case(**plan, artifact=LATENCY)
if record:
    for batch, row in record["results"].items():
        p99 = f"{row['p99_ms']:.4f}" if row["p99_ms"] else "-"
        print(
            f"batch {batch}: median {row['median_ms']:.4f}, p95 {row['p95_ms']:.4f}, p99 {p99} ms"
        )
        print(f"  p99: {row['p99_note']}")

# %% [markdown]
# ## Cheaper for the machine, longer for the one who waits

# %% locked="plot_batches" measures=true
rows = record["results"]
batches = list(rows)
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
columns = (
    ("median_ms", "median of a batch, ms", BLUE, "o"),
    ("ms_per_image", "mean per image, ms", GREEN, "s"),
    ("images_per_second", "images per second", ORANGE, "D"),
)
for axes, (key, label, colour, marker) in zip(panels, columns, strict=True):
    axes.plot(batches, [rows[batch][key] for batch in batches], marker=marker, color=colour)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="images in a batch", ylabel=label, xticks=batches)
    plain_log(axes.xaxis)
    axes.yaxis.set_major_formatter("{x:,g}")
show(
    figure,
    "; ".join(
        f"batch {batch} takes {rows[batch]['median_ms']:.4f} ms, {rows[batch]['ms_per_image']:.5f}"
        f" ms an image, {rows[batch]['images_per_second']:,.0f} images/s"
        for batch in batches
    )
    + ".",
)
ratio = rows[32]["median_ms"] / rows[1]["median_ms"]
print(
    f"A batch of 32 takes {ratio:.1f} times as long; you said {batch_32_takes_times_as_long}."
)

# %% [markdown]
# Requests come one by one, 100 a second, evenly spaced. Somebody sets the batch to 32 because
# of the third panel. **How long does the first request of a batch wait before the network
# even starts?** Which of the three panels says so? And if your mean at batch 1 is far above
# your median: how many of your calls did that?
#
# Now the shapes. Where would you look to see whether one batch size has a *tail* and not only
# a longer time?

# %% locked="plot_distributions" measures=true
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
in_words = []
styles = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (PURPLE, ":"))
for place, (batch, row) in enumerate(rows.items()):
    relative = [value / row["median_ms"] for value in sorted(row["samples_ms"])]
    above = [1 - rank / len(relative) for rank in range(len(relative))]
    colour, style = styles[place % len(styles)]
    axes.step(
        relative, above, color=colour, linestyle=style, linewidth=1.8, label=f"batch {batch}"
    )
    in_words.append(f"batch {batch} {row['max_ms'] / row['median_ms']:.1f}")
axes.set_xscale("log", subs=[2, 5])
axes.set_yscale("log")
plain_log(axes.xaxis)
axes.xaxis.set_minor_formatter("{x:g}")
axes.set_yticks([1, 0.5, 0.05, 0.01], ["all", "half", "1 in 20", "1 in 100"])
axes.set(
    xlabel="time, in medians of the same batch size (log scale)",
    ylabel="share of calls at least so slow",
    title="The tails of your four batch sizes",
)
axes.legend()
show(figure, "the slowest call in medians of its batch size: " + ", ".join(in_words) + ".")

# %% [markdown]
# ## Where does the clock start?
#
# So far it surrounded the network alone. The record can hold two larger circles: **model**
# (the call of the network), **preprocessing** (a JPEG is decoded, resized and normalised,
# then the network), and **service** (a request over HTTP on this machine, until its answer
# has been read). For each of these, name the smallest circle that contains it, or `"none"`.

# %% solution="smallest_circle"
smallest_circle = {
    "the multiplications of the network": None,
    "decoding the JPEG": None,
    "waiting in the queue of the server": None,
    "loading the model from disk": None,
    "the way of the picture from a phone to the data centre": None,
    "turning pixels into float32": None,
}
### BEGIN SOLUTION
answers = ("model", "preprocessing", "service", "none", "none", "preprocessing")
smallest_circle = dict(zip(smallest_circle, answers, strict=True))
### END SOLUTION

# %% locked="check_smallest_circle"
questions = {
    "the multiplications of the network": ("model", "what would a timer of the model time?"),
    "decoding the JPEG": ("preprocessing", "does the network see bytes or pixels?"),
    "waiting in the queue of the server": ("service", "who has a queue at all?"),
    "loading the model from disk": ("none", "how often does it happen while a server runs?"),
    "the way of the picture from a phone to the data centre": (
        "none",
        "where does the client of our service run?",
    ),
    "turning pixels into float32": (
        "preprocessing",
        "is the batch ready when the model starts?",
    ),
}
wrong = [
    f"{what}: {ask}"
    for what, (truth, ask) in questions.items()
    if smallest_circle.get(what) != truth
]
print(
    "\n- ".join(["Not yet.", *wrong])
    if wrong
    else "Right. Two of the six are in no number of this notebook: say so in your report."
)

# %% [markdown]
# Predict: a JPEG of 1024 by 1024 pixels goes in. What share of the time will the network
# itself have? And how much does HTTP add to a picture of 256 pixels?

# %% locked="measure_boundaries" measures=true
from deep_learning_cases import boundaries, load
from deep_learning_cases.errors import DeepLearningCasesError

if "boundaries" not in record:
    parts = {
        f"preprocessing_{width}": boundaries.preprocessing((1,), width) for width in (64, 1024)
    }
    parts["preprocessing_256"] = boundaries.preprocessing((1, 8, 32), 256, seconds=3)
    # The client has an event loop of its own, and this notebook has one already: hence a thread.
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(load.measure_service, (1,), 256, "jpeg")
    try:
        parts["service_256"] = asked.result()
    except DeepLearningCasesError as error:  # a hosted session may not let anybody listen
        parts["service_256"] = {"boundary": load.SERVICE, "unavailable": str(error)}
    record["boundaries"] = parts
    cases.save(record, LATENCY)

circles = [("model", record["results"][1])]
circles += [
    (name.replace("_", ", ") + " px", record["boundaries"][name]["results"][1])
    for name in ("preprocessing_64", "preprocessing_256", "service_256", "preprocessing_1024")
    if "results" in record["boundaries"][name]
]
figure, axes = plt.subplots(figsize=(8.5, 3), layout="constrained")
for height, (_, row) in enumerate(circles):
    samples = row["samples_ms"]
    axes.plot(samples, [height] * len(samples), "|", color=BLUE, alpha=0.35, markersize=14)
    axes.plot(row["median_ms"], height, "D", color=ORANGE, markersize=6)
axes.plot([], [], "|", color=BLUE, label="one call")
axes.plot([], [], "D", color=ORANGE, label="median")
axes.set_xscale("log")
plain_log(axes.xaxis)
axes.invert_yaxis()
axes.set_yticks(range(len(circles)), [name for name, _ in circles])
axes.set(xlabel="time of one picture, ms (log scale)", title="The same network in five timers")
axes.set_ylabel("inside the timer")
axes.legend(loc="lower left")
show(
    figure,
    "; ".join(f"{name}: median {row['median_ms']:.3f} ms" for name, row in circles) + ".",
)
share = record["results"][1]["median_ms"] / circles[-1][1]["median_ms"]
print(f"With 1024 pixels the network has {100 * share:.1f} % of the time.")

# %% [markdown]
# You may make the network twice as fast, or have the phone send 64 pixels instead of 1024.
# **What does each of the two save, in milliseconds and in percent of what the user waits?**
# Which of the five rows would you show to somebody who wants to buy a faster processor?

# %% [markdown]
# ## Cold
#
# Everything so far was warm. Somebody who opens the app once a day meets another situation: a
# process starts, imports, loads, and answers for the first time. Guess: how many warm calls
# fit into one cold start? Ten, a thousand, a hundred thousand?

# %% locked="measure_cold" measures=true
from deep_learning_cases import fresh_starts

if "cold" not in record:
    record["cold"] = fresh_starts.cold((1,), starts=5)
    cases.save(record, LATENCY)

starts = record["cold"]["results"][1]["starts"]
stages = (
    ("start_ms", "Python, NumPy, library", BLUE, ""),
    ("import_ms", "engine's runtime", GREEN, "//"),
    ("load_ms", "model", ORANGE, ".."),
    ("first_call_ms", "first call", PURPLE, "xx"),
)
figure, axes = plt.subplots(figsize=(8.5, 3.2), layout="constrained")
left = [0.0] * len(starts)
for key, label, colour, hatch in stages:
    widths = [start[key] for start in starts]
    axes.barh(
        range(1, len(starts) + 1), widths, left=left, color=colour, hatch=hatch, label=label
    )
    left = [before + width for before, width in zip(left, widths, strict=True)]
axes.set(
    xlabel="time from starting the process, ms",
    ylabel="cold start",
    title="From nothing to the first answer",
)
figure.legend(ncols=4, loc="outside lower center")
cold_ms, warm_ms = record["cold"]["results"][1]["median_ms"], record["results"][1]["median_ms"]
middle = {label: statistics.median(start[key] for start in starts) for key, label, *_ in stages}
show(
    figure, "medians: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in middle.items()) + "."
)
print(f"One cold start: {cold_ms:.0f} ms, the time of {cold_ms / warm_ms:,.0f} warm calls.")

# %% [markdown]
# Ten copies of the service are started anew once an hour, and each answers 1,000 requests in
# that hour. **Is a cold start in the p99 of all requests? In the p99.9?** And why would it be
# wrong either way to mix cold and warm calls into one percentile?

# %% [markdown]
# ## An accelerator says "done" before it is
#
# A GPU is handed work and the call returns at once; the work goes on. There may be none here,
# so the next cell builds a stand-in: a worker in the background that needs 5 ms for
# everything. Which two medians do you expect?


# %% locked="accelerator" measures=true
class StandIn:
    """Takes work and returns at once, as an accelerator does; a worker needs 5 ms for each."""

    def __init__(self):
        self.worker, self.pending = ThreadPoolExecutor(1), []

    def run(self, _batch):
        self.pending.append(self.worker.submit(time.sleep, 0.005))

    def synchronize(self):
        while self.pending:
            self.pending.pop().result()


device = StandIn()
for name, wait in (("hand over", None), ("hand over and wait", device.synchronize)):
    times_us = timing.time_calls(device.run, [None], 3, 30, synchronize=wait).samples_us
    print(f"{name}: median {statistics.median(times_us) / 1000:.3f} ms")
    device.synchronize()

# %% [markdown]
# Your timer shows 0.02 ms a call; the loop of 1,000 calls took five seconds on the wall.
# **Which of the two did users wait for, and which line is missing inside the timer?** (In
# PyTorch it reads `torch.cuda.synchronize()`.) The record has a field for it, beside device,
# number format, threads, mode and compiler: `record["execution"]`.

# %% [markdown]
# ## Memory ends suddenly
#
# Larger batches, more throughput: why not 100,000? Each size below gets a fresh process, since
# a peak of memory never goes down again. Then a limit is set, 8 MB above what one picture
# needs, and the largest batch that fits is searched for.
#
# A picture is 64 numbers of 4 bytes. From that alone: by how many megabytes will the peak grow
# from 1 picture to 16,384?

# %% locked="measure_memory" measures=true
if "memory" not in record:
    free = fresh_starts.memory((1, 1024, 4096, 16384))
    limit = free["results"][1]["peak_rss_bytes"] + 8_000_000
    record["memory"] = free | {
        "limit_bytes": limit,
        "largest_batch": fresh_starts.memory((1,), limit_bytes=limit)["largest_batch"],
    }
    cases.save(record, LATENCY)

memory = record["memory"]
peaks = {batch: row["peak_rss_bytes"] / 1e6 for batch, row in memory["results"].items()}
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.plot(
    list(peaks), list(peaks.values()), "o-", color=BLUE, label="no limit: all of them run"
)
axes.axhline(memory["limit_bytes"] / 1e6, color=ORANGE, linestyle="--", label="the limit")
axes.axvline(
    memory["largest_batch"]["fits"], color=GREEN, linestyle=":", label="last that fits"
)
axes.set_ylim(bottom=0)
axes.xaxis.set_major_formatter("{x:,g}")
axes.set(
    xlabel="images in a batch",
    ylabel="peak memory of the process, MB",
    title="One process each",
)
axes.legend(loc="lower right")
show(figure, "peak " + ", ".join(f"{mb:.1f} MB at batch {b}" for b, mb in peaks.items()) + ".")
print(memory["largest_batch"]["reason"])

# %% [markdown]
# At the last batch that fits nothing has become slow, and one step further there is no answer
# at all. **How would you find the limit in a service that runs, before its users do?** And
# batch 1 needs tens of megabytes while the weights are 73 kB: what is in the rest?

# %% [markdown]
# ## Is the record whole?
#
# The next cell recomputes every number from its samples and looks for what the plan asked
# for. It is silent when it finds nothing. It cannot see whether you measured; nobody can, from
# a file.

# %% test="latency_record" points=3 measures=true
# Four batch sizes, enough trials for a p99, a larger boundary, cold starts; sums that add up.
from deep_learning_cases import policy_record

found = [one for one in policy_record.check(EVIDENCE) if one.area == "latency_record"]
assert not found, str(found[0])

# %% [markdown]
# ## Your report
#
# Answer in the cell below, in half a page and with your own numbers.
#
# 1. The slide said "0.02 milliseconds". Write the sentence that should stand there, so that a
#    colleague could repeat it next year on another machine.
# 2. Which one of your figures would you show a manager, and which sentence goes under it?
# 3. A user photographs a digit and waits. Which of your numbers is closest to that wait, and
#    what is still missing from it?
# 4. The model is quantized tomorrow. What do you measure again, and what besides time?

# %% [markdown] written="latency_report" points=4
# 1. Batch 1, NumPy engine, float32, one thread, on the processor named in the record: median
#    and p95 by nearest rank of 500 warm calls after 8 warm-ups, model only, with the interval
#    of the median beside it.
# 2. The five timers: "Most of what the user waits for is the picture and not the network."
#    The third panel of the batches would be true and misleading, since nobody waits for 32.
# 3. The service at 256 pixels. It lacks the way through a real network, other users in the
#    queue, and the cold start of whoever comes first.
# 4. All of it on the same machine under the same plan, and the predictions on the test set:
#    a faster network whose answers moved beyond the tolerance is another model.

# %% [markdown]
# Save, press **Validate** if your Jupyter has that button, and go on with
# `batching_policy.ipynb`: it starts from the `evidence/latency.json` you have now.
