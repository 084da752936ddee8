# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Which int8, and compared with what?
#
# "We quantize to int8. Then it is four times smaller, twice as fast, and just as accurate." It
# sounds like one sentence. It is several claims, each about something else, and today you find
# out on your own machine which of them you would sign.
#
# | graded here | points |
# |---|---|
# | `per_class_accuracy`: values, classes without images, manners | 4 + 2 + 1 |
# | `quantization.json`: the record is whole and its numbers follow from its samples | 3 |
# | `claims.json`: verdicts, the numbers they rest on, how far they reach | 4 + 2 + 2 |
# | your answer to the review meeting, read by a person | 4 |
#
# Nobody grades milliseconds, and no claim has to come out as anybody hopes. Predictions are
# not graded either: write them down before you run the next cell, so that the numbers can
# surprise you. Plan 45 minutes; two or three of them are the machine's.

# %% locked="setup_compare"
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deep_learning_cases import stats
from deep_learning_cases.notebook_figures import show

EVIDENCE = Path("evidence")
RECORD = EVIDENCE / "quantization.json"
INK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"

# %% [markdown]
# ## One word, several things
#
# One network is trained in float32: 18,154 parameters, digits of 8 by 8 pixels. From it come
# these:
#
# | name | what is int8 | when are activations rounded |
# |---|---|---|
# | `fp32` | nothing | never |
# | `dynamic` | weights of the two dense layers | on the fly, in every call |
# | `static` | weights and activations of all four layers | by ranges seen on 320 calibration images |
# | `qat` | the same | the same, and training went on for a while with the rounding in it |
# | `onnx_fp32` | nothing; the same weights in another runtime | never |
# | `onnx_int8` | weights and activations, written as QDQ | by the same calibration images |
#
# The last two run in ONNX Runtime, the others in PyTorch, with a library of int8 kernels made
# for your processor. When somebody says "the int8 model", which row do they mean?
#
# Work out two sizes with a pencil. The layers hold, weights + biases: 144 + 16 and 4,608 + 32
# (convolutions), 12,288 + 96 and 960 + 10 (dense). A float32 takes 4 bytes, an int8 takes 1,
# biases stay float32. Names and headers are left out.

# %% solution="sizes_by_hand"
bytes_fp32 = None  # bytes, everything in float32
bytes_dynamic = None  # bytes, with the weights of the dense layers in int8
### BEGIN SOLUTION
bytes_fp32 = 4 * 18_154
bytes_dynamic = 4 * (144 + 16 + 4_608 + 32 + 96 + 10) + 12_288 + 960
### END SOLUTION

# %% locked="check_sizes_by_hand"
wrong = []
if bytes_fp32 != 4 * 18_154:
    wrong.append("fp32: how many parameters, and how many bytes each?")
if bytes_dynamic != 4 * 4_906 + 13_248:
    wrong.append("dynamic: which numbers keep their 4 bytes? Do not forget the biases.")
print(
    "\n- ".join(["Not yet.", *wrong])
    if wrong
    else f"Right: {bytes_dynamic / bytes_fp32:.2f} of the size. Where is the factor of four?"
)

# %% [markdown]
# ## Predict
#
# The times below are medians of one call, on one thread. Put in what you believe now.

# %% solution="prediction"
static_size_ratio = None  # saved static model / saved fp32 model
static_time_ratio_batch_1 = None  # static / fp32, one image in a call
static_time_ratio_batch_32 = None  # static / fp32, 32 images in a call
process_memory_saved_percent = None  # of the whole process, static instead of fp32
### BEGIN SOLUTION
static_size_ratio = 0.25
static_time_ratio_batch_1 = 0.5
static_time_ratio_batch_32 = 0.5
process_memory_saved_percent = 10
### END SOLUTION

# %% [markdown]
# ## How much of a difference is noise here?
#
# Before you compare six versions, compare one network with *itself*, in fresh processes. There
# is nothing to find, so whatever is found is the machine's. The load counts the processes that
# want a core, over the last 1, 5 and 15 minutes.

# %% locked="how_noisy" measures=true
from deep_learning_cases import doctor

