"""Figures of a latency record; every one has axis labels with units and says in words what it shows.

Colours are those of Okabe and Ito, and every series has a marker or a line style of its own besides.
"""

import statistics
from typing import Any

from deep_learning_cases.ground.figures import COLOURS, FAINT, INK, Picture, panels, plain_log, shared_legend
from deep_learning_cases.measuring import stats

__all__ = ["cold_and_warm", "cost", "distribution", "memory"]

Rows = dict[int, dict[str, Any]]

STYLES = tuple(
    (COLOURS[colour], line, marker)
    for colour, line, marker in (
        ("blue", "-", "o"), ("vermillion", "--", "s"), ("green", "-.", "^"), ("purple", ":", "D"), ("orange", "-", "v"),
    )
)  # fmt: skip


def distribution(rows: Rows, title: str = "Model only, warm", name: str = "latency-distribution") -> Picture:
    """The empirical distribution of each batch size: the share of calls that took at most so long (log axis)."""
    figure, (axes,) = panels(1, 5.6)
    words = []
    for place, (batch, row) in enumerate(rows.items()):
        colour, line, marker = STYLES[place % len(STYLES)]
        samples = sorted(row["samples_ms"])
        shares = [(rank + 1) / len(samples) for rank in range(len(samples))]
        axes.step(
            [samples[0], *samples], [0, *shares], where="post", color=colour, linestyle=line, linewidth=1.8,
            label=f"batch {batch}",
        )  # fmt: skip
        if row["p95_ms"] < row["max_ms"]:
            axes.plot([row["p95_ms"]], [0.95], marker=marker, color=colour, markersize=6)
        half = stats.percentile(samples, 0.5)
        words.append(f"batch {batch}: half of {len(samples)} calls within {half:.4g} ms, slowest {samples[-1]:.4g} ms")
    for share in (0.5, 0.95):
        axes.axhline(share, color=FAINT, linewidth=0.7, linestyle=":")
    axes.set_xscale("log")
    plain_log(axes.xaxis)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0 %", "25 %", "50 %", "75 %", "95 %"])
    axes.set(ylim=(0, 1.02), xlabel="time per batch, ms", ylabel="share of calls")
    shared_legend(figure, 7 if figure.get_figwidth() > 8 else 4)
    caption = "Share of calls that took at most so long. The marker is p95 (nearest rank)."
    return Picture(name, title, caption, f"Empirical distributions. {title}. " + "; ".join(words) + ".", figure)


def cost(series: dict[str, Rows]) -> Picture:
    """Total batch latency, cost per image and images per second against the batch size, one line per boundary."""
    figure, row = panels(3, 9.6)
    labels = ("time per batch, ms\n(median, bar to p95)", "time per image, ms", "images per second")
    words = []
    for place, (name, rows) in enumerate(series.items()):
        colour, line, marker = STYLES[place % len(STYLES)]
        style: dict[str, Any] = {
            "color": colour, "linestyle": line, "marker": marker, "markersize": 5, "linewidth": 1.4, "label": name,
        }  # fmt: skip
        sizes = sorted(rows)
        medians = [rows[size]["median_ms"] for size in sizes]
        above = [max(0.0, rows[size]["p95_ms"] - rows[size]["median_ms"]) for size in sizes]
        row[0].errorbar(sizes, medians, yerr=[[0.0] * len(sizes), above], capsize=3, elinewidth=1.0, **style)
        row[1].plot(sizes, [rows[size]["ms_per_image"] for size in sizes], **style)
        row[2].plot(sizes, [rows[size]["images_per_second"] for size in sizes], **style)
        words.append(
            f"{name}: "
            + ", ".join(
                f"batch {size} {rows[size]['median_ms']:.4g} ms, {rows[size]['images_per_second']:.4g} images/s"
                for size in sizes
            )
        )
    sizes = sorted({size for rows in series.values() for size in rows})
    for axes, label in zip(row, labels, strict=True):
        axes.set(xscale="log", yscale="log", xlabel="batch size, images", ylabel=label)
        axes.minorticks_off()
        axes.set_xticks(sizes, [str(size) for size in sizes])
        plain_log(axes.yaxis)
        axes.grid(visible=True, axis="y", color=FAINT, linewidth=0.4, alpha=0.5)
    shared_legend(figure, 7 if figure.get_figwidth() > 8 else 4)
    return Picture(
        "latency-cost",
        "What a batch costs",
        "A larger batch takes longer, and each image in it less: whoever waits pays for whoever counts.",
        "Three line charts against the batch size. " + "; ".join(words) + ".",
        figure,
    )


