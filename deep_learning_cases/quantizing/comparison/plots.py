"""Figures of a comparison: size against speed, accuracy class by class, and how the timings are distributed.

Colours are those of Okabe and Ito; every version has a marker and a line style of its own besides.
"""

from collections.abc import Mapping
from typing import Any

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.figures import COLOURS, FAINT, INK, Picture, panels, plain_log, shared_legend
from deep_learning_cases.quantizing.comparison.summary import merged_samples

__all__ = ["class_changes", "distributions", "pictures", "size_against_speed"]

Record = Mapping[str, Any]

STYLES = {
    "fp32": (INK, "o", "-"),
    "dynamic": (COLOURS["orange"], "^", "--"),
    "static": (COLOURS["blue"], "s", "-."),
    "qat": (COLOURS["purple"], "D", ":"),
    "onnx_fp32": (FAINT, "v", "-"),
    "onnx_int8": (COLOURS["green"], "P", "--"),
    "compiled": (COLOURS["vermillion"], "X", "-"),
    "pt2e": ("#56b4e9", "*", "-."),
    "cuda_fp32": (INK, "<", "--"),
    "cuda_fp16": (COLOURS["vermillion"], ">", "-."),
    "cuda_bf16": (COLOURS["blue"], "h", ":"),
}


def pictures(record: Record) -> list[Picture]:
    """Every figure that the record has numbers for, in the order of the report."""
    drawn = [size_against_speed(record, threads) for threads in _thread_counts(record)]
    if any(facts["loss"] for facts in record["configs"].values()):
        drawn.append(class_changes(record))
    return drawn + [distributions(record, threads) for threads in _thread_counts(record)]


def size_against_speed(record: Record, threads: str) -> Picture:
    """Size of what ships against the median time, one panel per batch size; bars: 95 % interval of the median."""
    batches = [str(size) for size in record["methodology"]["batch_sizes"]]
    figure, side_by_side = panels(len(batches), 3.0 * len(batches) + 0.8, 3.4)
    sentences = []
    for axes, batch in zip(side_by_side, batches, strict=True):
        highest = 0.0
        for name, row in _rows(record, threads, batch).items():
            colour, marker, _ = STYLES[name]
            kib, median = _size_kib(record, name), row["p50_us"]
            interval = row["p50_interval_us"] or {"low": median, "high": median}
            error = [[max(0.0, median - interval["low"])], [max(0.0, interval["high"] - median)]]
            axes.errorbar(
                [kib], [median], yerr=error, marker=marker, color=colour, markersize=7, linewidth=1.3, capsize=3,
                linestyle="none", label=name,
            )  # fmt: skip
            highest = max(highest, interval["high"])
            sentences.append(
                f"{name}, batch {batch}: {kib:.1f} KiB, {median:.1f} us"
                f" ({interval['low']:.1f} to {interval['high']:.1f})"
            )
        axes.set_title(f"batch {batch}", fontsize=10, color=INK)
        axes.set(xlabel="size, KiB", xlim=(0, None), ylim=(0, highest * 1.12 or 1))
    side_by_side[0].set_ylabel("median, µs per batch")
    shared_legend(figure, 6)
    return Picture(
        f"size-against-speed-{threads}", f"Size and speed, {_plural(threads)}",
        "Left is smaller, lower is faster. Bars: 95 % interval of the median, of one machine's merged samples.",
        "Size of the state_dict (of the file for ONNX) against the median time. " + "; ".join(sentences) + ".", figure,
    )  # fmt: skip