print(*doctor.lines(doctor.examine()), sep="\n")

# %% [markdown]
# A version that is faster or slower by less than the percentage in the A/A lines cannot be told
# apart from its baseline here today: "inconclusive" is then the verdict to expect, and no
# failure of yours. The reading is one network's in ONNX Runtime, over five rounds. Your three
# rounds tell apart less, and PyTorch may be noisier: the intervals further down show how much.
#
# With a load above the number of your cores the versions also wait for a core. They take turns,
# so a ratio may survive that; a p95, or microseconds to quote elsewhere, does not. Sizes and
# predictions are the same on the busiest machine. On a shared server you may have to live with
# it: write the load down, and claim less. It costs no points.

# %% [markdown]
# ## Measure
#
# First the loop that takes the times. Find the two readings of the clock. Every call gets an
# input that nobody has seen before, drawn outside the timer. What could a runtime, or a
# processor's cache, do for you if the same image came 200 times?

# %% locked="read_the_loop" measures=true
import inspect

from deep_learning_cases import comparison_trial

print(inspect.getsource(comparison_trial.measure_series))

# %% [markdown]
# Now all six versions: three rounds of fresh processes, in turns; in each process 10 warm-up
# calls and 200 timed calls for batches of 1, 8 and 32. It takes one to three minutes. A record
# that is whole is kept; to measure again, delete `evidence/quantization.json`.

# %% locked="run_comparison" measures=true
from deep_learning_cases import comparison, subjects

digits = subjects.load("digits")
if RECORD.exists() and not json.loads(RECORD.read_text())["partial"]:
    print(RECORD, "is there already and stays as it is.")
else:
    comparison.compare(digits, EVIDENCE, comparison.Plan(rounds=3, threads=1), progress=True)
    print(RECORD, "written.")

# %% locked="read_the_record"
record = json.loads(RECORD.read_text()) if RECORD.exists() else {"runs": [], "configs": {}}
versions = list(record["configs"])


def rounds_of(version, batch_size):
    """The timings of one version and batch size, one list per round, in microseconds per batch."""
    runs = [run for run in record["runs"] if run["config"] == version]
    return [run["samples_us"][str(batch_size)] for run in runs]


def median_us(version, batch_size):
    """The median of all rounds, merged."""
    return float(
        np.median([sample for one in rounds_of(version, batch_size) for sample in one])
    )


for version in versions:
    ran = (record["configs"][version]["backend"] or {}).get("int8_kernels", {})
    kernels = ", ".join(f"{count} from {library}" for library, count in ran.items())
    print(f"{version:<10}", record["configs"][version]["precision"], "|", kernels or "-")
if not versions:
    print("There is no record yet: run the cell above.")

# %% [markdown]
# ## Smaller
#
# What ships is the `state_dict`: numbers and their names, no code. What a process holds is
# another quantity, and there are two ways to look at it. `tracemalloc` counts what Python and
# NumPy allocate; the resident size (RSS) is everything that the process keeps in the machine's
# main memory. Read the table column by column and ask of each: *whose* bytes are these?

# %% locked="sizes" measures=true
print(f"{'':10} {'saved':>10} {'numbers alone':>14} {'tracemalloc':>12} {'RSS':>13}   bytes")
for version in versions:
    size, memory = record["configs"][version]["size"], record["memory"][version]["1"]
    saved = size["state_dict_bytes"] or size["file_bytes"]
    alone = f"{size['tensor_bytes']:,}" if size["tensor_bytes"] else "-"
    traced, resident = memory["tracemalloc_peak_bytes"], memory["rss_max_bytes"]
    print(f"{version:<10} {saved:>10,} {alone:>14} {traced:>12,} {resident:>13,}")
print("By hand, numbers alone: fp32", bytes_fp32, "and dynamic", bytes_dynamic)

# %% [markdown]
# Your sum for `dynamic` misses a few bytes. What else does an int8 weight need before anybody can
# calculate with it?
#
# `static` saved how many bytes against `fp32`, and what share of the resident size of the
# `fp32` process is that?

