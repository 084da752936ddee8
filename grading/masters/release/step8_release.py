# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Step 8: may this smaller model ship?
#
# "Memory went down and it is faster everywhere." You have two models, their predictions and
# 1,200 timings. Today you write down what they support, what they do not, and a decision that
# somebody else can check without trusting you.
#
# | graded here | points |
# |---|---|
# | `release.json` belongs to these very files | 3 |
# | the numbers keep the limits | 3 |
# | it claims no more than was measured | 2 |
# | your written answer, read by a person | 3 |
#
# You need `evidence/` with the record and the summary from step 7. Plan 45 minutes, most of
# them for thinking.

# %% locked="setup_step8"
import json
from pathlib import Path

EVIDENCE = Path("evidence")


def read(name):
    """One JSON file of the evidence, or None if it is not there yet."""
    path = EVIDENCE / name
    return json.loads(path.read_text()) if path.exists() else None


benchmark, regression_result = read("benchmark.json"), read("regression.json")
if not (benchmark and regression_result):
    print("STOP: evidence/ lacks what this step judges. Run step1_to_6_prepare.ipynb, then")
    print("step7_latency_stats.ipynb to its end, then restart this notebook.")
elif not benchmark["summary"]:
    print("STOP: evidence/benchmark.json has no summary: your work of step 7 is missing here.")
    print("Open step7_latency_stats.ipynb, finish latency_stats, run that notebook to its")
    print("end, then restart this one. The cells below run without it, but whoever checks")
    print("your release will find the summary missing.")

# %% [markdown]
# ## What the gate asks
#
# Two limits were agreed on before anybody measured. The int8 model **file** has at most 32
# KiB. It loses at most 1 percentage point of accuracy on the 500 test pictures.
#
# Turn them into things one can count: how many bytes are 32 KiB? How many pictures may int8
# get wrong beyond what float32 gets wrong?

# %% solution="limits_by_hand"
limit_bytes = None  # bytes
pictures_that_may_be_lost = None  # images
### BEGIN SOLUTION
limit_bytes = 32 * 1024
pictures_that_may_be_lost = 500 // 100
### END SOLUTION

# %% locked="check_limits_by_hand"
wrong = []
if limit_bytes != 32 * 1024:
    wrong.append("bytes: the i in KiB makes it a power of two, not of ten")
if pictures_that_may_be_lost != 500 * 0.01:
    wrong.append("pictures: a percentage point is one in a hundred of the 500")
print(
    "\n- ".join(["Not yet.", *wrong])
    if wrong
    else "Right. And nobody has said a word about the memory of a process."
)

# %% [markdown]
# ## Five sentences from the meeting
#
# For each: does *your* evidence say `"true"`, `"false"`, or is it `"open"`? Open is not a
# weak answer. It is the right one whenever the evidence cannot decide.

# %% locked="show_evidence"
from deep_learning_cases import stats

verdicts = {}
for batch_size in ("1", "32"):
    int8, fp32 = (
        [run["samples_us"][batch_size] for run in benchmark["runs"] if run["model"] == model]
        for model in ("int8", "fp32")
    )
    found = stats.compare(int8, fp32)
    verdicts[batch_size] = found["verdict"]
    print(
        f"batch {batch_size}: int8 takes {found['ratio']:.2f} times as long as fp32,", end=" "
    )
    print(f"95 % interval {found['low']:.2f} to {found['high']:.2f}: {found['verdict']}")
for model in ("fp32", "int8"):
    peaks = [run["peak_rss_bytes"] for run in benchmark["runs"] if run["model"] == model]
    size = benchmark["models"][model]["bytes"]
    print(f"{model}: file {size:,} bytes, process peak {max(peaks):,} bytes")
interval = regression_result["loss_interval_pp"]
print(f"accuracy lost: {regression_result['loss_pp']:.1f} points, ", end="")
print(f"95 % interval {interval['low']:.2f} to {interval['high']:.2f}")

# %% solution="meeting"
the_file_is_smaller = None
int8_is_faster_at_batch_1_on_this_machine = None
int8_is_faster_at_batch_32_on_this_machine = None
on_all_digits_of_the_world_it_loses_less_than_1_point = None
it_is_faster_on_our_customers_devices = None
### BEGIN SOLUTION
words = {"faster": "true", "slower": "false", "inconclusive": "open"}
the_file_is_smaller = "true"
int8_is_faster_at_batch_1_on_this_machine = words[verdicts["1"]]
int8_is_faster_at_batch_32_on_this_machine = words[verdicts["32"]]
on_all_digits_of_the_world_it_loses_less_than_1_point = "open"
it_is_faster_on_our_customers_devices = "open"
### END SOLUTION

# %% locked="check_meeting"
as_word = {"faster": "true", "slower": "false", "inconclusive": "open"}
sizes = [benchmark["models"][model]["bytes"] for model in ("int8", "fp32")]
answers = [
    (
        "the file",
        the_file_is_smaller,
        "true" if sizes[0] < sizes[1] else "false",
        "compare two numbers of bytes",
    ),
    (
        "batch 1",
        int8_is_faster_at_batch_1_on_this_machine,
        as_word[verdicts["1"]],
        "on which side of 1 does the whole interval lie?",
    ),
    (
        "batch 32",
        int8_is_faster_at_batch_32_on_this_machine,
        as_word[verdicts["32"]],
        "on which side of 1 does the whole interval lie?",
    ),
    (
        "all digits",
        on_all_digits_of_the_world_it_loses_less_than_1_point,
        "open",
        "500 pictures from one source were tested; who wrote the others?",
    ),
    (
        "customers",
        it_is_faster_on_our_customers_devices,
        "open",
        "which of their devices did the timer run on?",
    ),
]
wrong = [
    f"{name}: you say {given!r}; {question}"
    for name, given, right, question in answers
    if given != right
]
print(
    "\n- ".join(["Think again:", *wrong])
    if wrong
    else "Five sentences, and each now says no more than the evidence."
)

