# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Step 7: how fast is it, and how do you know?
#
# Two model files lie in `evidence/`. A colleague ran each of them once and says the small one
# is faster. That is one reading of a clock: an anecdote. Today you take 300 readings per
# model and batch size, look at all of them, and write the function that turns them into
# numbers one may put on a slide.
#
# You need the folder that `step1_to_6_prepare.ipynb` made. Plan 45 minutes; the measuring
# itself takes seconds.
#
# | graded here | points |
# |---|---|
# | `latency_stats`: p50, p95, throughput, input left alone, bad input refused | 2 + 3 + 2 + 1 + 1 |
# | `benchmark.json`: complete record, linked to the files, summary right | 3 + 3 + 2 |
#
# Nobody grades milliseconds: yours depend on your machine. Predictions and sums on the way
# are not graded either. They are there so that the numbers can surprise you.

# %% locked="setup_step7"
import json
import math
from pathlib import Path

EVIDENCE = Path("evidence")
if not (EVIDENCE / "model_int8.onnx").exists():
    print(
        "There is no evidence/ folder with models here yet: run step1_to_6_prepare.ipynb first."
    )

# %% [markdown]
# ## Where does the clock start?
#
# Before you believe a benchmark, read it. First what one measuring process does, then the
# loop that takes the samples. Find the two readings of the clock, and see what stands between
# them.

# %% locked="read_the_timer" measures=true
import inspect

from deep_learning_cases import timing, trial

print(inspect.getsource(trial.run_job))
print(inspect.getsource(timing.time_calls))

# %% [markdown]
# The `call` in that loop is `engine.run`, and `x` is a batch that is ready in memory. For
# each of these, decide whether the samples contain it: `True` for inside the timer, `False`
# for outside.

# %% solution="inside_the_timer"
inside_the_timer = {
    "loading the model file": None,
    "turning uint8 pixels into float32": None,
    "the multiplications of the network": None,
    "the warm-up calls": None,
    "sending the answer over the network": None,
}
### BEGIN SOLUTION
inside_the_timer = dict.fromkeys(inside_the_timer, False) | {
    "the multiplications of the network": True
}
### END SOLUTION

# %% locked="check_inside_the_timer"
questions = {
    "loading the model file": (False, "who calls engine.load, and how often?"),
    "turning uint8 pixels into float32": (
        False,
        "is the batch made before or after the first reading of the clock?",
    ),
    "the multiplications of the network": (True, "what would be left to time without them?"),
    "the warm-up calls": (False, "do their times land in the same list?"),
    "sending the answer over the network": (False, "is there any network in this loop?"),
}
wrong = [
    f"{what}: {ask}"
    for what, (truth, ask) in questions.items()
    if inside_the_timer.get(what) is not truth
]
if wrong:
    print(*wrong, sep="\n")
else:
    print("All five agree with the code. So no sample is the response time of a web request.")

# %% [markdown]
# ## Predict
#
# The int8 file is about a third of the float32 file. Which model answers sooner, one image at
# a time? Which one with 32 images at a time? Write `"fp32"`, `"int8"` or `"same"` **before**
# you measure; a prediction made afterwards teaches nothing.

# %% solution="prediction"
faster_at_batch_1 = None
faster_at_batch_32 = None
### BEGIN SOLUTION
faster_at_batch_1 = "same"
faster_at_batch_32 = "int8"
### END SOLUTION

# %% [markdown]
# ## Is this machine quiet enough?
#
# First measure something whose answer you know: one model against *itself*. Every difference
# found there is the machine's noise. The next cell does so once, in fresh processes, and
# shows how many other processes want a core (the load, over 1, 5 and 15 minutes).

# %% locked="how_noisy" measures=true
from deep_learning_cases import doctor

before_measuring = doctor.examine(EVIDENCE if (EVIDENCE / "model_fp32.onnx").exists() else None)
print(*doctor.lines(before_measuring), sep="\n")