# %% solution="memory_arithmetic"
bytes_saved = None  # bytes of the state_dict
share_of_rss_percent = None  # %
### BEGIN SOLUTION
bytes_saved = (
    record["configs"]["fp32"]["size"]["state_dict_bytes"]
    - record["configs"]["static"]["size"]["state_dict_bytes"]
)
share_of_rss_percent = 100 * bytes_saved / record["memory"]["fp32"]["1"]["rss_max_bytes"]
### END SOLUTION

# %% locked="check_memory_arithmetic" measures=true
sizes = {v: record["configs"][v]["size"]["state_dict_bytes"] for v in ("fp32", "static")}
rss = record["memory"]["fp32"]["1"]["rss_max_bytes"]
share = 100 * (sizes["fp32"] - sizes["static"]) / rss
if bytes_saved != sizes["fp32"] - sizes["static"]:
    print("Not yet: the saving is the difference of two numbers in the column 'saved'.")
elif not share_of_rss_percent or not 0.8 < share_of_rss_percent / share < 1.25:
    print("Not yet: saving divided by the resident size, times 100. Are both in bytes?")
else:
    print(f"Right: {share:.2g} %. And you had predicted {process_memory_saved_percent} %.")

# %% [markdown]
# Did the resident size of `static` perhaps even *grow*? What has to be loaded before a process
# can multiply int8 numbers, that float32 did without?

# %% [markdown]
# ## As accurate
#
# Top-1 is one number for ten classes. It can stay where it is while one class falls, if others
# rise, and whoever writes nothing but that digit will not be consoled by the average. So you
# need a table by class. First by hand: eight images, three classes.
#
# | image | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
# |---|---|---|---|---|---|---|---|---|
# | label | 0 | 0 | 0 | 0 | 1 | 1 | 2 | 2 |
# | prediction | 0 | 0 | 0 | 1 | 1 | 2 | 2 | 2 |
#
# How accurate is each class, and how accurate are all images together?

# %% solution="classes_by_hand"
class_0 = class_1 = class_2 = None  # fractions of each class's images
all_images = None  # fraction of all images
### BEGIN SOLUTION
class_0, class_1, class_2 = 3 / 4, 1 / 2, 2 / 2
all_images = 6 / 8
### END SOLUTION

# %% locked="check_classes_by_hand"
asked = [
    ("class 0", class_0, 3 / 4, "four images are of class 0; how many were recognised?"),
    ("class 1", class_1, 1 / 2, "only labels say which images are of class 1"),
    ("class 2", class_2, 2 / 2, "may image 6 count for class 2?"),
    ("all", all_images, 6 / 8, "right answers over all images"),
]
wrong = [f"{name}: {ask}" for name, given, right, ask in asked if given != right]
print(
    "\n- ".join(["Not yet.", *wrong])
    if wrong
    else "Right. All images together: the mean of the classes, or something else?"
)

# %% [markdown]
# ## Your turn: `per_class_accuracy`
#
# `predictions` and `labels` hold one class for each image, as whole numbers from 0: two lists,
# tuples or NumPy arrays. `classes` is how many classes there are. Return a list with one entry
# for each class, in their order: **the fraction of the class's images that were recognised**,
# not rounded. A NumPy array is fine as well.
#
# A class without images has no accuracy: its entry is `None` (or NaN, where arrays want a
# number), and the classes behind it keep their place.
#
# Two manners: the two sequences stay as they were, and nonsense is refused with a
# `ValueError`: sequences of different length, a label or a prediction that is no class from 0
# to `classes - 1`.


# %% solution="per_class_accuracy"
def per_class_accuracy(predictions, labels, classes):
    """The fraction of each class's images that were recognised."""
    ### BEGIN SOLUTION
    predictions, labels = [int(x) for x in predictions], [int(x) for x in labels]
    if len(predictions) != len(labels):
        raise ValueError(f"{len(predictions)} predictions for {len(labels)} labels")
    for value in {*predictions, *labels}:
        if not 0 <= value < classes:
            raise ValueError(f"{value} is no class: expected 0 to {classes - 1}")
    images, correct = [0] * classes, [0] * classes
    for predicted, label in zip(predictions, labels, strict=True):
        images[label] += 1
        correct[label] += predicted == label
    return [c / n if n else None for c, n in zip(correct, images, strict=True)]
    ### END SOLUTION