def class_changes(record: Record) -> Picture:
    """How the accuracy of each class changed against the baseline, in percentage points; a mark per version."""
    names = [name for name, facts in record["configs"].items() if facts["loss"]]
    if not names:
        raise InputError(
            "no version was compared with a baseline: expected at least one; measure dynamic, static or qat"
        )
    figure, (axes,) = panels(1, 6.4, 3.4)
    classes = record["data"]["classes"]
    step = 0.7 / len(names)
    sentences = []
    for place, name in enumerate(names):
        rows = [row for row in record["configs"][name]["accuracy"]["per_class"] if row["change_pp"] is not None]
        colour, marker, _ = STYLES[name]
        shift = (place - (len(names) - 1) / 2) * step
        positions, changes = [row["label"] + shift for row in rows], [row["change_pp"] for row in rows]
        axes.vlines(positions, 0, changes, color=colour, linewidth=1.6)
        axes.plot(positions, changes, marker=marker, linestyle="none", color=colour, markersize=5, label=name)
        worst = record["configs"][name]["loss"]["worst_class"]
        lost = f"class {worst['name']} lost most, {-worst['change_pp']:.1f} points"
        sentences.append(f"{name}: {lost if worst['change_pp'] < 0 else 'no class lost'}")
    axes.axhline(0, color=INK, linewidth=0.8)
    reach = max(1.0, *(abs(value) for value in axes.get_ylim()))
    axes.set(ylim=(-reach * 1.1, reach * 1.1), ylabel="change, percentage points", xlabel="class")
    axes.set_xticks(range(len(classes)), classes, rotation=30 if max(map(len, classes)) > 3 else 0)
    shared_legend(figure, 6)
    images = [row["images"] for row in next(iter(record["configs"].values()))["accuracy"]["per_class"]]
    return Picture(
        "class-changes", "Accuracy by class, against the baseline",
        f"Below zero is lost. A class has {min(images)} to {max(images)} test images, so one image is up to"
        f" {100 / max(1, min(images)):.1f} points.",
        "Change of top-1 accuracy of each class. " + "; ".join(sentences) + ".", figure,
    )  # fmt: skip


def distributions(record: Record, threads: str) -> Picture:
    """The share of passes that took at most so long, one panel per batch size, on a logarithmic axis."""
    batches = [str(size) for size in record["methodology"]["batch_sizes"]]
    figure, side_by_side = panels(len(batches), 3.0 * len(batches) + 0.8, 3.4)
    sentences = []
    for axes, batch in zip(side_by_side, batches, strict=True):
        for name, row in _rows(record, threads, batch).items():
            samples = sorted(sample for sample in merged_samples(record["runs"], name, threads, batch) if sample > 0)
            colour, marker, line = STYLES[name]
            shares = [(rank + 1) / len(samples) for rank in range(len(samples))]
            axes.step(samples, shares, where="post", color=colour, linestyle=line, linewidth=1.4)
            axes.plot(
                [row["p95_us"]], [0.95], marker=marker, color=colour, markersize=5, linestyle="none",
            )  # fmt: skip
            axes.plot([], [], color=colour, linestyle=line, marker=marker, markersize=5, label=name)
            sentences.append(f"{name}, batch {batch}: p50 {row['p50_us']:.1f}, p95 {row['p95_us']:.1f} us")
        axes.set(xscale="log", ylim=(0, 1.02), xlabel="µs per batch")
        axes.set_title(f"batch {batch}", fontsize=10, color=INK)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0 %", "25 %", "50 %", "75 %", "95 %"])
        plain_log(axes.xaxis)
    side_by_side[0].set_ylabel("share of passes")
    shared_legend(figure, 6)
    return Picture(
        f"distributions-{threads}", f"Distribution of the timings, {_plural(threads)}",
        "The mark on each line is p95 (linear interpolation).",
        "Empirical distribution of the time of one pass. " + "; ".join(sentences) + ".", figure,
    )  # fmt: skip


def _rows(record: Record, threads: str, batch: str) -> dict[str, Any]:
    found = {name: by_threads.get(threads, {}).get(batch) for name, by_threads in record["summary"].items()}
    return {name: found[name] for name in record["configs"] if found.get(name)}


def _thread_counts(record: Record) -> list[str]:
    measured = {threads for by_threads in record["summary"].values() for threads in by_threads}
    return [str(count) for count in record["methodology"]["threads"] if str(count) in measured]


def _size_kib(record: Record, name: str) -> float:
    size = record["configs"][name]["size"]
    return float(size["state_dict_bytes"] or size["file_bytes"]) / 1024


def _plural(threads: str) -> str:
    return f"{threads} thread{'s' if threads != '1' else ''}"