# %% [markdown]
# Now the other half of Monday's sentence: "memory went down". Which memory? Write down what
# you would answer, in one sentence with two numbers.

# %% [markdown]
# ## Write the decision
#
# `release.collect` takes everything that can be computed from the files: hashes, sizes,
# accuracies, and the latencies, which it counts anew from your raw timings. It does not read
# your function's summary: a reviewer compares the two. Nobody types a number that a computer
# can check.

# %% locked="collect_facts" measures=true
from deep_learning_cases import release

facts = release.collect(EVIDENCE)
print(json.dumps(facts, indent=1))

# %% [markdown]
# What no computer fills in is what you *say*. Write a dictionary `claims` with four keys:
#
# | key | value |
# |---|---|
# | `decision` | `"release"` or `"reject"` |
# | `target_benchmark_required` | must the real device be measured, too? `True` or `False` |
# | `universally_faster` | is it faster everywhere, for every batch? `True` or `False` |
# | `not_claimed` | a list of sentences: what a reader must not conclude from this evidence |
#
# Think of the last one as the most useful part: what the next person need not find out the
# hard way. At least five things belong on that list. Three are quantities that only the real
# device can show, one is a promise about time that a percentile cannot give, and one is
# something no hash can know about your samples.

# %% solution="release_record"
claims = {}
### BEGIN SOLUTION
claims = {
    "decision": "release",
    "target_benchmark_required": True,
    "universally_faster": False,
    "not_claimed": [
        "latency on the real device: measured here was one other machine, with one thread",
        "memory on the real device: the peaks belong to a Python process with ONNX Runtime",
        "power, heat and hours of running: nothing of these was measured",
        "a hard real-time bound: a p95 says nothing about the slowest calls that will come",
        "that the times are authentic: hashes bind files, they do not watch the clock",
    ],
}
### END SOLUTION

# %% locked="write_release" measures=true
release.write(EVIDENCE, {**facts, **claims})
print((EVIDENCE / "release.json").name, "written; the decision is", claims["decision"])

# %% [markdown]
# ## Would it survive a review?
#
# The three cells below recompute everything from the files, as a reviewer would. Each is
# silent when it finds nothing.


# %% locked="look_into_the_release" measures=true
def nothing_found(area):
    """Silent if this part of the record holds up; otherwise what was found and what to redo."""
    assert (EVIDENCE / "release.json").exists(), (
        "no release.json yet: fill in claims, then run the cell that writes it."
    )
    found = [str(finding) for finding in release.check(EVIDENCE) if finding.area == area]
    assert not found, found[0]


# %% test="release_linkage" points=3 measures=true
# Every hash and every number is that of the files in this folder.
nothing_found("release_linkage")

# %% test="release_limits" points=3 measures=true
nothing_found(
    "release_limits"
)  # size and accuracy keep the limits, and the decision follows from them

# %% test="release_claims" points=2 measures=true
# It claims what was measured, and says what was not.
nothing_found("release_claims")

# %% [markdown]
# ## The report
#
# One file, readable without a network, made from the same evidence. Look at its first screen
# as if you had missed the meeting: what would you ask?

# %% locked="build_report" measures=true
from deep_learning_cases import report

report.build(EVIDENCE)
report.show(EVIDENCE)

# %% [markdown]
# ## Your answer to the review meeting
#
# Four people look at you. Answer them in the cell below, in your own words and with your own
# numbers. Half a page is plenty.
#
# 1. *The backend engineer:* From where to where did you measure?
# 2. *The product manager:* Who waits how long, and is that the situation you measured?
# 3. *The colleague who wants to calibrate again:* What must I redo after a new conversion,
#    and why is a new hash not enough?
# 4. *The head of the department:* What would make you withdraw this release?

# %% [markdown] written="release_scope" points=3
# 1. The timer starts with a batch ready in memory and stops when `engine.run` returns.
#    Loading the model, decoding and scaling the pictures, requests, queues and the network
#    are outside, so these are not response times.
# 2. Somebody who sends one picture waits at least one call at batch 1 plus everything outside
#    the timer. The throughput at batch 32 does not describe that person; for them a batch
#    would first have to fill.
# 3. Regression and measuring, both anew: the new file makes other predictions and takes other
#    times. A new hash over old samples would link well and be false.
# 4. A class whose accuracy fell in a larger test, a p95 on the real device beyond the
#    objective, or evidence that the samples were not taken from these files.

# %% [markdown]
# ## Take it with you
#
# A hosted session's files do not stay. The last cell packs notebooks' evidence, raw samples
# and report into one file with a list of hashes; download it, and hand in this folder as your
# course asks you to.

# %% locked="pack_evidence" measures=true
import os

from IPython.display import HTML

from deep_learning_cases import pack

package = os.path.relpath(pack.pack(EVIDENCE))
HTML(f'<a href="{package}" download>{package}</a>')