# %% [markdown]
# The next three cells hold examples that can be worked out by hand. They are silent when your
# function is right. Hidden grading asks the same with other predictions.


# %% locked="visible_examples"
def expect(want, predictions, labels, classes, slips=None):
    """Compare your answer with the one worked out by hand; ``slips`` names what others equal."""
    answer = per_class_accuracy(predictions, labels, classes)
    assert answer is not None, "the answer is None: does every path end in a return?"
    kind = type(answer).__name__
    listed = hasattr(answer, "__len__") and not isinstance(answer, dict)
    assert listed, f"the answer is a {kind}: expected a list with an entry for each class"
    got = [None if x is None or x != x else x for x in answer]
    assert len(got) == classes, f"{len(got)} entries for {classes} classes"

    def same(other):
        pairs = zip(got, other, strict=True)
        return all(a is b if None in (a, b) else abs(a - b) < 1e-6 for a, b in pairs)

    for slip, ask in slips or ():
        assert not same(slip), f"the answer is {got}: {ask}"
    assert same(want), f"the answer is {got}, by hand it is {want}"


# %% test="per_class_values" points=4
labels_by_hand = [0, 0, 0, 0, 1, 1, 2, 2]
predictions_by_hand = [0, 0, 0, 1, 1, 2, 2, 2]
slips = (
    ([0.75] * 3, "each class has the accuracy of all images"),
    ([3 / 8, 1 / 8, 2 / 8], "were right answers divided by all images?"),
    ([1.0, 1 / 2, 2 / 3], "were they divided by how often the class was predicted?"),
    ([75.0, 50.0, 100.0], "is that percent?"),
    ([3, 1, 2], "are these counts?"),
    ([0, 0, 1], "which division keeps what is behind the point?"),
    ([0.5, 1.0, 0.75], "which class stands at index 0?"),
    ([0.25, 0.5, 0.0], "is that the share of wrong answers?"),
)
expect([0.75, 0.5, 1.0], predictions_by_hand, labels_by_hand, 3, slips)
expect([0.75, 0.5, 1.0], tuple(predictions_by_hand[::-1]), tuple(labels_by_hand[::-1]), 3)
expect([0.75, 0.5, 1.0], np.array(predictions_by_hand), np.array(labels_by_hand), 3)
expect([1 / 3, 5 / 7], [1, 0, 1, 1, 1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1, 1, 1, 1, 1], 2)

# %% test="per_class_empty" points=2
# Nobody wrote a 1 or a 3.
blamed = [([1.0, 0.0, 0.5, 0.0], "was anything recognised wrongly where there was no image?")]
expect([1.0, None, 0.5, None], [0, 0, 1, 2], [0, 0, 2, 2], 4, blamed)

# %% test="per_class_manners" points=1
held, given = [2, 0, 1, 1], [2, 0, 1, 0]
per_class_accuracy(held, given, 3)
assert (held, given) == ([2, 0, 1, 1], [2, 0, 1, 0]), "the caller's lists were changed"
for bad in (([0, 1], [0]), ([0, 1], [0, 2]), ([0, -1], [0, 1]), ([0, 1], [-1, 1])):
    try:
        answer = per_class_accuracy(*bad, 2)
    except ValueError:
        continue
    raise AssertionError(f"predictions, labels = {bad} with 2 classes gave {answer}")

# %% [markdown]
# ## The table by class
#
# Your function, on the predictions of your six versions on 500 test images. One transform, no
# augmentation, the whole test set: a test that is changed a little on every run cannot show a
# change of the network.

