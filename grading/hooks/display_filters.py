"""How nbconvert's templates show a student's work, in feedback and in formgrader: bounded, and in a box of its own.

nbconvert's own filters take time that grows with the square of some texts, and its exporter reads the whole page again
to describe pictures.  What a page shows in full of a student's text is bounded here as well; beyond it, text is plain.
"""

import re
from collections.abc import Mapping
from typing import Any

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters import ansi2html, get_metadata
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter

from grading.course.skeleton import is_automatic
from grading.submission.coloured_code import coloured_code, plain_code
from grading.submission.sanitise import as_written, clean_html, markdown_to_html

__all__ = ["FILTERS", "BoundedHTML"]

MAX_ON_A_PAGE = {"code": 300_000, "markdown": 60_000, "html": 2_000_000, "colours": 20_000}
"""Characters of code, Markdown and HTML, and changes of colour in printed text, that a page shows as such."""

MAX_COLOURS = 2000
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;:?]{0,40}[@-~])?")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,40}m")
_BOX = "overflow: auto; contain: layout paint; isolation: isolate"
_EDGE = "; border-left: 3px solid #8a8a8a; padding-left: 0.6em"


class BoundedHTML(HTMLExporter):
    """nbconvert's exporter without its second reading of the page, which costs more than all before."""

    def from_notebook_node(self, nb: Any, resources: Any = None, **kwargs: Any) -> tuple[str, Any]:
        """The page and nbconvert's resources."""
        resources = self._init_resources(resources)
        kinds = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", kinds)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kwargs)
        return str(page), resources


@pass_context
def _markdown(context: Mapping[str, Any], source: str) -> str:
    """A cell's Markdown, with the cell's pasted pictures, or a person's comment on the cell."""
    cell = context.get("cell") or {}
    if not _students_text(cell, source):
        return _box(markdown_to_html(source, cell.get("attachments")))
    shown = markdown_to_html(source, cell.get("attachments")) if _room(context, "markdown", source) else None
    return _box(as_written(source) if shown is None else shown, _EDGE)


@pass_context
def _code(context: Mapping[str, Any], source: str, metadata: Any = None) -> str:  # noqa: ARG001
    cell = context.get("cell") or {}
    fits = not _students_text(cell, source) or _room(context, "code", source)
    return coloured_code(source) if fits else plain_code(source)


@pass_context
def _html(context: Mapping[str, Any], text: str) -> str:
    """HTML of an output. What the grader itself says stands in cells that are graded by a machine."""
    cell = context.get("cell") or {}
    if is_automatic(cell):
        return _box(clean_html(text))
    shown = clean_html(text) if _room(context, "html", text) else "(HTML beyond what a page can show is left out)"
    return _box(shown, _EDGE)


@pass_context
def _printed(context: Mapping[str, Any], text: str) -> str:
    """Printed text with its colours, as long as they are colours for people; every other sequence goes."""
    found = _COLOUR.findall(text)
    if found and (len(found) > MAX_COLOURS or not _room(context, "colours", found)):
        return str(ansi2html(_SEQUENCE.sub("", text)))
    return str(ansi2html(_SEQUENCE.sub(lambda one: one[0] if _COLOUR.fullmatch(one[0]) else "", text)))


def _metadata(output: Any, key: str, kind: str | None = None) -> Any:
    """As nbconvert's; a picture that nobody described says so to those who cannot see it."""
    found = get_metadata(output, key, kind)
    return "a picture without a description" if key == "alt" and kind and found is None else found


def _unchanged(text: str) -> str:
    """In the place of nbconvert's search for ``files/`` in every address, of which our pages have none."""
    return text


FILTERS = {
    "markdown2html": _markdown,
    "highlight_code": _code,
    "clean_html": _html,
    "ansi2html": _printed,
    "get_metadata": _metadata,
    "strip_files_prefix": _unchanged,
}
"""By the names that the templates use."""


def _students_text(cell: Any, source: str) -> bool:
    """Whether a cell's own text is the student's: an answer, or a cell that was added."""
    role = (cell.get("metadata") or {}).get("nbgrader") or {}
    added = str(cell.get("id", "")).startswith("own-")
    return bool(role.get("solution") or added) and source == cell.get("source")


def _room(context: Mapping[str, Any], kind: str, given: Any) -> bool:
    """Whether the page may show this as well; it counts if it may."""
    resources = context.get("resources")
    used = resources.setdefault("shown_so_far", {}) if resources is not None else {}
    after = used.get(kind, 0) + len(given)
    if after > MAX_ON_A_PAGE[kind]:
        return False
    used[kind] = after
    return True


def _box(shown: str, edge: str = "") -> str:
    """What a student made stays inside: it can neither cover nor move what stands around it."""
    return f'<div style="{_BOX}{edge}">{shown}</div>'
