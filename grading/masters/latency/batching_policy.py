# ---
# jupyter:
#   deep_learning_cases:
#     graded_run: false
# ---

# %% [markdown]
# # Whose wait do you pay with?
#
# A mail centre: cameras cut single digits out of addresses and send them, 8 by 8 pixels each,
# to one process with your network. You know from `measure_latency.ipynb` that a batch of 32
# costs less per picture. But nobody sends 32 pictures. They come one by one, and a batch has
# to be waited for.
#
# Today you declare a load and an objective, choose a rule by which the server makes batches,
# and defend it with a prediction that others can repeat.
#
# | graded here | points |
# |---|---|
# | `policy.json`: its prediction follows from your measured times | 3 |
# | `policy.json`: verdict and scope say what the prediction supports | 2 |
# | your defence, read by a person | 4 |
#
# Plan 45 minutes. A policy that misses its objective, and says so, earns as much as one that
# meets it.

# %% locked="setup_policy"
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib.figure import Figure

from deep_learning_cases import batching, batching_plots, cases, policy_record
from deep_learning_cases.notebook_figures import DescribedFigure, show

EVIDENCE = Path("evidence")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"

if not (EVIDENCE / "latency.json").exists():
    print("There is no evidence/latency.json here yet: run measure_latency.ipynb first.")

# %% [markdown]
# ## The rule
#
# One server, one queue, first come first served. A batch starts as soon as the server is free
# **and** one of two things is true: `max_batch` requests wait, or the oldest of them has
# waited `max_wait`. It takes the oldest requests, at most `max_batch`, and all of them are
# answered when it ends. With a longest wait of 0, called *greedy*, a free server takes
# whatever is there.
#
# Be the server once. A batch takes 10 ms, whatever its size; `max_batch` is 2, the longest
# wait 4 ms. Requests arrive at 0, 1, 2, 3 and 20 ms. When is each of them answered, in ms?

# %% solution="by_hand"
answered_at_ms = [None, None, None, None, None]  # ms
### BEGIN SOLUTION
answered_at_ms = [11, 11, 21, 21, 34]
### END SOLUTION

# %% locked="check_by_hand"
arrivals_s = np.array([0, 1, 2, 3, 20]) / 1e3
truth = batching.simulate(
    arrivals_s, batching.Constant(0.010), batching.Policy(max_batch=2, max_wait_s=0.004)
)
truth_ms = 1e3 * (truth.arrivals_s + truth.time_in_system_s)
asks = [
    "is the batch full when it arrives? May the server start yet?",
    "who shares its batch?",
    "is the server free when it arrives?",
    "with whom does it wait, and since when?",
    "when the server becomes free, how long has it waited, and is anybody else there?",
]
wrong = [
    f"request {number}: {ask}"
    for number, (given, right, ask) in enumerate(
        zip(answered_at_ms, truth_ms, asks, strict=True), start=1
    )
    if given is None or abs(given - right) > 1e-6
]
print(
    "\n- ".join(["Not yet.", *wrong])
    if wrong
    else "Right. The last one waited for company that never came."
)

# %% [markdown]
# ## What your server can carry
#
# The simulation below draws its service times from *your* samples, outliers included. Before
# you look: at which rate, in pictures per second, can a server that takes them one at a time
# no longer keep up? You have the number for it.

# %% locked="capacities" measures=true
latency = cases.load_latency_case(EVIDENCE / "latency.json")
measured = policy_record.service_times(latency)
capacity = {b: b / measured.mean_s(b) for b in sorted({1, 8, 32, measured.largest})}
for batch, per_second in capacity.items():
    print(
        f"full batches of {batch}: {1e3 * measured.mean_s(batch):.4f} ms each on average,",
        end="",
    )
    print(f" at most {per_second:,.0f} pictures/s")

# %% [markdown]
# ## Turn the knobs
#
# `draw` simulates 20,000 requests at random moments (a Poisson stream) and shows what became
# of them: on the left the share of requests that were answered within a time, for your policy
# and for a server without batches; on the right where the time went.

