# ---
# jupyter:
#   deep_learning_cases:
#     graded_run: false
# ---

# %% [markdown]
# # Steps 1 to 6: two models and the question between them
#
# Monday's meeting. Somebody says: "The int8 model is ready. Memory went down and it is faster
# everywhere. Ship it?" Everybody nods. You ask what was measured, and the room goes quiet.
#
# In three notebooks you collect what the room is missing: here the models and their
# predictions, in step 7 the times, in step 8 the decision. It is not a contest that int8 has
# to win. Turning it down with good reasons is as good a result as releasing it.
#
# This notebook is provided and runs as it is, in under a minute; nothing in it is graded. Run
# the cells one by one all the same, and answer each question before you open the answer. Add
# cells of your own wherever you want to look closer.

# %% locked="setup_prepare"
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deep_learning_cases.notebook_figures import show

EVIDENCE = Path("evidence")

# %% [markdown]
# ## Predict: how large will the files be?
#
# The network has 18,154 parameters. A float32 takes 4 bytes, an int8 takes 1. Write down two
# numbers, in bytes, before you go on: the size of each model file. Will the small one have
# exactly a quarter of the large one's size?

# %% [markdown]
# ## Steps 1 to 5, in one call
#
# It splits 1,797 small pictures of handwritten digits, trains the network, saves and reloads
# it, exports it to ONNX, and quantizes the copy to int8. What exists is kept: a file that
# others have measured should not change under their feet.

# %% locked="build_models" measures=true
from deep_learning_cases import preparation

if (EVIDENCE / "model_int8.onnx").exists():
    print("evidence/ holds the models already; they stay as they are.")
else:
    facts = preparation.build(EVIDENCE)
    for engine, difference in facts["largest_logit_difference"].items():
        print(
            f"reloaded by {engine}: no logit is further than {difference:.1e} from the trained network"
        )

for path in sorted(EVIDENCE.glob("*.np*")) + sorted(EVIDENCE.glob("*.onnx")):
    print(f"{path.name}: {path.stat().st_size:,} bytes")

# %% [markdown]
# Compare with your two numbers. 18,154 bytes would be a quarter; the int8 file is larger.
# **What else has to be in it?**
#
# <details><summary>One answer</summary>
#
# The graph itself: the names of its nodes, the scales and zero points that turn whole numbers
# back into fractions, and biases that stay in 32 bits. For a large network all this is noise.
# For this one it is a third of the file.
#
# </details>

# %% [markdown]
# ## Step 1: who saw which picture?
#
# 1,297 pictures train the network. 320 of *those* will tell the quantizer how large the
# numbers inside the network get; that is called calibration. 500 pictures are the test. They
# took no part in anything.

# %% locked="show_digits" measures=true
from deep_learning_cases import data

splits = data.read_data(EVIDENCE / "data.npz")
test = splits["test"]
figure, panels = plt.subplots(2, 8, figsize=(8, 2.4), layout="constrained")
for axes, image, label in zip(panels.flat, test.images, test.labels, strict=False):
    axes.imshow(image[0], cmap="gray_r", vmin=0, vmax=16)
    axes.set_title(str(label), fontsize=9)
    axes.axis("off")
labels = " ".join(map(str, test.labels[:16]))
show(figure, f"the first 16 test images, 8 by 8 pixels each, with the labels {labels}.")

# %% [markdown]
# Suppose that calibration had used the 500 test pictures. The int8 model would look a little
# better, or exactly as good. **Which sentence of the report would have become untrue?**
#
# <details><summary>One answer</summary>
#
# "Tested on pictures that nobody used before." The accuracy of the int8 model would be
# measured on pictures which helped to make it. How much that helped, nobody could say
# afterwards.
#
# </details>

# %% [markdown]
# ## Steps 2 to 4: is the file the network?
#
# The same weights now live in two files: an ONNX graph, and plain arrays that a small NumPy
# program multiplies. Do they still say the same? Guess first: how many of the 5,000 numbers
# that come out (500 pictures, 10 classes) are *exactly* equal?

# %% locked="compare_engines" measures=true
from deep_learning_cases import engines

images = data.normalise(test.images)
from_onnx = engines.open_engine(EVIDENCE / "model_fp32.onnx").run(images)
from_numpy = engines.open_engine(EVIDENCE / "model_fp32.npz", "numpy").run(images)
print(f"exactly equal: {np.sum(from_onnx == from_numpy)} of {from_onnx.size} logits")
print(f"largest difference: {np.abs(from_onnx - from_numpy).max():.1e}")
print(
    f"same digit chosen: {np.sum(from_onnx.argmax(1) == from_numpy.argmax(1))} of {len(images)}"
)

