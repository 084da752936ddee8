"""A figure as a notebook shows it: a picture that carries its alternative text, and the same words for everybody.

JupyterLab shows a plain PNG output as an image without a name, whatever its metadata say; in HTML the text stays.
"""

import base64
import html
import io
import sys
from typing import TYPE_CHECKING

from deep_learning_cases.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DescribedFigure", "show"]


class DescribedFigure:
    """A figure drawn once, as PNG, with what it shows in words; ``display`` it like any other object."""

    def __init__(self, figure: "Figure", in_words: str) -> None:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        self.png, self.in_words = buffer.getvalue(), in_words

    def _repr_mimebundle_(self, **_choice: object) -> dict[str, str]:
        picture = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        return {
            "text/html": f'<img alt="{html.escape(self.in_words)}" src="{picture}">',
            "text/plain": f"(a figure) {self.in_words}",
        }


def show(figure: "Figure", in_words: str) -> None:
    """Display a matplotlib figure, print what it shows, and release its memory; needs IPython."""
    try:
        from IPython.display import display
    except ImportError as error:
        raise MissingDependencyError(
            "IPython is not installed: expected a notebook; use figure.savefig elsewhere"
        ) from error
    display(DescribedFigure(figure, in_words))
    print("In words:", in_words)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
