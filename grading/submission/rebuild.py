"""Stage 2: the student's notebook on the instructor's skeleton.

Order, locked cells, grade cells, ids, types, points and metadata come from the source. From the student come the
sources of solution cells and the student's own extra cells, pictures pasted into written ones, and nothing else: no
tag, no metadata, no output.
A cell that was duplicated, deleted, renamed, re-typed or re-pointed changes nothing, and is named in the notes.
"""

import copy
import json
import re
from typing import Any, TypedDict

from deep_learning_cases.errors import EvidenceError
from grading.course.skeleton import Cell, Notebook, role_of
from grading.submission.pictures import clean_attachments

__all__ = ["MAX_NOTEBOOK_BYTES", "NotANotebookError", "Note", "parse_notebook", "rebuild"]

MAX_NOTEBOOK_BYTES = 24 * 1024 * 1024
MAX_CELLS = 1000
MAX_SOURCE_BYTES = 1024 * 1024
MAX_TEXT_BYTES = 4 * 1024 * 1024
"""Of all cells together, outputs and pictures not counted: every later reader takes time that grows with it."""
MAX_JSON_VALUES = 1_000_000
"""A list of two bytes takes sixty in memory; with a hundred bytes a value these come to a tenth of a gigabyte."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_TYPES = ("code", "markdown", "raw")


class Note(TypedDict):
    """What differed: deleted, duplicated, renamed, retyped, repointed, edited, moved or tagged."""

    kind: str
    cell: str
    message: str


class NotANotebookError(EvidenceError):
    """A submitted ``.ipynb`` is not a notebook that Jupyter could open."""


def parse_notebook(content: bytes, name: str) -> Notebook:
    """The submitted file as a notebook in format 4: a dict with a list of cells, each with a type and a source text.

    Raises NotANotebookError for anything else; nothing in it is trusted beyond that.
    """
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise _not_one(name, f"it has {len(content)} bytes, more than {MAX_NOTEBOOK_BYTES}")
    if _values(content) > MAX_JSON_VALUES:
        raise _not_one(name, f"it holds more than {MAX_JSON_VALUES} values; clear its outputs")
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _not_one(name, "it is not JSON") from error
    if not isinstance(notebook, dict):
        raise _not_one(name, "it holds no cells")
    cells: Any = notebook.get("cells")
    if isinstance(notebook.get("worksheets"), list) and "cells" not in notebook:
        cells = _upgraded(notebook["worksheets"])
    if not isinstance(cells, list):
        raise _not_one(name, "it holds no cells")
    if len(cells) > MAX_CELLS:
        raise _not_one(name, f"it has {len(cells)} cells, more than {MAX_CELLS}")
    plain = [_plain(cell, name) for cell in cells]
    text = sum(len(cell["source"]) for cell in plain)
    if text > MAX_TEXT_BYTES:
        raise _not_one(name, f"its cells have {text} characters together, more than {MAX_TEXT_BYTES}")
    return {"cells": plain}


def rebuild(skeleton: Notebook, submitted: Notebook) -> tuple[Notebook, list[Note]]:
    """The notebook to run, and notes on what differed from the source.

    ``skeleton`` as :func:`grading.course.skeleton.skeleton_of` gives it, ``submitted`` as :func:`parse_notebook` does.
    """
    notes: list[Note] = []
    matched, extras = _match(skeleton["cells"], submitted["cells"], notes)
    result = copy.deepcopy(skeleton)
    result["cells"] = list(_own(extras.get(-1, []), 0))
    count = len(result["cells"])
    for position, original in enumerate(skeleton["cells"]):
        cell = copy.deepcopy(original)
        theirs = matched.get(position)
        if theirs is None:
            if role_of(original):
                notes.append(_note("deleted", original, "was missing and is back"))
        else:
            _compare(original, theirs, notes)
            if _is_solution(original):
                _take_over(cell, theirs)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        result["cells"].append(cell)
        behind = extras.get(position, [])
        if theirs is not None and not role_of(original) and theirs["source"] != original["source"]:
            # A provided cell that nobody locked: what the student made of it is the student's own cell, after ours.
            behind = [theirs, *behind]
        own = list(_own(behind, count))
        count += len(own)
        result["cells"] += own
    return result, notes


def _take_over(cell: Cell, theirs: Cell) -> None:
    """A student's text, and the pictures in a written one; those that the instructor's text had went with it."""
    cell["source"] = theirs["source"]
    cell.pop("attachments", None)
    if theirs.get("attachments") and cell["cell_type"] == "markdown":
        cell["attachments"] = theirs["attachments"]


def _match(ours: list[Cell], theirs: list[Cell], notes: list[Note]) -> tuple[dict[int, Cell], dict[int, list[Cell]]]:
    """{our position: their cell} and {our position before: their extra cells, in their order}; -1 is the top."""
    where: dict[int, int] = {}
    for index, cell in enumerate(theirs):
        position = _position(ours, cell, by_name=True)
        if position is not None:
            if position in where:
                notes.append(_note("duplicated", ours[position], "stood more than once"))
            # The last copy counts, as in nbgrader: it is what a run from top to bottom leaves defined.
            where[position] = index
    for index, cell in enumerate(theirs):
        if index in where.values() or _position(ours, cell, by_name=True) is not None:
            continue
        position = _position(ours, cell, by_name=False)
        if position is not None and position not in where:
            where[position] = index
    matched = {position: theirs[index] for position, index in where.items()}
    if [where[p] for p in sorted(where)] != sorted(where.values()):
        notes.append(
            {"kind": "moved", "cell": "", "message": "cells stood in another order; the source's order counts"}
        )
    return matched, _extras(ours, theirs, {index: position for position, index in where.items()})


def _extras(ours: list[Cell], theirs: list[Cell], taken: dict[int, int]) -> dict[int, list[Cell]]:
    extras: dict[int, list[Cell]] = {}
    anchor = -1
    for index, cell in enumerate(theirs):
        if index in taken:
            anchor = max(anchor, taken[index])
            continue
        copy_of = _position(ours, cell, by_name=True)
        if copy_of is not None and not _is_solution(ours[copy_of]) and cell["source"] == ours[copy_of]["source"]:
            continue
        if cell["source"].strip():
            extras.setdefault(anchor, []).append(cell)
    return extras


def _position(ours: list[Cell], cell: Cell, by_name: bool) -> int | None:
    """Where a submitted cell belongs: by its nbgrader name, or else by the id Jupyter gave it."""
    for position, original in enumerate(ours):
        name = role_of(original).get("grade_id")
        if by_name and name is not None and cell["grade_id"] == name:
            return position
        if not by_name and cell["id"] is not None and cell["id"] == original["id"]:
            return position
    return None


def _compare(original: Cell, theirs: Cell, notes: list[Note]) -> None:
    role = role_of(original)
    if theirs["cell_type"] != original["cell_type"]:
        notes.append(_note("retyped", original, f"was {theirs['cell_type']}, is {original['cell_type']} again"))
    if theirs["tags"]:
        notes.append(_note("tagged", original, "had tags, which were dropped"))
    if not role:
        if theirs["source"] != original["source"]:
            notes.append(_note("edited", original, "was changed; the provided text stays, the change follows it"))
        return
    if theirs["grade_id"] != role["grade_id"]:
        notes.append(_note("renamed", original, f"was named {str(theirs['grade_id'])[:80]!r}"))
    elif role.get("grade") and theirs["points"] not in (None, float(role["points"])):
        notes.append(_note("repointed", original, f"claimed {str(theirs['points'])[:40]} points, has {role['points']}"))
    if not _is_solution(original) and theirs["source"].rstrip() != _visible(original["source"]).rstrip():
        notes.append(_note("edited", original, "is locked and was changed; the provided cell was used"))


def _visible(source: str) -> str:
    """What students were given of a locked cell: nbgrader cuts the hidden tests out of the release."""
    kept, hidden = [], False
    for line in source.split("\n"):
        if "BEGIN HIDDEN TESTS" in line:
            hidden = True
        elif "END HIDDEN TESTS" in line:
            hidden = False
        elif not hidden:
            kept.append(line)
    return "\n".join(kept)


def _own(cells: list[Cell], count: int) -> list[Cell]:
    """The student's own cells: type, source, pasted pictures. Raw cells could be HTML, so they become text."""
    made = []
    for number, cell in enumerate(cells, count):
        own: Cell = {"cell_type": cell["cell_type"], "id": f"own-{number}", "metadata": {}, "source": cell["source"]}
        if cell["cell_type"] == "code":
            own |= {"outputs": [], "execution_count": None}
        elif cell["cell_type"] == "raw":
            own["cell_type"] = "markdown"
            own["source"] = "\n".join(f"    {line}" for line in cell["source"].split("\n"))
        elif cell.get("attachments"):
            own["attachments"] = cell["attachments"]
        made.append(own)
    return made


