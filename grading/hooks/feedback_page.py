"""nbgrader's feedback page, whole by itself and readable for more people.

It asks nobody for anything: no MathJax from elsewhere (a formula stays readable as it was written), no fonts beside the
page, and a policy in the page forbids the rest.  Language named, darker links and code, no sideways scrolling.
"""

import re
from typing import Any

from jinja2 import BaseLoader, DictLoader
from traitlets import default
from traitlets.config import Config

from grading.hooks.display_filters import FILTERS, BoundedHTML

__all__ = ["ReadableFeedback", "display_config", "readable"]

_POLICY = """<meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:" />
<meta name="viewport" content="width=device-width, initial-scale=1.0" />
<link rel="icon" href="data:," />"""
"""Nothing is loaded but what the page holds; the empty icon keeps a browser from asking the server for one."""

_STYLE = """<style>
a { color: #1f5082; text-decoration: underline }
.panel-primary > .panel-heading a, .panel-primary > .panel-heading span a { color: #fff !important }
.text-muted, .panel .help-block { color: #595959 }
img { max-width: 100%; height: auto }
#toc a { text-underline-offset: 0.3em }
#toc code { color: inherit; background: none; padding: 0 }
.rendered_html table { border-collapse: collapse; margin: 0.6em 0 }
.rendered_html th, .rendered_html td { border: 1px solid #c4c4c4; padding: 0.3em 0.7em }
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
"""Colours: only what axe-core finds too faint on the template's grey, measured at 4.5 to 1 and above."""

_CONTENTS_LINE = re.compile(r'<li><a href="#([\w-]+)">(Test cell|Written response|Coding free-response|Task)</a>')
"""A line of the list at the top: the template gives all cells of a kind one name."""


class ReadableFeedback(BoundedHTML):
    """The exporter of the configuration, with :func:`readable` on what it gives."""

    @default("extra_loaders")
    def _extra_loaders_default(self) -> list[BaseLoader]:
        # nbconvert's own macro loads MathJax from a CDN; loaders named here are asked before it is found.
        return [DictLoader({"mathjax.html.j2": "{%- macro mathjax(url='') -%}{%- endmacro %}"})]

    def from_notebook_node(self, nb: Any, resources: Any = None, **kwargs: Any) -> tuple[str, Any]:
        """The page and nbconvert's resources."""
        page, resources = super().from_notebook_node(nb, resources=resources, **kwargs)
        return readable(page), resources


def display_config() -> Any:
    """How feedback and formgrader render: bounded, Markdown cleaned after rendering, no SVG, script or widget."""
    config = Config()
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.filters = FILTERS
    return config


def readable(page: str) -> str:
    """``page`` with a language, our style, names in its list and nothing to load.

    A page of another make comes back as it was.
    """
    head, end, body = page.partition("</head>")
    if not end:
        return page
    head = re.sub(r'<meta charset="utf-8" ?/>', _POLICY, head.replace("<html>", '<html lang="en">', 1), count=1)
    # Bootstrap's icons, which the page does not use and which do not lie beside it.
    head = re.sub(r"@font-face\s*\{[^}]*\}", "", head) + _STYLE
    contents, end, cells = body.partition('<div class="panel-body">')
    return head + _CONTENTS_LINE.sub(r'<li><a href="#\1">\2 <code>\1</code></a>', contents) + end + cells
