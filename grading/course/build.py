"""Masters -> source -> release -> labs: every notebook of the course from one py:percent file.

``source/`` (with solutions) is written from the masters; nbgrader's own ``generate_assignment`` makes ``release/`` of
it; ``labs/`` is a copy of that, under version control.  The same masters give the same bytes: cell ids come from names
and text, and no output, date or version is written.
"""

import contextlib
import io
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.files import write_bytes
from grading.course.masters_format import read_master
from grading.course.places import COURSE, LABS, MASTERS

__all__ = ["assignments", "build", "build_labs", "differences", "generate", "write_source"]


def assignments(masters: Path = MASTERS) -> list[str]:
    """The assignments that have masters: one folder each, sorted."""
    return sorted({master.parent.name for master in masters.glob("*/*.py")})


def write_source(assignment: str, course: Path, masters: Path = MASTERS) -> list[Path]:
    """Write ``course/source/ASSIGNMENT/*.ipynb`` from the masters; returns the paths, sorted.

    Raises InputError for an assignment without masters or a master that makes no sense.
    """
    files = sorted((masters / assignment).glob("*.py"))
    if not files:
        known = ", ".join(assignments(masters)) or "none"
        raise InputError(f"no assignment {assignment!r}: expected one of {known}; add {masters / assignment}/*.py")
    # Read all before the first is written: a mistake in one master leaves the old source as it was.
    notebooks = {file.stem: read_master(file) for file in files}
    folder = course / "source" / assignment
    _empty(folder)
    paths = [folder / f"{name}.ipynb" for name in notebooks]
    for path, notebook in zip(paths, notebooks.values(), strict=True):
        write_bytes(path, (nbformat.writes(notebook) + "\n").encode())
    return paths


def generate(assignment: str, course: Path, db_url: str | None = None) -> Path:
    """Run nbgrader's ``generate_assignment`` on ``course/source/ASSIGNMENT``; returns ``course/release/ASSIGNMENT``.

    The cells, points and sources are saved to the gradebook (``course/gradebook.db`` unless ``db_url`` says otherwise),
    which is what nbgrader's autograder later goes by.  Raises FileError if nbgrader refuses, with its reason.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    coursedir = CourseDirectory(root=str(course), course_id="deep-learning-cases", assignment_id=assignment)
    if db_url is not None:
        coursedir.db_url = db_url
    converter = GenerateAssignment(coursedir=coursedir, force=True)
    release = course / "release" / assignment
    reason = "no reason given"
    with _quiet(), _commands_on_path(), _log_of(converter) as log:
        try:
            converter.start()
        # Not nbgrader's capture_log, which takes Ctrl-C for a refusal.
        except (Exception, SystemExit) as error:
            reason = _reason(log.getvalue(), error)
        else:
            if release.is_dir():
                return release
    raise FileError(f"nbgrader did not generate {assignment!r} ({reason}): expected {release}; correct it, run again")


def build_labs(assignment: str, labs: Path, masters: Path = MASTERS) -> list[Path]:
    """Write ``labs/ASSIGNMENT/*.ipynb``, the students' notebooks, by way of a course folder that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="course-") as temporary:
        course = Path(temporary).resolve()
        write_source(assignment, course, masters)
        release = generate(assignment, course, f"sqlite:///{course / 'gradebook.db'}")
        folder = labs / assignment
        _empty(folder)
        paths = []
        for notebook in sorted(release.glob("*.ipynb")):
            paths.append(folder / notebook.name)
            write_bytes(paths[-1], notebook.read_bytes())
    return paths


def build(course: Path = COURSE, labs: Path = LABS, masters: Path = MASTERS) -> list[Path]:
    """Everything: source, release and gradebook of the course, and the labs of every assignment; returns the labs."""
    written = []
    for assignment in assignments(masters):
        write_source(assignment, course, masters)
        release = generate(assignment, course)
        folder = labs / assignment
        _empty(folder)
        for notebook in sorted(release.glob("*.ipynb")):
            written.append(folder / notebook.name)
            write_bytes(written[-1], notebook.read_bytes())
    return written


def differences(labs: Path = LABS, masters: Path = MASTERS) -> list[str]:
    """One line for each notebook under ``labs`` that is not what the masters give; none if all are up to date."""
    with tempfile.TemporaryDirectory(prefix="labs-") as temporary:
        fresh = Path(temporary)
        for assignment in assignments(masters):
            build_labs(assignment, fresh, masters)
        wanted, found = _contents(fresh), _contents(labs)
    lines = [f"{name}: not built from the masters" for name in sorted(found.keys() - wanted.keys())]
    lines += [f"{name}: missing" for name in sorted(wanted.keys() - found.keys())]
    lines += [
        f"{name}: differs from its master"
        for name in sorted(wanted.keys() & found.keys())
        if wanted[name] != found[name]
    ]
    return lines


def _contents(folder: Path) -> dict[str, bytes]:
    notebooks = (path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in notebooks}


def _empty(folder: Path) -> None:
    """An empty folder: a notebook whose master is gone must go as well."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.ipynb"):
            old.unlink()
        shutil.rmtree(folder / ".ipynb_checkpoints", ignore_errors=True)
    except OSError as error:
        raise FileError(
            f"cannot write {folder} ({error.strerror}): expected a folder of ours; check permissions"
        ) from error


def _reason(log: str, error: BaseException) -> str:
    """The first exception in nbgrader's log: the one that ends it only says that there was one."""
    found = re.search(r"^ *((?:\w+\.)*\w*(?:Error|Exception): .+)$", log, flags=re.MULTILINE)
    return found.group(1) if found else " ".join(f"{type(error).__name__}: {error}".split())


@contextlib.contextmanager
def _log_of(converter: Any) -> Iterator[io.StringIO]:
    """What the converter logs meanwhile."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    converter.log.addHandler(handler)
    try:
        yield text
    finally:
        converter.log.removeHandler(handler)


@contextlib.contextmanager
def _commands_on_path() -> Iterator[None]:
    """nbgrader starts ``alembic`` by its bare name, which fails where the environment was never activated."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """nbgrader logs each step of a build to stderr; only its reasons for refusing are wanted."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(previous)
