"""How a master (one py:percent file per notebook) says what each cell is, and the notebook made from it.

A cell's header line holds one of four roles; a cell without one is prose, or a locked code cell if it is code.

=====================================  ======================================================================
``# %% solution="ID"``                 the student's cell; BEGIN/END SOLUTION is cut out of the lab
``# %% test="ID" points=2``            a locked, automatically graded test on visible examples
``# %% [markdown] written="ID" ...``   a written answer with ``points``, graded by hand
``# %% locked="ID"``                   provided code, run as it is
=====================================  ======================================================================

``measures=true`` on a locked or test cell marks work that a graded run does not repeat (measuring, building, judging
the evidence): the submitted evidence is what is graded.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_notebook

from deep_learning_cases.errors import FileError, InputError
from grading.course.skeleton import NAMESPACE

__all__ = ["read_master"]

_ROLES = ("solution", "test", "written", "locked")
_KNOWN = {*_ROLES, "points", "measures", "lines_to_next_cell"}  # the last is jupytext's own
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_master(path: Path) -> NotebookNode:
    """The source notebook of one master: nbgrader's metadata, stable cell ids, no outputs.

    Raises FileError where the file cannot be read and InputError, naming file and cell, for a header that makes no
    sense.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read the master {path} ({error}): expected a py:percent file; check the path"
        ) from error
    parsed = jupytext.reads(text, fmt="py:percent")
    notebook = new_notebook(cells=list(_cells(parsed, path)), metadata=_notebook_metadata(parsed.metadata))
    notebook.nbformat_minor = 5
    return notebook


def _notebook_metadata(written: dict[str, Any]) -> dict[str, Any]:
    # No Python version, no kernel's display name of this machine: the same bytes wherever the labs are built.
    metadata: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    if NAMESPACE in written:
        metadata[NAMESPACE] = dict(written[NAMESPACE])
    return metadata


def _cells(parsed: NotebookNode, path: Path) -> Iterator[NotebookNode]:
    used: dict[str, int] = {}
    for cell in parsed.cells:
        if not cell.source.strip():
            continue
        header = dict(cell.metadata)
        cell.metadata = NotebookNode()
        role = _role(header, cell, path)
        if role is None:
            name = f"text-{hashlib.sha256(cell.source.encode()).hexdigest()[:10]}"
            cell.metadata["deletable"] = cell.metadata["editable"] = False
        else:
            name = header[role]
            cell.metadata["nbgrader"] = _nbgrader(role, header)
        if header.get("measures"):
            cell.metadata[NAMESPACE] = {"measures": True}
        if role is not None and name in used:
            raise InputError(f"{path.name}: the cell name {name!r} stands twice; expected one cell a name; rename one")
        used[name] = used.get(name, 0) + 1
        cell.id = name if used[name] == 1 else f"{name}-{used[name]}"
        yield cell


def _role(header: dict[str, Any], cell: NotebookNode, path: Path) -> str | None:
    where = f"{path.name}, cell starting {cell.source.splitlines()[0]!r}"
    if unknown := sorted(set(header) - _KNOWN):
        raise InputError(f"{where}: unknown header {', '.join(unknown)}; expected {', '.join(sorted(_KNOWN))}")
    roles = [role for role in _ROLES if role in header]
    if len(roles) > 1:
        raise InputError(f"{where}: is {' and '.join(roles)} at once; expected one role; split the cell")
    if not roles:
        if cell.cell_type == "code":
            raise InputError(f'{where}: code without a role; expected solution, test or locked="name"; name it')
        return None
    role = roles[0]
    if not _NAME.fullmatch(str(header[role])):
        raise InputError(f"{where}: {header[role]!r} is no cell name; expected letters, digits, _ or -; rename it")
    if (role == "written") != (cell.cell_type == "markdown"):
        raise InputError(f"{where}: {role} in a {cell.cell_type} cell; expected written=markdown, the rest code")
    if (role in ("test", "written")) != ("points" in header):
        raise InputError(f"{where}: points and role {role} do not fit; expected points on test and written cells only")
    return role


def _nbgrader(role: str, header: dict[str, Any]) -> dict[str, Any]:
    """nbgrader's cell metadata, schema 3."""
    metadata: dict[str, Any] = {
        "grade": role in ("test", "written"),
        "grade_id": header[role],
        "locked": role in ("test", "locked"),
        "schema_version": 3,
        "solution": role in ("solution", "written"),
        "task": False,
    }
    if metadata["grade"]:
        metadata["points"] = header["points"]
    return metadata
