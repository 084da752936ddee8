"""How a figure of ours looks: colours, axes, legend, and the same in words for whoever cannot see it.

Colours are those of Okabe and Ito, which the colour-blind tell apart; a series has a shape of its own besides.

Source: M. Okabe and K. Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/.
"""

import io
import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deep_learning_cases.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "FAINT", "INK", "Picture", "dress", "log_ticks", "panels", "plain_log", "shared_legend"]

COLOURS = {"blue": "#0072b2", "vermillion": "#d55e00", "green": "#009e73", "purple": "#cc79a7", "orange": "#e69f00"}
INK, FAINT = "#1b1f24", "#8c959f"


@dataclass(frozen=True)
class Picture:
    """One figure with its title, a sentence under it, and what it shows in words (``alt_text``)."""

    name: str
    title: str
    caption: str
    alt_text: str
    figure: "Figure"

    def svg(self) -> str:
        """The figure as an ``<svg>`` element whose ids belong to it alone and whose colours a page may override.

        Ink and series colours become ``var(--ink, ...)`` and so on: a dark page sets the variables, any other viewer
        sees the colours of the figure.
        """
        import matplotlib as mpl

        buffer = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": self.name, "svg.fonttype": "path"}):
            self.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{self.name}-", text)
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        for variable, colour in {"ink": INK, "faint": FAINT, **COLOURS}.items():
            text = text.replace(f": {colour}", f": var(--{variable}, {colour})")
        return text.strip()

    def _repr_svg_(self) -> str:
        return self.svg()


def panels(count: int, width: float, height: float = 3.2) -> "tuple[Figure, list[Axes]]":
    """``count`` axes in a row, sizes in inches, outside pyplot: no window, no list that grows in a notebook."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("the figures need matplotlib: install it with: pip install matplotlib") from error
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    row = list(figure.subplots(1, count, squeeze=False)[0])
    for axes in row:
        dress(axes)
    return figure, row


def dress(axes: "Axes") -> None:
    """Ink for what is read, a faint line for what is not, and no frame."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(which="both", labelcolor=INK, labelsize=9, length=3, color=FAINT)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(INK)
        label.set_fontsize(10)


def plain_log(axis: "Axis") -> None:
    """Label a logarithmic axis 20, 50, 100 and not by powers of ten; as many labels as there is room for.

    Call it when the limits are set: the ticks stay where they are put.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = sorted(axis.get_view_interval())
    box = axis.axes.get_window_extent()
    # The layout is made later, and what stands beside the axes may still take some of their room.
    level = axis is axis.axes.xaxis
    inches = 0.85 * (box.width if level else box.height) / axis.axes.figure.dpi
    ticks = log_ticks(low, high, inches, level)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: _plain(value)))
    # Beyond four decades, or within a factor of two, small ticks say nothing about where one is.
    few = 2 <= high / low <= 1e4
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=64) if few else NullLocator())
    axis.set_minor_formatter(NullFormatter())


def log_ticks(low: float, high: float, inches: float, level: bool = True) -> list[float]:
    """Round numbers from ``low`` to ``high``, both above 0, for a logarithmic axis of ``inches``; the most that fit.

    They are the 1-2-5 series, the 1-3 series, every decade, every second one and so on; within a factor of five, where
    these would be few or none, steps of equal size.  ``level``: the labels stand side by side, as on a horizontal axis.
    """
    if not 0 < low < high:
        return [low]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, last + 1)
    series = [
        *([float(f"{digit}e{power}") for power in powers for digit in digits] for digits in ("125", "13")),
        *([float(f"1e{power}") for power in powers if power % step == 0] for step in (1, 2, 3, 5, 10)),
    ]
    if high / low < 5:
        finest = math.floor(math.log10(high - low)) - 1
        series[:0] = [_steps(low, high, size * 10.0**power) for power in range(finest, last) for size in (1, 2, 5)]
    inside = [[tick for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)] for ticks in series]
    usable = [ticks for ticks in inside if len(ticks) > 1] or [[low, high]]
    fitting = (ticks for ticks in usable if _fits(ticks, inches / math.log(high / low), level))
    return next(fitting, min(usable, key=len))


def _steps(low: float, high: float, step: float) -> list[float]:
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _fits(ticks: list[float], inches_per_unit: float, level: bool) -> bool:
    """Whether the labels, in 9 points, stand clear of each other."""
    for left, right in itertools.pairwise(ticks):
        size = 0.06 * (len(_plain(left)) + len(_plain(right))) / 2 + 0.1 if level else 0.2
        if math.log(right / left) * inches_per_unit < size:
            return False
    return True


def _plain(value: float) -> str:
    return f"{value:,.10g}"


def shared_legend(figure: "Figure", columns: int) -> None:
    """One legend above all axes of ``figure``, every series once; nothing where no series has a label."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=min(columns, len(handles)),
            frameon=False, fontsize=9, labelcolor=INK,
        )  # fmt: skip
