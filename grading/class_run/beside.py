"""What a notebook finds beside itself: the submission's other files, and the instructor's own over them.

A student may hand in a file where the instructor hands out a folder of that name, or a folder in the place of a file.
The instructor's stays in either case, and the student's is named as left out.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from grading.submission.stage import LeftOut

__all__ = ["course_files", "files_beside", "in_the_way", "put", "put_link"]


def course_files(source: Path) -> list[Path]:
    """What an instructor hands out beside the notebooks, sorted."""
    found = (p for p in source.rglob("*") if p.is_file() and p.suffix != ".ipynb")
    return sorted(p for p in found if not {".ipynb_checkpoints", "__pycache__"} & set(p.parts))


def files_beside(staged: Path, source: Path, kept: Iterable[str]) -> dict[str, Path]:
    """{name: file}: the student's, but for what is in the way, and the instructor's; ``kept`` stays the student's."""
    theirs, ours = _student_files(staged), _course_names(source, set(kept))
    blocked = set(_in_the_way(theirs, ours))
    return {name: path for name, path in theirs.items() if name not in blocked} | ours


def in_the_way(staged: Path, source: Path, kept: Iterable[str]) -> list[LeftOut]:
    """The student's files that cannot lie beside the instructor's, as :mod:`grading.submission.stage` names others."""
    blocked = _in_the_way(_student_files(staged), _course_names(source, set(kept)))
    return [{"name": name, "why": f"is in the way of the course's own {ours}"} for name, ours in blocked.items()]


def put(path: Path, target: Path, copy: Callable[[Path, Path], object] = shutil.copyfile) -> None:
    """A copy of a file; what was there goes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    copy(path, target)


def put_link(path: Path, target: Path) -> None:
    """The same file under another name, or a copy where the file system cannot do that."""
    try:
        put(path, target, os.link)
    except OSError:
        put(path, target)


def _student_files(staged: Path) -> dict[str, Path]:
    found = (p for p in staged.rglob("*") if p.is_file() and p.suffix != ".ipynb")
    return {path.relative_to(staged).as_posix(): path for path in sorted(found)}


def _course_names(source: Path, kept: set[str]) -> dict[str, Path]:
    named = {path.relative_to(source).as_posix(): path for path in course_files(source)}
    return {name: path for name, path in named.items() if name not in kept}


def _in_the_way(theirs: Iterable[str], ours: Iterable[str]) -> dict[str, str]:
    """{their name: ours}: a file where we have a folder, or something inside of what is a file of ours."""
    files = set(ours)
    folders = {str(parent): name for name in sorted(files, reverse=True) for parent in PurePosixPath(name).parents}
    blocked = {name: folders[name] for name in theirs if name in folders}
    inside = {name: [str(parent) for parent in PurePosixPath(name).parents] for name in theirs}
    return blocked | {name: above for name, parents in inside.items() for above in parents if above in files}