# %% [markdown]
# Read the lines that begin with A/A. A difference between two models below the percentage
# named there is one that you **cannot** tell from noise here today, whatever the digits say.
# With a load above the number of your cores you also measure the queue for a core: ratios of
# models that took turns may still hold; milliseconds, and above all the p95, do not.
#
# On a shared server the others may not be in your hands. Then keep the record, write the load
# down beside every number, and claim less. No point of this lab depends on a quiet machine.

# %% [markdown]
# ## Measure
#
# Three rounds. In each, every model gets a fresh process with one inference thread: 10
# warm-up calls, then 100 timed calls with one image and 100 with 32. The order of the models
# turns round from one round to the next.
#
# While it runs (a few seconds), think about that last point: if the float32 model always went
# first, which stories could you no longer tell apart?
#
# Close what makes the machine busy now: videos, builds, other notebooks. A record that exists
# is kept, because raw samples are never overwritten by accident; to measure again, delete
# `evidence/benchmark.json` and run this cell again.

# %% locked="run_benchmark" measures=true
from deep_learning_cases import bench

if (EVIDENCE / "benchmark.json").exists():
    print("evidence/benchmark.json is there already and stays as it is.")
else:
    bench.run(EVIDENCE)

# %% [markdown]
# Every sample is kept in `benchmark.json`, with the machine and the protocol. Look at it as
# data: it is yours.

# %% locked="read_the_record"
record = {"runs": []}
if (EVIDENCE / "benchmark.json").exists():
    record = json.loads((EVIDENCE / "benchmark.json").read_text())


def rounds_of(model, batch_size):
    """The samples of one model and batch size, one list per round, in microseconds per batch."""
    return [
        run["samples_us"][str(batch_size)] for run in record["runs"] if run["model"] == model
    ]


def all_of(model, batch_size):
    """The same, merged: every sample of all rounds in one list."""
    return [sample for samples in rounds_of(model, batch_size) for sample in samples]


for run in record["runs"]:
    first = f"loading and first call {run['cold_start_us'] / 1000:.1f} ms"
    load = f"load over 1, 5 and 15 minutes {run['load_average']}"
    print(f"round {run['round']}, {run['model']}: {first}, {load}")

# %% [markdown]
# Did the load change between the first run and the last? Then the rounds were not measured on
# the same machine, in a way. To count how often noise alone looks like a difference:
# `dlcases bench evidence --aa` in a terminal, half a minute.

# %% [markdown]
# ## Look before you calculate
#
# All 300 samples of the int8 model, one image at a time, in the order in which they were
# taken. Each colour is one round, that is, one process.

# %% locked="plot_in_order" measures=true
import matplotlib.pyplot as plt

from deep_learning_cases.notebook_figures import show

COLOURS = ["#0072B2", "#E69F00", "#009E73"]  # told apart with any kind of colour vision

figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
start = 0
for number, samples in enumerate(rounds_of("int8", 1), start=1):
    calls = range(start, start + len(samples))
    axes.plot(calls, samples, ".", color=COLOURS[(number - 1) % 3], label=f"round {number}")
    start += len(samples)
axes.set_yscale("log", subs=[2, 5])
axes.yaxis.set_major_formatter("{x:g}")
axes.yaxis.set_minor_formatter("{x:g}")
axes.set(
    xlabel="call, in the order taken",
    ylabel="time of one call, us",
    title="int8, batch 1: every sample",
)
axes.legend()
ordered = sorted(all_of("int8", 1))
span = f"the fastest took {ordered[0]:.1f} us, the slowest {ordered[-1]:.1f} us"
show(figure, f"{len(ordered)} calls of the int8 model at batch 1 in three rounds; {span}.")

# %% [markdown]
# Find the slowest dot. Imagine that it had taken ten times as long. Which of these would
# move: the mean, the median, the 95th percentile, the maximum? Decide, then read on; in a few
# minutes you have a function to try it with.
#
# And the same samples as a distribution, for both models. Read it upwards: at height 0.5 half
# the calls are to the left of the curve.

