"""Figures of a benchmark record: every timing in order, their distribution, and size against speed.

Each function takes a record and returns a :class:`Picture`.  Panels are narrow, so that they keep their letters on a
phone; a page lays several side by side.
"""

import re
from typing import TYPE_CHECKING

from deep_learning_cases.ground.figures import COLOURS, FAINT, INK, Picture, dress, plain_log
from deep_learning_cases.measuring import bench_record, stats
from deep_learning_cases.measuring.bench_record import Benchmark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MODEL_COLOURS", "distribution", "pictures", "samples_in_order", "size_against_speed"]

ROUND_STYLES = (("blue", "o"), ("orange", "^"), ("green", "s"), ("purple", "D"), ("vermillion", "v"))
MODEL_COLOURS = {"fp32": "blue", "int8": "vermillion"}

PANEL_INCHES = (4.4, 3.0)


def pictures(record: Benchmark) -> list[Picture]:
    """All figures of a benchmark record, in the order of a report."""
    sizes = record["protocol"]["batch_sizes"]
    in_order = [samples_in_order(record, model, size) for size in sizes for model in record["models"]]
    return [
        *in_order,
        *(distribution(record, size) for size in sizes),
        *(size_against_speed(record, size) for size in sizes),
    ]


def samples_in_order(record: Benchmark, model: str, batch_size: int) -> Picture:
    """Every timing of one model and batch size in the order taken, coloured by round, with median and p95 of all.

    Timings far above p95 stand in a strip of their own with a logarithmic axis, so that neither they nor the others
    are lost.
    """
    low, cap, high = _range(record, batch_size)
    figure, panels = _panel(strip=high > cap)
    rounds = _rounds(record, model, batch_size)
    merged = [sample for samples in rounds for sample in samples]
    summary = stats.latency_summary(merged, batch_size)
    for axes in panels:
        least, most = (cap, high) if axes is not panels[-1] else (0.0, cap if len(panels) == 2 else high)
        _draw_rounds(axes, rounds, least, most)
        axes.set_xlim(0, len(merged) + 1)
    body = panels[-1]
    body.set_ylim(low - 0.06 * (cap - low), cap)
    for name, value, side in (("p50", summary["p50_us"], "top"), ("p95", summary["p95_us"], "bottom")):
        body.axhline(value, color=INK, linewidth=1, linestyle="-" if name == "p50" else "--")
        body.text(1.01, value, name, transform=body.get_yaxis_transform(), va=side, color=INK, size=9)
    if len(panels) == 2:
        panels[0].set_yscale("log")
        panels[0].set_ylim(cap, high * 1.6)
        plain_log(panels[0].yaxis)
        panels[0].spines["bottom"].set_linestyle(":")
        panels[0].tick_params(bottom=False, labelbottom=False)
    start = 1
    for number, samples in enumerate(rounds, 1):
        place = panels[0].get_xaxis_transform()
        middle = start + len(samples) / 2
        panels[0].text(middle, 1.03, f"round {number}", color=INK, ha="center", va="bottom", transform=place, size=9)
        start += len(samples)
    body.set_xlabel("call, in the order measured")
    body.set_ylabel("µs per batch")
    slowest = max(merged)
    beyond = sum(sample > cap for sample in merged)
    alt = (
        f"All {len(merged)} timings of {model} at batch size {batch_size} in {len(rounds)} rounds. Median"
        f" {summary['p50_us']:.1f}, p95 {summary['p95_us']:.1f}, fastest {min(merged):.1f}, slowest {slowest:.1f}"
        f" microseconds per batch, the slowest being call {merged.index(slowest) + 1}. Medians of the rounds: "
        + ", ".join(f"{stats.percentile(samples, 0.5):.1f}" for samples in rounds)
        + "."
    )
    strip = f" Above the gap, on a logarithmic axis: {beyond} slow calls." if len(panels) == 2 else ""
    return Picture(
        f"order-{_safe(model)}-{batch_size}", f"{model}, batch {batch_size}",
        f"Solid line: median. Dashed: p95.{strip}", alt, figure,
    )  # fmt: skip


def _draw_rounds(axes: "Axes", rounds: list[list[float]], above: float, up_to: float) -> None:
    start = 1
    for number, samples in enumerate(rounds):
        colour, marker = ROUND_STYLES[number % len(ROUND_STYLES)]
        points = [(start + index, sample) for index, sample in enumerate(samples) if above < sample <= up_to]
        positions, values = [x for x, _ in points], [y for _, y in points]
        axes.scatter(
            positions,
            values,
            s=11,
            marker=marker,
            color=COLOURS[colour],
            linewidths=0,
            alpha=0.85,
            clip_on=False,
            zorder=2.5,
        )
        if number:
            axes.axvline(start - 0.5, color=FAINT, linewidth=0.6, alpha=0.6)
        start += len(samples)