# %% locked="table_by_class" measures=true
names, truth = record["data"]["classes"], record["data"]["labels"]
table = {
    version: per_class_accuracy(facts["accuracy"]["predictions"], truth, len(names))
    for version, facts in record["configs"].items()
}
print(f"{'%':10} {'top-1':>6}", *(f"{name:>6}" for name in names))
print(f"{'images':10} {len(truth):>6}", *(f"{truth.count(c):>6}" for c in range(len(names))))
for version, row in table.items():
    top1 = record["configs"][version]["accuracy"]["top1"]
    print(f"{version:<10} {100 * top1:>6.1f}", *(f"{100 * value:>6.1f}" for value in row))
for version in versions:
    if loss := record["configs"][version]["loss"]:
        low, high = loss["interval_pp"]["low"], loss["interval_pp"]["high"]
        print(
            f"{version}: {loss['loss_pp']:.2f} points lost, 95 % interval {low:.2f} to {high:.2f};",
            f"only fp32 right: {loss['lost']}, only int8 right: {loss['gained']}",
        )

# %% [markdown]
# One image of a class with 50 is 2 points. Suppose that nothing changed in your table: how
# large a loss could 500 images still have missed? The interval knows.
#
# **When does a class fall?** Eight bits are generous. The next cell rounds the weights of
# `fp32` to fewer and asks your function about each. Predict: at how many bits does the first
# class lose 5 points, and how much has top-1 lost by then?

# %% locked="fewer_bits" measures=true
import torch

from deep_learning_cases import network

weights = torch.load(EVIDENCE / "models" / "fp32.pt", weights_only=True)
rounded_model, images = digits.make(), digits.transform(digits.dataset.test.images)
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
BITS = (8, 6, 5, 4, 3)
top1s, in_words = [], []
for place, bits in enumerate(BITS):
    levels = 2 ** (bits - 1) - 1
    rounded_model.load_state_dict(
        {
            name: torch.round(w / w.abs().max() * levels) / levels * w.abs().max()
            if name.endswith("weight")
            else w
            for name, w in weights.items()
        }
    )
    predicted = network.logits(rounded_model, images).argmax(axis=1)
    values = [100 * v for v in per_class_accuracy(predicted, truth, len(names))]
    top1s.append(100 * float((predicted == np.array(truth)).mean()))
    worst = int(np.argmin(values))
    for label, value in enumerate(values):
        axes.plot(place + (label - 4.5) / 18, value, "o", color=BLUE, markersize=4)
    axes.annotate(
        names[worst], (place + (worst - 4.5) / 18, values[worst]), (0, -12), ha="center",
        textcoords="offset points", color=ORANGE, fontweight="bold",
    )  # fmt: skip
    in_words.append(
        f"{bits} bits: top-1 {top1s[-1]:.1f} %, lowest class {names[worst]}, {values[worst]:.1f} %"
    )
axes.plot(range(len(BITS)), top1s, "_-", color=INK, markersize=22, label="top-1, all images")
axes.plot([], [], "o", color=BLUE, markersize=4, label="one class; the lowest is named")
axes.set_xticks(range(len(BITS)), [f"{bits}" for bits in BITS])
axes.set(
    xlabel="bits per weight", ylabel="accuracy, %", title="What the average does not say",
    ylim=(axes.get_ylim()[0] - 3, 101),
)  # fmt: skip
axes.legend(loc="lower left")
show(figure, "; ".join(in_words) + ".")

# %% [markdown]
# Which sentence under this picture would be true, short, and misleading?

# %% [markdown]
# ## Faster
#
# Size against time, as it is usually shown, for the three batch sizes. Left is smaller, lower
# is faster. Before you scroll: which corner do slides promise, and who stands in it?

# %% locked="plot_size_and_speed" measures=true
from deep_learning_cases import comparison_plots

picture = comparison_plots.size_against_speed(record, "1")
show(picture.figure, picture.alt_text)

# %% [markdown]
# A point hides its samples. Here are all of them, as the share of calls that took at most so
# long:

# %% locked="plot_distributions" measures=true
picture = comparison_plots.distributions(record, "1")
show(picture.figure, picture.alt_text)

# %% [markdown]
# ## What travels?
#
# Each round was a fresh process. Below are the medians of the rounds in microseconds, and the
# ratio within the round. Which of the columns would you expect to find again tomorrow, and
# which on your neighbour's machine?