# %% locked="plot_distribution" measures=true
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
in_words = []
for axes, batch_size in zip(panels, (1, 32), strict=True):
    for model, colour, style in (("fp32", "#0072B2", "-"), ("int8", "#D55E00", "--")):
        values = sorted(all_of(model, batch_size))
        heights = [(rank + 1) / len(values) for rank in range(len(values))]
        axes.step(values, heights, where="post", color=colour, linestyle=style, label=model)
        in_words.append(
            f"{model} at batch {batch_size} from {values[0]:.1f} to {values[-1]:.1f} us"
        )
    axes.axhline(0.95, color="grey", linewidth=0.8)
    axes.set_xscale("log", subs=[2, 5])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="both", labelrotation=45)
    axes.set(xlabel="time of one batch, us (log scale)", title=f"batch {batch_size}")
    axes.legend(loc="lower right")
panels[0].set_ylabel("share of calls at most this slow")
show(figure, "share of calls over time per batch; " + ", ".join(in_words) + ".")

# %% [markdown]
# Which of the two pictures would you show a manager, and which one sentence would you put
# under it?

# %% [markdown]
# ## By hand first: images or calls?
#
# Suppose that 300 calls with 32 images each took 3,000,000 us together. Work out, with a
# pencil if you like: how many images, how many seconds, how many images per second, how many
# calls per second?

# %% solution="hand_arithmetic"
images = None  # images
seconds = None  # s
images_per_second = None  # images/s
calls_per_second = None  # calls/s
### BEGIN SOLUTION
images = 32 * 300
seconds = 3_000_000 / 1_000_000
images_per_second = images / seconds
calls_per_second = 300 / seconds
### END SOLUTION

# %% locked="check_hand_arithmetic"
checks = [
    (images == 32 * 300, "images: every call carries 32 of them"),
    (seconds == 3, "seconds: a million microseconds are one second"),
    (
        images and seconds and images_per_second == images / seconds,
        "images/s: images divided by seconds",
    ),
    (seconds and calls_per_second == 300 / seconds, "calls/s: calls divided by seconds"),
]
wrong = [text for right, text in checks if not right]
if wrong:
    print("Not yet.", *wrong, sep="\n- ")
else:
    print(f"Right. {calls_per_second:g} calls/s is a true number.")
    print("Call it images/s, and you are wrong by a factor of 32.")

# %% [markdown]
# ## May three p95 be averaged?
#
# Somebody sends you the p95 of three rounds: 10, 20 and 100 us, and writes "overall p95: 43.3
# us", the mean. Show that nobody can know.
#
# Invent two sets of measurements. Each has three rounds of 20 samples, and in **both** sets
# the rounds' p95 are 10, 20 and 100 us. But the p95 of all 60 together must differ. With 20
# samples the p95 is the 19th smallest, so `sorted(samples)[18]`, since Python counts from 0.
# With 60 it is the 57th.
#
# *A start: `[10] * 20` is a round with p95 10. So is `[1] * 18 + [10, 500]`.*

# %% solution="same_rounds_other_p95"
set_a = [[], [], []]
set_b = [[], [], []]
### BEGIN SOLUTION
set_a = [[10] * 20, [20] * 20, [100] * 20]
set_b = [[10] * 20, [20] * 20, [1] * 18 + [100, 100]]
### END SOLUTION

# %% locked="check_same_rounds_other_p95"
problems = []
for name, rounds in (("set_a", set_a), ("set_b", set_b)):
    if (counts := [len(samples) for samples in rounds]) != [20, 20, 20]:
        problems.append(f"{name}: its rounds have {counts} samples, expected 20 each")
    elif (p95s := [sorted(samples)[18] for samples in rounds]) != [10, 20, 100]:
        problems.append(f"{name}: the p95 of its rounds are {p95s}, expected 10, 20 and 100")