def distribution(record: Benchmark, batch_size: int) -> Picture:
    """The empirical distribution of every model at one batch size: the share of calls that took at most so long."""
    figure, (axes,) = _panel()
    low, cap, high = _range(record, batch_size)
    sentences, beyond, total = [], 0, 0
    for model in record["models"]:
        samples = sorted(bench_record.merged_samples(record, model, batch_size))
        shares = [(rank + 1) / len(samples) for rank in range(len(samples))]
        colour, style = _model_style(record, model)
        axes.step([samples[0], *samples], [0, *shares], where="post", color=colour, linestyle=style, linewidth=1.8)
        p50, p95 = (stats.percentile(samples, p) for p in (0.5, 0.95))
        axes.plot([p95], [0.95], marker="o", color=colour, markersize=5)
        sentences.append(f"{model}: half of the calls within {p50:.1f}, 95 % within {p95:.1f} microseconds")
        beyond += sum(sample > cap for sample in samples)
        total += len(samples)
    for share in (0.5, 0.95):
        axes.axhline(share, color=FAINT, linewidth=0.7, linestyle=":")
    axes.set_xlim(low - 0.06 * (cap - low), cap)
    axes.set_ylim(0, 1.015)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0 %", "25 %", "50 %", "75 %", "95 %"])
    axes.set_xlabel("µs per batch")
    axes.set_ylabel("share of calls")
    _legend(record, axes)
    rest = f" Beyond the right edge: {beyond} of {total} calls, the slowest at {high:,.0f} µs." if beyond else ""
    return Picture(
        f"distribution-{batch_size}", f"Distribution, batch {batch_size}",
        f"The dot marks p95, by nearest rank.{rest}",
        f"Empirical distribution at batch size {batch_size}. " + "; ".join(sentences) + f".{rest}", figure,
    )  # fmt: skip


def size_against_speed(record: Benchmark, batch_size: int) -> Picture:
    """File size against the median with its 95 % interval, one mark per model, and the limit of the gate."""
    figure, (axes,) = _panel()
    sentences, tops, sizes = [], [], []
    for model, facts in record["models"].items():
        samples = bench_record.merged_samples(record, model, batch_size)
        median, interval = stats.percentile(samples, 0.5, "linear"), stats.percentile_interval(samples, 0.5)
        low = median if interval.low is None else interval.low
        high = median if interval.high is None else interval.high
        kib = facts["bytes"] / 1024
        colour, _ = _model_style(record, model)
        marker = "o" if model == next(iter(record["models"])) else "s"
        axes.errorbar(
            [kib], [median], yerr=[[max(0.0, median - low)], [max(0.0, high - median)]],
            marker=marker, markersize=8, color=colour, capsize=4, linewidth=1.5,
        )  # fmt: skip
        axes.annotate(
            model, (kib, median), xytext=(0, 12), textcoords="offset points", ha="center", color=INK, weight="bold"
        )
        tops.append(high)
        sizes.append(kib)
        sentences.append(f"{model}: {kib:.1f} KiB, median {median:.1f} (interval {low:.1f} to {high:.1f}) microseconds")
    axes.axvline(32, color=FAINT, linewidth=1, linestyle="--")
    axes.text(32.6, 0.03, "limit 32 KiB", transform=axes.get_xaxis_transform(), color=INK, size=9, va="bottom")
    axes.set_xlim(0, max(40.0, *sizes) * 1.15)
    axes.set_ylim(0, max(tops) * 1.35)
    axes.set_xlabel("file size, KiB")
    axes.set_ylabel("median, µs per batch")
    return Picture(
        f"size-speed-{batch_size}", f"Size and speed, batch {batch_size}",
        "Left is smaller, lower is faster. Bars: 95 % interval of the median.",
        f"File size against median latency at batch size {batch_size}. " + "; ".join(sentences) + ".", figure,
    )  # fmt: skip


def _panel(strip: bool = False) -> "tuple[Figure, list[Axes]]":
    """A figure outside pyplot (no window, no list of figures that grows in a notebook) and its axes from the top."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import MaxNLocator

    layout = ConstrainedLayoutEngine(hspace=0, h_pad=0.04)
    figure = Figure(figsize=PANEL_INCHES, dpi=150, layout=layout)
    ratios = {"height_ratios": [1, 2.6]} if strip else {}
    panels = list(figure.subplots(2 if strip else 1, sharex=True, squeeze=False, gridspec_kw=ratios)[:, 0])
    for axes in panels:
        dress(axes)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    return figure, panels


def _legend(record: Benchmark, axes: "Axes") -> None:
    from matplotlib.lines import Line2D

    handles = []
    for model in record["models"]:
        colour, style = _model_style(record, model)
        handles.append(Line2D([], [], color=colour, linestyle=style, linewidth=1.8, label=model))
    axes.legend(handles=handles, frameon=False, loc="lower right", labelcolor=INK, fontsize=10)


def _model_style(record: Benchmark, model: str) -> tuple[str, str]:
    names = list(record["models"])
    colour = MODEL_COLOURS.get(model, list(COLOURS)[names.index(model) % len(COLOURS)])
    return COLOURS[colour], "-" if names.index(model) % 2 == 0 else "--"


def _rounds(record: Benchmark, model: str, batch_size: int) -> list[list[float]]:
    return [run["samples_us"][str(batch_size)] for run in record["runs"] if run["model"] == model]


def _range(record: Benchmark, batch_size: int) -> tuple[float, float, float]:
    """Fastest timing, end of a linear axis, slowest timing, of all models: they are compared, so they share an axis."""
    series = [bench_record.merged_samples(record, model, batch_size) for model in record["models"]]
    low, high = min(map(min, series)), max(map(max, series))
    usual = max(stats.percentile(samples, 0.95) for samples in series)
    cap = usual + 0.25 * (usual - low) + 0.02 * usual
    return low, (high + 0.05 * (high - low) + 1e-9 if high <= 1.5 * cap else cap), high


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", text)