# %% locked="ratios_by_round"
for batch_size in (1, 32):
    rows = zip(rounds_of("fp32", batch_size), rounds_of("static", batch_size), strict=True)
    for number, (fp32, static) in enumerate(rows, start=1):
        a, b = float(np.median(fp32)), float(np.median(static))
        print(
            f"batch {batch_size}, round {number}: fp32 {a:.1f} us, static {b:.1f} us, ratio {b / a:.2f}"
        )

# %% [markdown]
# Ratios travel better than microseconds: a slow minute slows both. Neither is proof for another
# machine. More threads, another instruction set, memory that hangs on another socket, a noisy
# neighbour, and a ratio may change sides.
#
# **And the bytes, do they travel?** The next cell trains the network once more from the seed
# 1729 and compares the hash of all its weights with the record's. Predict: the same hash, or
# not? And on another processor?

# %% locked="train_again" measures=true
from deep_learning_cases import torch_quantization

again = torch_quantization.state_sha256(digits.train(record["seed"]).state_dict())
then = record["configs"]["fp32"]["state_sha256"]
print(again[:16], "now\n" + then[:16], "in the record:", "same" if again == then else "other")

# %% [markdown]
# ## Why?
#
# Smaller numbers, same layers. If `static` is slower with one image and gains with 32, a
# straight line explains much of it: a call costs something once, plus something per image.
#
# $$t(n) = \text{fixed} + n \cdot \text{per image}$$
#
# From the medians at batch 1 and batch 32, work out both for `fp32` and for `static`. Use
# `median_us(version, batch_size)`.

# %% solution="two_costs"
fixed_us = {"fp32": None, "static": None}  # us per call
per_image_us = {"fp32": None, "static": None}  # us per image
### BEGIN SOLUTION
for version in fixed_us:
    t1, t32 = median_us(version, 1), median_us(version, 32)
    per_image_us[version] = (t32 - t1) / 31
    fixed_us[version] = t1 - per_image_us[version]
### END SOLUTION

# %% locked="check_two_costs" measures=true
for version in ("fp32", "static"):
    for batch_size in (1, 32):
        measured = median_us(version, batch_size)
        if None in (fixed_us[version], per_image_us[version]):
            print(f"Not yet: {version} has no numbers.")
        elif (
            abs(fixed_us[version] + batch_size * per_image_us[version] - measured)
            > 0.05 * measured
        ):
            print(f"Not yet: the line of {version} misses its median at batch {batch_size}.")
        else:
            print(f"{version}: the line meets its median at batch {batch_size}.")

# %% [markdown]
# Your lines, and the batch of 8 that they have not seen:

# %% locked="plot_two_costs" measures=true
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
in_words = []
for version, colour, style, mark in (("fp32", INK, "-", "o"), ("static", BLUE, "--", "s")):
    sizes = np.array([1, 8, 32])
    axes.plot(sizes, [median_us(version, int(n)) for n in sizes], mark, color=colour)
    if None not in (fixed_us[version], per_image_us[version]):
        line = [fixed_us[version] + n * per_image_us[version] for n in (0, 34)]
        axes.plot((0, 34), line, style, color=colour)
        in_words.append(
            f"{version}: {fixed_us[version]:.0f} us per call and {per_image_us[version]:.2f} us"
            " per image"
        )
    axes.plot([], [], style + mark, color=colour, label=version)
axes.set(
    xlabel="images in one call", ylabel="median time of a call, us", ylim=(0, None),
    xlim=(0, 34), title="A price per call, and a price per image",
)  # fmt: skip
axes.legend()
show(figure, "; ".join(in_words) + ".")

# %% [markdown]
# Where do your lines cross, if they do? If the batch of 8 lies beside them, what does a straight
# line not know? What does int8 have to do in every call that float32 need not: count the
# borders between float and int8 in `dynamic`, `static` and `onnx_int8`.
# And would you rather have a network a hundred times larger, to see int8 shine?