# %% locked="define_draw" measures=true
REQUESTS = 20_000
PARTS = (
    ("queueing_s", "waiting for the server", ORANGE, "//"),
    ("fill_s", "waiting for the batch to fill", BLUE, ".."),
    ("service_s", "being computed", GREEN, ""),
)
fastest_ms = 1e3 * min(float(times[0]) for times in measured.samples_s.values())
ranks = np.linspace(0, REQUESTS - 1, 400).astype(int)  # a curve needs no more points


def draw(rate_per_s, max_batch, max_wait_ms):
    """One simulated run as a picture, and what it says in words."""
    arrivals = batching.arrival_times_s(batching.Poisson(rate_per_s), REQUESTS)
    chosen = batching.Policy(max_batch, max_wait_ms / 1e3)
    figure = Figure(figsize=(9.5, 3.2), dpi=80)  # plain and small: a slider should not lag
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.16, top=0.88, wspace=0.35)
    in_words = []
    sides = ((batching.Policy(1), "one by one", GREY, "--"), (chosen, str(chosen), BLUE, "-"))
    for height, (policy, name, colour, style) in enumerate(sides):
        run = batching.simulate(arrivals, measured, policy)
        times_ms = np.sort(1e3 * run.time_in_system_s)
        left.plot(times_ms[ranks], (ranks + 1) / REQUESTS, style, color=colour, label=name)
        start = 0.0
        for field, label, part_colour, hatch in PARTS:
            width = 1e3 * float(getattr(run, field).mean())
            right.barh(height, width, left=start, color=part_colour, hatch=hatch, label=label)
            start += width
        load = batching.load(rate_per_s, measured, policy)
        p95_ms = times_ms[-(-19 * REQUESTS // 20) - 1]
        tail = f"p95 {p95_ms:.3g} ms" if load < 1 else "the queue grows for ever"
        in_words.append(f"{name}: load {load:.2f}, {tail}")
    left.axhline(0.95, color=GREY, linewidth=0.6, linestyle=":")
    left.set_xscale("log")
    left.minorticks_off()
    left.set_xlim(0.8 * fastest_ms, 300)
    left.xaxis.set_major_formatter("{x:g}")
    left.set(xlabel="time in the system, ms (log scale)", ylabel="share answered by then")
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, frameon=False)
    right.set_yticks([0, 1], [name.replace(", ", "\n") for _, name, *_ in sides])
    right.set(xlabel="mean time of a request, ms", ylabel="policy")
    names, labels = right.get_legend_handles_labels()
    figure.legend(names[:3], labels[:3], loc="upper right", ncols=3, fontsize=8, frameon=False)
    words = f"{rate_per_s:,.0f} requests/s; " + "; ".join(in_words) + "."
    return DescribedFigure(figure, words), {"text/plain": f"In words: {words}"}


# %% [markdown]
# Predict, then look: half of what a server without batches can carry arrives, and the policy
# is *batch 8, wait 1 ms*. Which of the two curves lies further left, and which of the three
# parts is the largest?

# %% locked="knobs" measures=true
picture, words = draw(round(0.5 * capacity[1], -2), 8, 1.0)
view = display(picture, display_id=True)
says = display(words, raw=True, display_id=True)

# Where there are no sliders, the figure above stays; change the three numbers, run it again.
try:
    import ipywidgets as widgets
except ImportError:
    print("Sliders need ipywidgets; draw(rate_per_s, max_batch, max_wait_ms) works without.")
else:
    wide = {"style": {"description_width": "9em"}, "layout": {"width": "32em"}}
    knobs = (
        widgets.FloatLogSlider(
            value=0.5 * capacity[1],
            min=float(np.log10(0.02 * capacity[1])),
            max=float(np.log10(1.2 * max(capacity.values()))),
            step=0.02,
            readout_format=",.0f",
            description="arrivals per second",
            continuous_update=False,
            **wide,
        ),
        widgets.SelectionSlider(
            value=8,
            options=[
                size for size in (1, 2, 4, 8, 16, 32, 64, 128) if size <= measured.largest
            ],
            description="largest batch",
            continuous_update=False,
            **wide,
        ),
        widgets.SelectionSlider(
            value=1.0,
            options=[0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0],
            description="longest wait, ms",
            continuous_update=False,
            **wide,
        ),
    )

    def redraw(_change):
        picture, words = draw(*(knob.value for knob in knobs))
        view.update(picture)
        says.update(words, raw=True)

    for knob in knobs:
        knob.observe(redraw, names="value")
    display(widgets.VBox(knobs))

# %% [markdown]
# Three things to try, each with a guess first:
#
# 1. Pull the longest wait to 0. Which part of the bar disappears, and is anybody worse off
#    for it?
# 2. Push the rate up to where "one by one" cannot keep up. Which part of *its* bar explodes,
#    and why does the policy's not?
# 3. At a tiny rate with a long wait: who pays, and for whose benefit?
#
# Now pin it down. Compare *batch 8, wait 1 ms* with *one by one*, by p95 of the time in the
# system. Find one rate at which the batches are better, and one at which they are worse. (A few
# very slow calls in your record can leave no rate at which they are better. Look at its tail,
# and say so: that is an answer too.)

# %% solution="two_rates"
batches_better_at_per_s = None  # requests per second
batches_worse_at_per_s = None  # requests per second
### BEGIN SOLUTION
batches_better_at_per_s = 0.9 * capacity[8]
batches_worse_at_per_s = 0.02 * capacity[1]
### END SOLUTION


# %% locked="check_two_rates" measures=true
def p95_ms(rate_per_s, policy):
    """p95 of the time in the system of 20,000 requests, ms."""
    arrivals = batching.arrival_times_s(batching.Poisson(rate_per_s), REQUESTS)
    run = batching.simulate(arrivals, measured, policy)
    return 1e3 * batching.Objective(1.0).reached_s(run)


pairs = (("better", batches_better_at_per_s), ("worse", batches_worse_at_per_s))
for word, rate in pairs:
    if not rate:
        print(f"Not yet: a rate at which the batches are {word}.")
        continue
    batched, single = p95_ms(rate, batching.Policy(8, 0.001)), p95_ms(rate, batching.Policy(1))
    right = batched < single if word == "better" else batched > single
    print("Right:" if right else f"Not yet, they should be {word} here:", end=" ")
    print(f"at {rate:,.0f}/s p95 is {batched:.3g} ms with batches, {single:.3g} ms one by one.")

# %% [markdown]
# **Is there a policy with batches that is never worse than one by one?** Which of the three
# sliders decides that, and what would you have to know about the service times to be sure?
#
# <details><summary>One answer</summary>
#
# The longest wait: a greedy server never waits for company, so at a low rate it does exactly
# what "one by one" does. To be sure one needs that a batch never takes longer than its members
# one after the other. Is that so for your samples? And for the decoding of a JPEG?
#
# </details>

# %% [markdown]
# ## Where is the knee?
#
# Each line below is one largest batch, simulated at eleven loads. Before you run it: will a
# larger batch move the knee, the low end of the line, or both? And the wait?

# %% locked="knee" measures=true
sizes = [size for size in (1, 8, 32, 128) if size <= measured.largest]
policies = [batching.Policy(size, wait) for wait in (0.0, 0.001) for size in sizes]
found = batching_plots.curves(policies, measured, batching.Objective(0.010), requests=5_000)
picture = batching_plots.latency_against_rate(found, batching.Objective(0.010))
show(picture.figure, picture.alt_text)

# %% [markdown]
# ## Declare
#
# An objective comes from people and systems, not from what the server happens to reach. So
# first the load and the limit, then the policy. Fill in `declared`: requests per second on
# average, the limit in ms for p95 of the time in the system, and in a sentence where both
# come from. You may invent the mail centre; its belt, its cameras and its patience should
# fit together.
#
# `boundary` says whose service times the server has. `"model"` is right where pictures arrive
# ready. If yours arrive as JPEG of 256 pixels, it is `"preprocessing_256"`.

# %% solution="declared"
declared = {}  # {"rate_per_s": ..., "slo_p95_ms": ..., "because": "..."}
boundary = "model"
### BEGIN SOLUTION
declared = {
    "rate_per_s": float(round(0.4 * capacity[8], -2)),
    "slo_p95_ms": 20.0,
    "because": "cameras times digits per letter on the belt; the gate after the last camera needs"
    " the digit 20 ms after the picture was taken",
}
### END SOLUTION

# %% [markdown]
# Which of the candidates will be cheapest, that is, take the smallest share of the server's
# time? Guess before you run it. Every candidate sees the same eight streams of requests.

# %% locked="candidates" measures=true
choice = None
if not declared:
    print("Not yet: fill in declared, and run this cell again.")
else:
    times = policy_record.service_times(latency, boundary)
    objective = batching.Objective(declared["slo_p95_ms"] / 1e3)
    choice = batching.choose_policy(declared["rate_per_s"], objective, times, requests=10_000)
    for one in choice.readings:
        span = f"{1e3 * one.low_s:9.3g} to {1e3 * one.high_s:9.3g} ms"
        print(f"{one.policy!s:24} load {one.load:5.2f}  p95 {span}  {one.verdict:7}", end="")
        print(f"busy {100 * one.cost:5.1f} %")
    print("\nchoose_policy:", choice.reason)

# %% [markdown]
# The last line is a suggestion, by one criterion. Two candidates may differ by 2 % in cost
# and by a factor of 3 in p95; a limit inside an interval means that these runs cannot tell.
# Choose yourself.

# %% solution="policy"
policy = None  # batching.Policy(max_batch=..., max_wait_s=...)
### BEGIN SOLUTION
policy = choice.closest.policy
### END SOLUTION

# %% locked="predict" measures=true
facts = None
if not declared or policy is None:
    print("Not yet: declare a load and choose a policy, and run this cell again.")
else:
    facts = policy_record.collect(EVIDENCE, declared, policy, boundary)
    print(json.dumps(facts, indent=1))

# %% [markdown]
# ## What would make it false?
#
# A prediction holds for what was declared. The rate doubles; the requests come in bursts of
# 16, one envelope each; the server's processor is shared and everything takes twice as long.
# **Which of the three breaks your objective first?** Put them in order before you run it.

# %% locked="stress" measures=true
if facts:
    rate, limit_ms = declared["rate_per_s"], declared["slo_p95_ms"]
    slower = batching.Measured({size: 2 * row for size, row in times.samples_s.items()})
    cases_to_try = (
        ("as declared", batching.Poisson(rate), times),
        ("evenly spaced", batching.Regular(rate), times),
        ("twice the rate", batching.Poisson(2 * rate), times),
        ("bursts of 16", batching.Bursts(rate, 16), times),
        ("server half as fast", batching.Poisson(rate), slower),
    )
    figure, axes = plt.subplots(figsize=(8.5, 3), layout="constrained")
    in_words = []
    for height, (name, arrivals, service) in enumerate(cases_to_try):
        run = batching.simulate(batching.arrival_times_s(arrivals, 20_000), service, policy)
        reached_ms = 1e3 * objective.reached_s(run)
        load = batching.load(arrivals.rate_per_s, service, policy)
        inside = reached_ms <= limit_ms and load < 1
        axes.plot(reached_ms, height, "o" if inside else "X", color=BLUE if inside else ORANGE)
        end = f"p95 {reached_ms:.3g} ms" if load < 1 else "the queue grows for ever"
        in_words.append(f"{name}: load {load:.2f}, {end}")
        axes.annotate(
            f"load {load:.2f}", (reached_ms, height), (8, -3), textcoords="offset points"
        )
    axes.plot([], [], "o", color=BLUE, label="within the limit")
    axes.plot([], [], "X", color=ORANGE, label="not")
    axes.axvline(limit_ms, color=GREY, linestyle="--", label="limit")
    axes.set_xscale("log", subs=[2, 5])
    axes.margins(x=0.25)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.invert_yaxis()
    axes.set_yticks(range(len(cases_to_try)), [name for name, *_ in cases_to_try])
    axes.set(
        xlabel="p95 of the time in the system, ms (log scale)", title="One policy, five days"
    )
    axes.set_ylabel("what came")
    figure.legend(loc="outside lower center", ncols=3)
    show(figure, "; ".join(in_words) + ".")

# %% [markdown]
# ## Say what it supports
#
# `verdict` is `"meets"`, `"misses"` or `"unsure"`: what does the prediction say about the
# objective? Look at the interval, not at its middle. `not_covered`: at least four sentences on
# what nobody should conclude from it. Think of arrivals, of the machine, of what the timer
# left out, of what changes in a year.

# %% solution="claims"
claims = {"verdict": None, "not_covered": []}
### BEGIN SOLUTION
interval_ms = (facts["predicted"]["low_ms"], facts["predicted"]["high_ms"])
low_ms, high_ms = (np.inf if end is None else end for end in interval_ms)
limit = declared["slo_p95_ms"]
claims = {
    "verdict": "meets" if high_ms <= limit else "misses" if low_ms > limit else "unsure",
    "not_covered": [
        "arrivals in bursts or with a daily rhythm: independent requests were simulated",
        "any other machine: the service times are samples of this one, on one afternoon",
        "what lies outside the timer: cameras, the network between, writing the answer",
        "slower calls than the slowest sample: the simulation cannot draw what nobody saw",
        "service times that hang together: a busy minute makes many calls in a row slow",
    ],
}
### END SOLUTION

# %% locked="write_policy" measures=true
if not facts or not claims["verdict"]:
    print("Not yet: policy.json is written when there are a prediction and a verdict.")
else:
    print(policy_record.write(EVIDENCE, facts | claims), "written:", claims["verdict"])

# %% [markdown]
# ## Would it survive a review?
#
# Each cell is silent when it finds nothing. The first repeats your prediction from
# `latency.json` with other random numbers, so it agrees within both intervals and not to the
# last digit.


# %% locked="look_into_the_policy" measures=true
def nothing_found(area):
    """Silent if this part of the record holds up; otherwise what was found and what to redo."""
    found = [str(finding) for finding in policy_record.check(EVIDENCE) if finding.area == area]
    assert not found, found[0]


# %% test="policy_prediction" points=3 measures=true
# The same simulation, fed by the same measured times, predicts the same.
nothing_found("policy_prediction")

# %% test="policy_claims" points=2 measures=true
# The verdict follows from interval and limit; origin and scope are stated.
nothing_found("policy_claims")

# %% [markdown]
# ## Defend it
#
# Answer in the cell below, in half a page and with your own numbers.
#
# 1. Where do rate and objective come from, and who notices first if they are wrong?
# 2. Why this largest batch and this longest wait? What would half and twice of each have cost,
#    and whom?
# 3. The rate doubles overnight. What breaks first, and which number would have told you
#    before your users did?
# 4. Your service times are one timer's. Would the choice stand if the server also had to
#    decode a JPEG of 256 pixels? Try it before you answer.

# %% [markdown] written="policy_defence" points=4
# 1. From the belt: letters per second times digits per letter, with the gate's distance as the
#    limit. If the rate is wrong the queue shows it; if the limit is wrong the gate does.
# 2. A smaller batch carries less before its queue grows, a larger one saves little more per
#    picture; a longer wait would be paid by everybody at quiet times and save nobody at busy
#    ones, since batches fill by themselves then.
# 3. The load: above 1 no policy helps but a larger batch or a second server. The mean batch
#    size nears the largest batch long before p95 shows anything.
# 4. No: decoding costs every picture the same, so a batch saves almost nothing per picture and
#    only adds the wait for the others. There batches of one or two are the right answer.

# %% [markdown]
# Download `evidence/` if this session is a hosted one; its files do not stay. Save, press
# **Validate** if your Jupyter has that button, and hand in the folder as your course asks.
