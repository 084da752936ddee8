"""What the outputs of a notebook's cells show to a person, and say to one who cannot see it."""

import html
import re
from typing import Any

__all__ = ["text_alternatives"]

_PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/png;base64,iVBORw0KGgo')


def text_alternatives(outputs: list[Any]) -> list[str]:
    """The text of every picture among these outputs; a picture without one is a failure."""
    found: list[str] = []
    for output in outputs:
        data = output.get("data", {})
        assert "image/png" not in data, "JupyterLab shows a bare PNG without any alternative text"
        found += [html.unescape(text) for text in _PICTURE.findall(data.get("text/html", ""))]
    return found