# %% [markdown]
# ## Four claims
#
# Choose one int8 version. Then say of each of four claims whether it is `"true"`, `"false"` or
# `"inconclusive"` **on this machine**:
#
# - `smaller`: what is saved is smaller than its baseline's.
# - `faster at batch 1`, `faster at batch 32`: the whole 95 % interval of the time ratio lies
#   below 1 (true), above 1 (false), or neither.
# - `as accurate`: the whole 95 % interval of the loss is at most 1 percentage point (true),
#   lies above it (false), or neither.
#
# The cell prints the numbers of every version. PyTorch's are compared with `fp32`, ONNX
# Runtime's with `onnx_fp32`. Why not all with the same?


# %% locked="numbers_for_claims"
def baseline_of(version):
    """The version that this one is compared with."""
    return record["configs"][version]["baseline"]


def saved_bytes(version):
    """Bytes of the state_dict; of the file for ONNX."""
    size = record["configs"][version]["size"]
    return size["state_dict_bytes"] or size["file_bytes"]


def time_ratio(version, batch_size):
    """``ratio``, ``low`` and ``high``: time over the baseline's, one ratio for each round."""
    return stats.compare(
        rounds_of(version, batch_size), rounds_of(baseline_of(version), batch_size)
    )


def accuracy_loss(version):
    """``loss_pp``, ``low`` and ``high``, in percentage points; positive is lost."""
    loss = record["configs"][version]["loss"]
    low, high = loss["interval_pp"]["low"], loss["interval_pp"]["high"]
    return {"loss_pp": loss["loss_pp"], "low": low, "high": high}


for version in versions:
    if baseline_of(version):
        lost = accuracy_loss(version)
        print(f"{version} against {baseline_of(version)}")
        print(f"   {saved_bytes(version):,} and {saved_bytes(baseline_of(version)):,} bytes")
        for batch_size in (1, 32):
            found = time_ratio(version, batch_size)
            print(f"   batch {batch_size}: ratio {found['ratio']:.3f}", end="")
            print(f" ({found['low']:.3f} to {found['high']:.3f})")
        print(f"   loss {lost['loss_pp']:.2f} points ({lost['low']:.2f} to {lost['high']:.2f})")

# %% [markdown]
# Write `claims`. Each of the four has three parts:
#
# - `verdict`: `"true"`, `"false"` or `"inconclusive"`.
# - `evidence`: the numbers it rests on. `bytes` and `baseline_bytes` for the size; `ratio`,
#   `low`, `high` for a time; `loss_pp`, `low`, `high` for the accuracy. Numbers typed from above
#   are fine, to 1 %.
# - `scope`: `holds_for`, a sentence on what it holds for; `not_for`, on who may not repeat it;
#   `measure_again_elsewhere`, `True` or `False`: must somebody with another machine measure
#   first?
#
# The four do not end at the same place. What is true of a file does not change with the
# processor; what is true of a time may change with the hour.

# %% solution="claims"
CHOSEN = None  # "dynamic", "static", "qat" or "onnx_int8"
claims = {
    "smaller": {"verdict": None, "evidence": {}, "scope": {}},
    "faster at batch 1": {"verdict": None, "evidence": {}, "scope": {}},
    "faster at batch 32": {"verdict": None, "evidence": {}, "scope": {}},
    "as accurate": {"verdict": None, "evidence": {}, "scope": {}},
}
### BEGIN SOLUTION
CHOSEN = "static"
baseline, lost = baseline_of(CHOSEN), accuracy_loss(CHOSEN)
sizes_of_both = {"bytes": saved_bytes(CHOSEN), "baseline_bytes": saved_bytes(baseline)}


def against(low, high, limit):
    return "true" if high < limit else "false" if low > limit else "inconclusive"