def _plain(cell: Any, name: str) -> Cell:
    """One submitted cell, reduced to what is ever looked at, each of a known type."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in _TYPES:
        raise _not_one(name, "one of its cells has no known type")
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _not_one(name, "the source of one of its cells is no text")
    if len(source) > MAX_SOURCE_BYTES:
        raise _not_one(name, f"one of its cells has {len(source)} characters, more than {MAX_SOURCE_BYTES}")
    metadata = _dict(cell.get("metadata"))
    role = _dict(metadata.get("nbgrader"))
    grade_id, points = role.get("grade_id"), role.get("points")
    return {
        "cell_type": cell["cell_type"],
        "source": source.encode("utf-8", "replace").decode(),
        "id": cell["id"] if isinstance(cell.get("id"), str) else None,
        "grade_id": grade_id if isinstance(grade_id, str) else None,
        "points": float(points) if isinstance(points, int | float) and abs(points) < 1e15 else points,
        "tags": bool(metadata.get("tags")),
        "attachments": clean_attachments(cell.get("attachments")) if cell["cell_type"] == "markdown" else {},
    }


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _values(content: bytes) -> int:
    """How many values a JSON text holds at most, told by its signs, before it is parsed."""
    signs = (b"[", b"{", b",")
    count = sum(map(content.count, signs))
    if count <= MAX_JSON_VALUES:
        return count
    strings = content.count(b'"') // 2
    if strings > MAX_JSON_VALUES:
        return strings
    bare = _STRING.sub(b"", content)
    return sum(map(bare.count, signs))


def _upgraded(worksheets: list[Any]) -> list[Any] | None:
    """The cells of Jupyter's third format, which still turn up, as the fourth has them; None where there are none."""
    pages = [page.get("cells") if isinstance(page, dict) else None for page in worksheets]
    if not all(isinstance(page, list) for page in pages):
        return None
    return [_upgraded_cell(cell) if isinstance(cell, dict) else cell for page in pages for cell in page or []]


def _upgraded_cell(cell: Cell) -> Cell:
    kind, level = cell.get("cell_type"), cell.get("level")
    if kind == "code":
        return cell | {"source": cell.get("input", "")}
    if kind == "heading":
        title = cell.get("source", "")
        signs = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1)
        return cell | {
            "cell_type": "markdown",
            "source": [f"{signs} ", *(title if isinstance(title, list) else [title])],
        }
    return cell | {"cell_type": "markdown" if kind == "html" else kind}


def _is_solution(cell: Cell) -> bool:
    return bool(role_of(cell).get("solution"))


def _note(kind: str, cell: Cell, message: str) -> Note:
    name = role_of(cell).get("grade_id") or cell["id"]
    return {"kind": kind, "cell": name, "message": f"cell {name} {message}"}


def _not_one(name: str, why: str) -> NotANotebookError:
    return NotANotebookError(f"{name} is not a notebook ({why}): expected a file saved by Jupyter; hand it in again")