if not problems:
    overall_a, overall_b = (
        sorted(rounds[0] + rounds[1] + rounds[2])[56] for rounds in (set_a, set_b)
    )
    if overall_a == overall_b:
        problems.append(
            f"the overall p95 is {overall_a} in both: which samples could you move?"
        )
if problems:
    print("Not yet.", *problems, sep="\n- ")
else:
    print(f"Same three p95, and overall {overall_a} against {overall_b} us.")
    print("43.3 is no percentile of anything.")

# %% [markdown]
# What would the sender have had to send you, so that you could work out the overall p95
# yourself? And why does `benchmark.json` keep 1,200 raw numbers where twelve would look
# tidier?

# %% [markdown]
# ## Your turn: `latency_stats`
#
# Write the function that everything after this rests on. `samples_us` holds the times of the
# calls, in microseconds per *batch*: a list, a tuple or a NumPy array, in any order. It
# returns a dictionary:
#
# | key | meaning |
# |---|---|
# | `n` | how many samples |
# | `p50_us` | the median; for an even count the mean of the middle two |
# | `p95_us` | nearest rank: the ceil(0.95 n)-th smallest; ranks count from 1, Python from 0 |
# | `images_per_second` | all images over all the time: batch_size · n · 1,000,000 / sum |
#
# Two manners: the caller's samples stay exactly as they were, and nonsense is refused with a
# `ValueError`: no samples at all, a sample that is not a finite number above zero, a batch
# size that is not a whole number of at least 1.
#
# Plain Python is enough. NumPy is allowed; make sure that its percentile is *this*
# percentile.


