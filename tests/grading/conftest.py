"""A folder for temporary files of this run alone, which must be as empty at the end as it was at the start."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grading import classroom
from tests.grading.leftovers import Leftovers

_leftovers = Leftovers()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _leftovers.before(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    try:
        return (yield)
    finally:
        _leftovers.after()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Other programs on the machine have their own temporary files: here are only those of this run."""
    if classroom.template_folder is not None:  # the tests of another folder have asked for it before
        yield
        return
    classroom.template_folder = tmp_path_factory.mktemp("classroom")
    own = Path(tempfile.mkdtemp(prefix="dlc-"))
    own.chmod(0o755)  # behind Landlock another user walks through it
    before = {"TMPDIR": os.environ.get("TMPDIR"), "tempdir": tempfile.tempdir}
    os.environ["TMPDIR"], tempfile.tempdir = str(own), None
    try:
        yield
        _leftovers.after()  # this runs within the teardown of the last test
        left = _leftovers.lines()
    finally:
        tempfile.tempdir = before["tempdir"]
        if before["TMPDIR"] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before["TMPDIR"]
        shutil.rmtree(own, ignore_errors=True)
    assert not left, "\n".join(left)