# %% [markdown]
# Neither engine has a bug. **Why do the last digits differ?** And why is "the predictions are
# equivalent" a claim that needs a number beside it?
#
# <details><summary>One answer</summary>
#
# Both add the same products in another order, and floating-point addition rounds after every
# step. So equal means equal within a bound, and the bound belongs into the report. Here it is
# 0.001 for logits of size ten or so; a forgotten bias or a transposed matrix would miss it a
# thousandfold.
#
# </details>

# %% [markdown]
# ## Step 5: what did rounding do?
#
# Each dot is one of the 5,000 logits. Across: what the float32 network says. Upwards: by how
# much the int8 network says something else. Where would all dots lie if nothing had been
# lost?

# %% locked="plot_logits" measures=true
from_int8 = engines.open_engine(EVIDENCE / "model_int8.onnx").run(images)
drift = from_int8 - from_onnx
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.plot(from_onnx.ravel(), drift.ravel(), ".", markersize=3, color="#0072B2", alpha=0.5)
axes.axhline(0, color="#D55E00", linewidth=1, label="nothing lost")
axes.set(
    xlabel="float32 logit (no unit)",
    ylabel="int8 minus float32 (no unit)",
    title="What rounding to 8 bits moved",
)
axes.legend()
size = np.abs(drift)
moved = f"{size.mean():.2f} on average, {size.max():.2f} at most"
show(figure, f"a cloud of dots along zero; the logits moved by {moved}.")

# %% [markdown]
# The logits moved by far more than between two float32 engines. **Why does that not have to
# change a single answer?** Look for the picture where it might.

# %% locked="closest_call" measures=true
ranked = np.sort(from_onnx, axis=1)
lead = ranked[:, -1] - ranked[:, -2]
closest = int(lead.argmin())
before, after = int(from_onnx[closest].argmax()), int(from_int8[closest].argmax())
print(
    f"smallest lead of the winner over the runner-up: {lead[closest]:.2f}, on test image {closest}"
)
print(f"label {test.labels[closest]}, float32 says {before}, int8 says {after}")

# %% [markdown]
# ## Step 6: inference regression
#
# A converted model is another program that should behave like the old one. So both answer the
# same 500 pictures, and everything that changed is written down. Before you run it: if int8
# loses one percentage point of accuracy, how many pictures is that?

# %% locked="run_regression" measures=true
from deep_learning_cases import regression

if (EVIDENCE / "regression.json").exists():
    print("evidence/regression.json is there already and stays as it is.")
else:
    regression.regress(EVIDENCE)
result = json.loads((EVIDENCE / "regression.json").read_text())
for model in ("fp32", "int8"):
    right = round(result["accuracy"][model] * result["images"])
    print(
        f"{model}: {right} of {result['images']} right, {100 * result['accuracy'][model]:.1f} %"
    )
interval = result["loss_interval_pp"]
print(f"loss of int8: {result['loss_pp']:.1f} percentage points; below 0 means that it gained")
print(f"95 % interval of that loss: {interval['low']:.2f} to {interval['high']:.2f} points")
print(f"same answer on {100 * result['agreement']:.1f} % of the pictures")

# %% [markdown]
# Read the interval, not only the number in its middle. **Does it rule out that the int8 model
# is worse by 1 point? Does it rule out that it is better?**
#
# One number for all digits can hide one digit that fell. So look at the classes, too.

# %% locked="plot_classes" measures=true
digits = [row["label"] for row in result["per_class"]]
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
in_words = []
for offset, model, colour in ((-0.2, "fp32", "#0072B2"), (0.2, "int8", "#D55E00")):
    wrong = [round(row["images"] * (1 - row[model])) for row in result["per_class"]]
    axes.bar([digit + offset for digit in digits], wrong, width=0.4, color=colour, label=model)
    in_words.append(f"{model} " + " ".join(map(str, wrong)))
axes.set(
    xlabel="digit",
    ylabel="wrong answers (images)",
    title="Where the mistakes are",
    xticks=digits,
)
axes.yaxis.get_major_locator().set_params(integer=True)
axes.legend()
show(figure, "wrong answers for the digits 0 to 9: " + "; ".join(in_words) + ".")

# %% [markdown]
# About fifty pictures stand behind each digit. If one class goes from 1 mistake to 3, would
# you stop the release? What would you want to see first?
#
# **Now change roles.** Tomorrow a colleague calibrates again with other pictures and
# overwrites `model_int8.onnx`. Which of the numbers above still hold for the new file? Keep
# your answer for step 8.
#
# The folder `evidence/` beside this notebook now holds data, models and regression. Save, and
# go on with `step7_latency_stats.ipynb`.