claims = {
    "smaller": {
        "verdict": "true" if saved_bytes(CHOSEN) < saved_bytes(baseline) else "false",
        "evidence": sizes_of_both,
        "scope": {
            "holds_for": "the saved state_dict of this network, wherever it is copied to",
            "not_for": "the memory of the process, which holds PyTorch and its kernels as well",
            "measure_again_elsewhere": False,
        },
    },
    "as accurate": {
        "verdict": against(lost["low"], lost["high"], 1.0),
        "evidence": lost,
        "scope": {
            "holds_for": "500 scanned digits from one source, with one fixed transform",
            "not_for": "other people's handwriting, and losses of a class below a few points",
            "measure_again_elsewhere": False,
        },
    },
}
for batch_size in (1, 32):
    found = time_ratio(CHOSEN, batch_size)
    claims[f"faster at batch {batch_size}"] = {
        "verdict": against(found["low"], found["high"], 1.0),
        "evidence": {key: found[key] for key in ("ratio", "low", "high")},
        "scope": {
            "holds_for": f"this machine with one thread and {batch_size} image(s) in each call",
            "not_for": "another processor, thread count or load, and no request over a network",
            "measure_again_elsewhere": True,
        },
    }
### END SOLUTION

# %% locked="write_claims" measures=true
from deep_learning_cases import claims_record

if not CHOSEN or any(claim["verdict"] is None for claim in claims.values()):
    print("Not yet: claims.json is written when there are a version and four verdicts.")
else:
    print(claims_record.write(EVIDENCE, CHOSEN, claims), "written, about", CHOSEN)

# %% [markdown]
# ## Would it survive a review?
#
# The cells below compute everything again from the raw samples and predictions of your record.
# Each is silent when it finds nothing. They cannot know whether the samples were measured:
# whoever can edit a file can type 10,800 numbers.


# %% locked="look_into_the_claims" measures=true
def nothing_found(area):
    """Silent if this part holds up; otherwise what was found and what to redo."""
    found = [str(finding) for finding in claims_record.check(EVIDENCE) if finding.area == area]
    assert not found, found[0]


# %% test="comparison_record" points=3 measures=true
# Whole, in turns, and every derived number follows from samples and predictions.
nothing_found("comparison_record")

# %% test="claims_verdicts" points=4 measures=true
# Each verdict is what the record gives: one point for each claim.
nothing_found("claims_verdicts")

# %% test="claims_evidence" points=2 measures=true
# The numbers are those of this record.
nothing_found("claims_evidence")

# %% test="claims_scope" points=2 measures=true
# Each claim says for whom it holds, and where it ends.
nothing_found("claims_scope")

# %% [markdown]
# ## The review meeting
#
# Somebody reads out: "int8 is four times smaller, twice as fast, and just as accurate."
# Answer in the cell below, in half a page and with your own numbers.
#
# 1. Which int8? Say of two versions what the sentence gets right and wrong, and why they differ.
# 2. Which of your verdicts would you repeat about a phone, which not, and what would you have to
#    measure first?
# 3. A user writes only one digit. Which number do you show, and how sure is it with the images
#    that you have?
# 4. They ask for one number to put on the slide. Which one, with which words beside it?

# %% [markdown] written="review_answer" points=4
# 1. Static in PyTorch keeps about 0.39 of the bytes: zero points, scales and names do not
#    shrink, so nothing is four times smaller. It costs more time at batch 1, since every call
#    rounds the input and pays for the int8 kernels, and less at 32, where arithmetic counts.
#    ONNX Runtime's file is smaller still and its time is worse at both, because its float
#    kernels cost so little per call that int8 has nothing to win on this network.
# 2. The size travels with the file. Accuracy travels within rounding, for these images. Times
#    do not travel; the phone has other kernels, so I would run the same comparison there.
# 3. The row of that digit, with its number of images: one of 50 is 2 points, so a loss of a
#    few points could hide there.
# 4. A ratio with its interval, batch size and thread count, and the words "on this machine".

# %% [markdown]
# ## Take it with you
#
# A hosted session's files do not stay. The last cell packs `evidence/` into one file; download
# it, save this notebook, press **Validate** if your Jupyter has that button, and hand in the
# folder as your course asks.

# %% locked="pack_evidence" measures=true
import shutil

from IPython.display import HTML

package = Path(shutil.make_archive("quantization-evidence", "zip", ".", EVIDENCE)).name
HTML(f'<a href="{package}" download>{package}</a>')