# %% solution="latency_stats"
def latency_stats(samples_us, batch_size):
    """Median, 95th percentile and throughput of the timed calls of one model at one batch size."""
    ### BEGIN SOLUTION
    from numbers import Integral

    samples = [float(sample) for sample in samples_us]
    if not samples:
        raise ValueError("no samples: expected at least one timed call")
    for sample in samples:
        if not (math.isfinite(sample) and sample > 0):
            raise ValueError(f"sample {sample}: expected a finite time above zero")
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < 1:
        raise ValueError(f"batch size {batch_size}: expected a whole number of at least 1")
    samples.sort()
    n = len(samples)
    return {
        "n": n,
        "p50_us": (samples[(n - 1) // 2] + samples[n // 2]) / 2,
        "p95_us": samples[math.ceil(0.95 * n) - 1],
        "images_per_second": batch_size * n * 1_000_000 / sum(samples),
    }
    ### END SOLUTION


# %% [markdown]
# ## Try it on small examples
#
# The next five cells hold examples that can be worked out by hand. They are silent when your
# function is right; when it is not, the last line says what your answer looks like. Hidden
# grading asks the same questions with other samples, so a function that only knows these
# examples will not get far.


# %% locked="visible_examples"
def expect(key, want, samples_us, batch_size=1, slips=None):
    """Compare one number of your answer with the one worked out by hand.

    ``slips`` holds what known slips would answer, each with a question to ask oneself.
    """
    answer = latency_stats(samples_us, batch_size)
    assert hasattr(answer, "keys"), (
        f"the answer is {answer!r}: does every path end in a return?"
    )
    assert key in answer, f"no {key!r} in the answer, only {list(answer)}: spelled as above?"
    got = answer[key]
    assert hasattr(got, "__float__"), f"{key} is {got!r}, expected a number to calculate with"
    ask = "work this example out by hand, then follow your code through it line by line."
    for value, question in (slips or {}).items():
        if math.isclose(got, value, rel_tol=1e-6):
            ask = question
    assert math.isclose(got, want, rel_tol=1e-6), f"{key} is {got}, expected {want}: {ask}"


# %% test="stats_p50" points=2
import numpy as np

# An odd count has a middle.
slips = {
    40: "that is the mean; how many of the three calls were at most that slow?",
    10: "that is the middle of the list as it came; is it in order?",
}
expect("p50_us", 30, [30, 10, 80], slips=slips)

# An even count has two.
slips = {
    350: "that is the mean; what should one slow call do to a median?",
    400: "that is the upper of the middle two; why should it win over the lower?",
    200: "that is the lower of the middle two; why should it win over the upper?",
    150: "those are the middle two of the list as it came; is it in order?",
}
expect("p50_us", 300, [700, 200, 100, 400], slips=slips)

# One call alone, calls that took equally long, fractions of a microsecond, a NumPy array.
expect("p50_us", 7, [7])
slips = {20: "two calls may take equally long; does each of them count?"}
expect("p50_us", 10, [30, 10, 20, 10, 10], slips=slips)
slips = {
    2.375: "that is rounded; who needs the digits later?",
    2.3754 / 32: "that is per image.",
}
expect("p50_us", 2.3754, [1.5, 3.2508], 32, slips)
expect("p50_us", 25, np.array([40.0, 10.0, 30.0, 20.0]))
expect("n", 4, [700, 200, 100, 400], 32, {128: "those are images; n counts the samples."})

# %% test="stats_p95" points=3
# 20 samples, the slowest first: the 19th smallest is meant.
slips = {
    200: "that is the maximum; is the rank 19 also the index 19?",
    190.5: "that lies between two samples; which of the calls took exactly that long?",
    20: "that is the 19th of the list as it came; is it in order?",
    105: "that is the median; which share of the calls may be slower than the p95?",
}
expect("p95_us", 190, [10 * k for k in range(20, 0, -1)], slips=slips)

# 0.95 times 21 is 19.95, times 30 is 28.5, times 15 is 14.25: which rank is it each time?
slips = {
    190: "that is the 19th; up or down?",
    210: "that is the maximum; is the rank the index?",
}
expect("p95_us", 200, [10 * k for k in range(1, 22)], slips=slips)
slips = {
    280: "that is the 28th; up or down?",
    300: "that is the maximum; is the rank the index?",
    285.5: "that lies between two samples; which of the calls took exactly that long?",
}
expect("p95_us", 290, [10 * k for k in range(1, 31)], slips=slips)
expect("p95_us", 150, [10 * k for k in range(1, 16)], slips={140: "the 14th; up or down?"})
expect("p95_us", 5.5, [5.5])

# Three rounds of 100 calls, merged. Their own p95 are 10, 20 and 100.
three_rounds = [10] * 100 + [20] * 100 + [1] * 90 + [100] * 10
mean_of_p95 = (10 + 20 + 100) / 3
slips = {
    mean_of_p95: "that is the mean of the rounds' p95; what did your two sets of rounds show?",
    100: "that is the slowest round alone; how many of all 300 calls were slower than 20?",
}
expect("p95_us", 20, three_rounds, slips=slips)

# %% test="stats_throughput" points=2
# Your sum from above.
slips = {
    100: "that is calls per second; how many images does one call carry?",
    3.2: "that is images per millisecond; how many microseconds has a second?",
}
expect("images_per_second", 3200, [10_000] * 300, 32, slips)

# Three calls of very different length: 96 images in 8,000 us.
mean_of_rates = (32_000 + 16_000 + 6_400) / 3
slips = {
    375: "that is calls per second; how many images does one call carry?",
    16_000: "that comes from the median; where did the slow call's time go?",
    mean_of_rates: "that is the mean of three rates; did every call take as long?",
    4000: "that is one batch over the time of three; how many calls were there?",
}
expect("images_per_second", 12_000, [1000, 2000, 5000], 32, slips)

# A hundred calls with one image each; one of them took longer than all the others together.
slips = {
    10_000: "that is without the slow call; somebody waited for it, so where did it go?",
    160_000: "that is 32 times too many; how large was this batch?",
}
expect("images_per_second", 5000, [100] * 99 + [10_100], slips=slips)

# %% test="stats_pure" points=1
# The samples are a record: after the call they are what they were, in the order taken.
expect("p50_us", 25, (40.0, 10.0, 30.0, 20.0))  # a tuple cannot be changed at all
for kind in (list, np.array):
    record_of_calls = kind([40.0, 10.0, 30.0, 20.0])
    expect("p50_us", 25, record_of_calls)
    left = [float(sample) for sample in record_of_calls]
    assert left == [40, 10, 30, 20], (
        f"the caller's samples are now {left}: did your function sort what it was lent?"
    )


# %% test="stats_errors" points=1
def refuses(samples_us, batch_size, why):
    """A ValueError is the right answer here; anything else is not."""
    try:
        answer = latency_stats(samples_us, batch_size)
    except ValueError:
        return
    except Exception as error:
        raised = f"raised {type(error).__name__}, expected ValueError"
        raise AssertionError(
            f"{why}: {raised}; does its name say whose mistake it is?"
        ) from None
    raise AssertionError(
        f"{why}: returned {answer!r}, expected ValueError; who would notice that in a report?"
    )


expect("p50_us", 2, [3.0, 1.0, 2.0])  # good input still gets its answer
refuses([], 1, "no samples at all")
refuses([12.0, -3.0], 1, "a negative time")
refuses([12.0, 0.0], 1, "a call that took no time")
refuses([12.0, float("nan")], 1, "a time that is not a number")
refuses([12.0, float("inf")], 1, "an endless time")
refuses([12.0], 0, "a batch of no images")
refuses([12.0], -1, "a batch of -1 images")

# %% [markdown]
# ## Your function, your samples
#
# `bench.summarise` merges the three rounds of each model and batch size, gives them to *your*
# function, and writes the answers into `benchmark.json` beside the raw samples. If you change
# the function later, run this cell again.

# %% locked="summarise" measures=true
record = bench.summarise(EVIDENCE, latency_stats)
record = json.loads((EVIDENCE / "benchmark.json").read_text())
print("times in us per batch")
for model, batches in record["summary"].items():
    for batch_size, row in batches.items():
        times = f"p50 {row['p50_us']:.1f}, p95 {row['p95_us']:.1f}"
        rate = f"{row['images_per_second']:,.0f} images/s"
        print(f"{model}, batch {batch_size}: n {row['n']}, {times}, {rate}")
for batch_size, guess in (("1", faster_at_batch_1), ("32", faster_at_batch_32)):
    ratio = (
        record["summary"]["int8"][batch_size]["p50_us"]
        / record["summary"]["fp32"][batch_size]["p50_us"]
    )
    print(
        f"batch {batch_size}: you expected {guess}; int8 takes {ratio:.2f} times as long as fp32."
    )

# %% [markdown]
# Were you right? If int8 came out slower, do not look for the bug yet: an int8 model also has
# to convert numbers to and from 8 bits. Which kind of network, or which processor, would make
# that worth it?
#
# Now the honest question: would you bet on the same order tomorrow? One ratio per round is a
# first answer. Three ratios on the same side of 1 are some evidence; three that straddle it
# are none.

# %% locked="round_by_round" measures=true
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
in_words = []
for batch_size, colour, mark in ((1, "#0072B2", "o"), (32, "#D55E00", "s")):
    small, large = (
        [
            latency_stats(samples, batch_size)["p50_us"]
            for samples in rounds_of(model, batch_size)
        ]
        for model in ("int8", "fp32")
    )
    ratios = [a / b for a, b in zip(small, large, strict=True)]
    axes.plot(
        range(1, len(ratios) + 1), ratios, mark, color=colour, label=f"batch {batch_size}"
    )
    in_words.append(f"batch {batch_size} " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
axes.axhline(1, color="grey", linewidth=0.8)
axes.set(
    xlabel="round",
    ylabel="int8 / fp32 (no unit)",
    title="Above the line: int8 is slower",
    xticks=[1, 2, 3],
)
axes.legend()
show(figure, "int8 median over float32 median in rounds 1 to 3: " + "; ".join(in_words) + ".")

# %% [markdown]
# ## The file shrank. Did the process?
#
# `peak_rss_bytes` is the most memory that the measuring process ever held, in the machine's
# main memory and not in any GPU's: Python, NumPy, the runtime, working buffers, and the model
# somewhere among them. Before you run the next cell: the file lost more than half its bytes.
# By how many percent will the peak have dropped?

# %% locked="memory" measures=true
for model in ("fp32", "int8"):
    peaks = [run["peak_rss_bytes"] for run in record["runs"] if run["model"] == model]
    size = record["models"][model]["bytes"]
    print(f"{model}: file {size:,} bytes, process peak {min(peaks):,} to {max(peaks):,} bytes")
print("read from:", record["runs"][0]["peak_rss_source"])

# %% [markdown]
# Take your own numbers: how many bytes did the file save, and what share of the float32
# process's peak is that, in percent?

# %% solution="memory_arithmetic"
file_bytes_saved = None  # bytes
share_of_peak_percent = None  # %
### BEGIN SOLUTION
file_bytes_saved = record["models"]["fp32"]["bytes"] - record["models"]["int8"]["bytes"]
share_of_peak_percent = (
    100
    * file_bytes_saved
    / next(r for r in record["runs"] if r["model"] == "fp32")["peak_rss_bytes"]
)
### END SOLUTION

# %% locked="check_memory_arithmetic"
saved = record["models"]["fp32"]["bytes"] - record["models"]["int8"]["bytes"]
peak = max(run["peak_rss_bytes"] for run in record["runs"] if run["model"] == "fp32")
if file_bytes_saved != saved:
    print(
        "Not yet: the saving is the difference of the two file sizes printed above, in bytes."
    )
elif not share_of_peak_percent or not 0.8 < share_of_peak_percent / (100 * saved / peak) < 1.25:
    print("Not yet: the share is the saving divided by the peak, times 100. Are both in bytes?")
else:
    print(f"Right: about {share_of_peak_percent:.2g} % of the process.")
    print("Whoever says 'memory went down' has to say which memory.")

# %% [markdown]
# ## Is the record fit for a release?
#
# `benchmark.json` names the SHA-256 of both models and of the data, so that anybody can see
# whether these times belong to these files. The three cells below recompute all of it. Each
# is silent when it finds nothing.
#
# They find stale reports and wrong sums. They cannot prove that the times were measured:
# whoever can edit a file can type 1,200 numbers. That is why a person still looks at the
# samples.

# %% locked="look_into_the_evidence" measures=true
from deep_learning_cases import release


def nothing_found(area):
    """Silent if this part of the evidence holds up; otherwise what was found and what to redo."""
    assert record.get("summary"), (
        "the summary is empty: write latency_stats, then run bench.summarise."
    )
    found = [str(finding) for finding in release.check(EVIDENCE) if finding.area == area]
    assert not found, found[0]


# %% test="benchmark_record" points=3 measures=true
# Three rounds of fresh processes in alternating order, and every sample there and possible.
nothing_found("benchmark_record")

# %% test="benchmark_linkage" points=3 measures=true
# The files in this folder are the files that were measured.
nothing_found("benchmark_linkage")

# %% test="benchmark_summary" points=2 measures=true
# The four numbers of each model and batch size follow from the raw samples.
nothing_found("benchmark_summary")

# %% [markdown]
# ## Before you leave
#
# Two questions for the way to step 8, to be answered in your head or to a neighbour:
#
# 1. You convert the int8 model again, with one calibration image more, and paste the new
#    SHA-256 over the old one in `benchmark.json`. Every hash fits. What is false?
# 2. A camera must answer within 1 ms, always. Your p95 is 0.1 ms. What do the other 5 % do,
#    and what have your 300 calls not seen: heat, battery, a busy core, the tenth hour?
#
# Save this notebook and press **Validate** if your Jupyter has that button, or restart and
# run all: it should go through from top to bottom without a word from the test cells. Then go
# on with `step8_release.ipynb`.
