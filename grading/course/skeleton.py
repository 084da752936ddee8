"""The instructor's side of a notebook: what a submission is rebuilt on.

A skeleton is the source notebook after the very preprocessors nbgrader's ``generate_assignment`` applies before it
saves the cells to the gradebook: solutions cut out, cells locked, checksums computed, hidden tests still in.  It is
plain JSON, so that it can be sent to any worker.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError, InputError

__all__ = [
    "NAMESPACE",
    "Cell",
    "Notebook",
    "grade_cells",
    "is_automatic",
    "load_skeletons",
    "role_of",
    "runs",
    "skeleton_of",
]

Notebook = dict[str, Any]
Cell = dict[str, Any]
"""nbformat's JSON, version 4; what a student's holds is anything until it was read."""

NAMESPACE = "deep_learning_cases"
"""Key of our own metadata, in cells ({"measures": true}) and in notebooks ({"graded_run": false})."""


def load_skeletons(source: Path, config: Any = None) -> dict[str, Notebook]:
    """Every notebook of ``source`` (``COURSE/source/ASSIGNMENT``) by name; ``config`` is nbgrader's, if there is one.

    Raises InputError if there is no such assignment and FileError if one of its notebooks cannot be read.
    """
    paths = sorted(source.glob("*.ipynb")) if source.is_dir() else []
    if not paths:
        known = ", ".join(sorted(p.name for p in source.parent.glob("*") if p.is_dir())) or "none yet"
        raise InputError(
            f"no assignment {source.name!r} in {source.parent}: expected one of: {known}; "
            "run `python -m grading build` or name the course with --course"
        )
    return {path.stem: skeleton_of(path, config) for path in paths}


def skeleton_of(path: Path, config: Any = None) -> Notebook:
    """One source notebook as the skeleton, with unique cell ids and metadata that nbgrader accepts."""
    import nbformat
    from nbgrader.converters import GenerateAssignment
    from nbgrader.nbgraderformat import MetadataValidator
    from nbgrader.preprocessors import CheckCellMetadata, SaveCells
    from traitlets.config import Config

    config = config or Config()
    try:
        notebook = nbformat.read(path, as_version=4)
        stages = list(GenerateAssignment(config=config).preprocessors)
        # SaveCells writes to the gradebook; what follows it removes what students must not see but graders need.
        for stage in stages[: stages.index(SaveCells)] if SaveCells in stages else stages:
            if stage is not CheckCellMetadata:
                notebook, _ = stage(config=config).preprocess(notebook, {"nbgrader": {}})
        MetadataValidator().validate_nb(notebook)
    except Exception as error:  # whatever is wrong with the instructor's notebook, one line names it
        raise FileError(
            f"cannot use the source notebook {path} ({_first_line(error)}): expected what "
            "`python -m grading build` writes; build the course again"
        ) from error
    return _with_ids(json.loads(nbformat.writes(notebook)))


def grade_cells(skeleton: Notebook) -> dict[str, float]:
    """``{grade_id: points}`` of all graded cells, in order."""
    return {
        role_of(cell)["grade_id"]: float(role_of(cell)["points"])
        for cell in skeleton["cells"]
        if role_of(cell).get("grade") or role_of(cell).get("task")
    }


def is_automatic(cell: Cell) -> bool:
    """Whether a cell is graded by a machine: a test, not a written or free answer, not a task."""
    role = role_of(cell)
    return bool(role.get("grade")) and not role.get("solution") and cell["cell_type"] == "code"


def runs(skeleton: Notebook) -> bool:
    """False for a notebook that is provided to be run by the student and has nothing to execute in grading."""
    return skeleton["metadata"].get(NAMESPACE, {}).get("graded_run", True) is not False


def role_of(cell: Cell) -> dict[str, Any]:
    """What the cell is to nbgrader; empty for one that is nothing to it."""
    role: dict[str, Any] = cell.get("metadata", {}).get("nbgrader") or {}
    return role


def _with_ids(skeleton: Notebook) -> Notebook:
    """nbformat gives cells of an older notebook random ids; the same source must give the same skeleton."""
    for position, cell in enumerate(skeleton["cells"]):
        cell["source"] = _text(cell)
        if skeleton.get("nbformat_minor", 0) < 5 or not cell.get("id"):
            text = hashlib.sha256(f"{position}\0{cell['source']}".encode()).hexdigest()[:12]
            cell["id"] = f"cell-{text}"
    skeleton["nbformat"], skeleton["nbformat_minor"] = 4, 5
    return skeleton


def _text(cell: Cell) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
