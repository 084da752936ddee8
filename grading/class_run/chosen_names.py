"""Which folders a student's or an assignment's name means, when names may hold the characters of a pattern.

nbgrader hands names to ``glob``: there a student called ``[ab]`` is the pattern for ``a`` and ``b``, and gets nothing.
"""

import fnmatch
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["chosen", "step_folders", "students_with"]


def chosen(wanted: str, names: Iterable[str]) -> list[str]:
    """``wanted`` itself if it is one of ``names``, or else those that it matches as a pattern; sorted."""
    known = set(names)
    if wanted in known and wanted != "*":
        return [wanted]
    return sorted(name for name in known if fnmatch.fnmatchcase(name, wanted))


def students_with(parent: Path, rest: tuple[str, ...]) -> list[str]:
    """Names of the folders in ``parent`` that have the folder ``rest`` in them, sorted."""
    if not parent.is_dir():
        return []
    return sorted(p.name for p in parent.iterdir() if _holds(p, rest))


def _holds(folder: Path, rest: tuple[str, ...]) -> bool:
    """What may not be looked into counts as there, so that it is named and not passed over."""
    try:
        return folder.is_dir() and folder.joinpath(*rest).is_dir()
    except OSError:
        return True


def step_folders(coursedir: Any, step: str) -> dict[str, Path]:
    """{student: folder} of one step of nbgrader's chosen assignment, for those that ``student_id`` means, sorted."""
    whole = Path(coursedir.format_path(step, "*", coursedir.assignment_id))
    star = len(whole.parts) - 1 - whole.parts[::-1].index("*")
    parent, rest = Path(*whole.parts[:star]), whole.parts[star + 1 :]
    names = chosen(coursedir.student_id, students_with(parent, rest))
    return {name: parent.joinpath(name, *rest) for name in names}
