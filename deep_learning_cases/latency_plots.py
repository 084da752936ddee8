"""Figures of a latency record; every one has axis labels with units and says in words what it shows.

Colours are those of Okabe and Ito, and every series has a marker or a line style of its own besides.
"""

from typing import TYPE_CHECKING, Any

from deep_learning_cases import stats
from deep_learning_cases.errors import MissingDependencyError
from deep_learning_cases.plots import COLOURS, FAINT, INK, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["distribution"]

Rows = dict[int, dict[str, Any]]

STYLES = tuple(
    (COLOURS[colour], line, marker)
    for colour, line, marker in (
        ("blue", "-", "o"), ("vermillion", "--", "s"), ("green", "-.", "^"), ("purple", ":", "D"), ("orange", "-", "v"),
    )
)  # fmt: skip


def distribution(rows: Rows, title: str = "Model only, warm") -> Picture:
    """The empirical distribution of each batch size: the share of calls that took at most so long (log axis)."""
    figure, (axes,) = _panels(1)
    words = []
    for place, (batch, row) in enumerate(rows.items()):
        colour, line, marker = STYLES[place % len(STYLES)]
        samples = sorted(row["samples_ms"])
        shares = [(rank + 1) / len(samples) for rank in range(len(samples))]
        axes.step(
            [samples[0], *samples], [0, *shares], where="post", color=colour, linestyle=line, linewidth=1.8,
            label=f"batch {batch}",
        )  # fmt: skip
        if row["p95_ms"] is not None:
            axes.plot([row["p95_ms"]], [0.95], marker=marker, color=colour, markersize=6)
        half = stats.percentile(samples, 0.5)
        words.append(f"batch {batch}: half of {len(samples)} calls within {half:.4g} ms, slowest {samples[-1]:.4g} ms")
    for share in (0.5, 0.95):
        axes.axhline(share, color=FAINT, linewidth=0.7, linestyle=":")
    axes.set_xscale("log")
    _plain_log(axes, "x")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0 %", "25 %", "50 %", "75 %", "95 %"])
    axes.set(ylim=(0, 1.02), xlabel="time per batch, ms", ylabel="share of calls")
    _legend(figure)
    caption = "Share of calls that took at most so long. The marker is p95 (nearest rank)."
    return Picture(
        "latency-distribution", title, caption, f"Empirical distributions. {title}. " + "; ".join(words) + ".", figure
    )


def _panels(count: int, width: float = 5.6) -> "tuple[Figure, list[Axes]]":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("a figure needs matplotlib: install it with: pip install matplotlib") from error
    figure = Figure(figsize=(width, 3.2), dpi=150, layout="constrained")
    panels = list(figure.subplots(1, count, squeeze=False)[0])
    for axes in panels:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color(FAINT)
        axes.tick_params(which="both", labelcolor=INK, labelsize=9, length=3, color=FAINT)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set_color(INK)
            label.set_fontsize(10)
    return figure, panels


def _legend(figure: "Figure") -> None:
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper center", ncols=4, frameon=False, fontsize=9,
        labelcolor=INK,
    )  # fmt: skip


def _plain_log(axes: "Axes", which: str) -> None:
    """Labels as 0.1, 0.2, 0.5 and 1: a range of less than a decade would have no label at all otherwise."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    narrow = high / low < 30
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