def cold_and_warm(cold: dict[int, dict[str, Any]], rows: Rows) -> Picture:
    """Where the time until a new process's first answer goes (medians), and what a warm call takes."""
    figure, (axes,) = panels(1, 5.6)
    names = {"start_ms": "Python and NumPy", "import_ms": "runtime", "load_ms": "model", "first_call_ms": "first call"}
    words, totals = [], []
    for place, (size, part) in enumerate(cold.items()):
        left = 0.0
        for (key, name), (colour, _, _), hatch in zip(names.items(), STYLES, ("", "//", "..", "xx"), strict=False):
            value = statistics.median(start[key] for start in part["starts"])
            axes.barh(
                place, value, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8, height=0.6,
                label=name,
            )  # fmt: skip
            left += value
        totals.append(left)
        warm = f"warm {rows[size]['median_ms']:.3g} ms" if size in rows else ""
        axes.text(left, place, f"  {left:,.0f} ms; {warm}", va="center", ha="left", color=INK, fontsize=9)
        words.append(f"batch {size}: {left:.4g} ms until the first answer, {warm or 'no warm call measured'}")
    axes.set_yticks(range(len(cold)), [f"batch {size}" for size in cold])
    axes.invert_yaxis()
    axes.set(xlabel="time until the first answer of a new process, ms", xlim=(0, 1.45 * max(totals)))
    shared_legend(figure, 7 if figure.get_figwidth() > 8 else 4)
    starts = len(next(iter(cold.values()))["starts"])
    return Picture(
        "latency-cold", "Cold and warm", f"Median of each stage over {starts} new processes.",
        "Stacked bars of a cold start's stages. " + "; ".join(words) + ".", figure,
    )  # fmt: skip


def memory(part: dict[str, Any]) -> Picture:
    """Peak memory of a process against the batch size, with the limit and what was tried under it."""
    figure, (axes,) = panels(1, 5.6)
    largest = part["largest_batch"]
    rows = {**(largest["probes"] if largest else {}), **part["results"]}
    for fits, name, marker, colour in ((True, "fits", "o", "blue"), (False, "does not fit", "X", "vermillion")):
        points = sorted(
            (size, row["peak_rss_bytes"] / 1e6)
            for size, row in rows.items()
            if row["fits"] is fits and row["peak_rss_bytes"]
        )
        if points:
            axes.plot(
                [size for size, _ in points], [peak for _, peak in points], linestyle="-" if fits else "none",
                marker=marker, color=COLOURS[colour], markersize=6, linewidth=1.2, label=name,
            )  # fmt: skip
    before = [row["before_bytes"] / 1e6 for row in rows.values() if row["before_bytes"]]
    if before:
        axes.axhline(min(before), color=FAINT, linewidth=1, linestyle=":", label="before loading the model")
    words = "; ".join(
        f"batch {size}: {row['peak_rss_bytes'] / 1e6:.1f} MB" + ("" if row["fits"] else ", does not fit")
        for size, row in part["results"].items()
        if row["peak_rss_bytes"]
    )
    if part["limit_bytes"]:
        axes.axhline(part["limit_bytes"] / 1e6, color=INK, linewidth=1, linestyle="--", label="limit")
        words += f". Limit {part['limit_bytes'] / 1e6:.1f} MB; the largest batch that fits is {largest['fits']}"
    axes.set(xscale="log", xlabel="batch size, images", ylabel="peak memory of the process, MB")
    axes.set_ylim(0, axes.get_ylim()[1])
    plain_log(axes.xaxis)
    shared_legend(figure, 7 if figure.get_figwidth() > 8 else 4)
    return Picture(
        "latency-memory", "Peak memory", "Each point is a process of its own; what failed shows how far it came.",
        f"Peak memory against batch size. {words}.", figure,
    )  # fmt: skip
