"""How a figure of ours looks: colours, axes, legend, and the same in words for whoever cannot see it.

Colours are those of Okabe and Ito, which the colour-blind tell apart; a series has a shape of its own besides.

Source: M. Okabe and K. Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/.
"""

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deep_learning_cases.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "FAINT", "INK", "Picture", "dress", "panels", "shared_legend"]

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
