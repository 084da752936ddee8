"""nbgrader's feedback page, readable for more people: language named, darker links and code, no sideways scrolling."""

from typing import Any

from nbconvert.exporters import HTMLExporter

__all__ = ["ReadableFeedback", "readable"]

_STYLE = """<style>
a { color: #1f5082; text-decoration: underline }
.panel-primary > .panel-heading a, .panel-primary > .panel-heading span a { color: #fff !important }
.text-muted, .panel .help-block { color: #595959 }
pre, .highlight pre { white-space: pre-wrap; overflow-wrap: anywhere }
.highlight .ow, .highlight .o { color: #7a1fb8 }
.highlight .c1, .highlight .c, .highlight .cm { color: #2f6060 }
.highlight .nb, .highlight .nf, .highlight .k { color: #006000 }
.highlight .si { color: #8a3d5f }
.highlight .ne { color: #a82a24 }
.highlight .se { color: #87470f }
.highlight .mi, .highlight .mf { color: #4d4d4d }
</style>
</head>"""
"""Only what axe-core finds too faint on the template's grey, measured at 4.5 to 1 and above."""


class ReadableFeedback(HTMLExporter):  # type: ignore[misc]
    """The exporter of the configuration, with :func:`readable` on what it gives."""

    def from_notebook_node(self, nb: Any, resources: Any = None, **kwargs: Any) -> tuple[str, Any]:
        """The page and nbconvert's resources."""
        page, resources = super().from_notebook_node(nb, resources=resources, **kwargs)
        return readable(page), resources


def readable(page: str) -> str:
    """``page`` with a language and our colours; a page of another make comes back as it was."""
    return page.replace("<html>", '<html lang="en">', 1).replace("</head>", _STYLE, 1)
