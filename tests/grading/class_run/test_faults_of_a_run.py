"""What may happen to a run: a locked gradebook, a full disk, kill -9.  One line, and no grade is lost."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grading.class_run.gradebook
from deep_learning_cases.errors import FileError
from grading.class_run.worker import work
from tests.grading.class_run.full_disk import PLACES
from tests.grading.classroom import (
    ASSIGNMENT,
    INTERPOLATED,
    FakeBackend,
    automatic,
    grade,
    grades,
    hand_in,
    make_course,
)

CHECKOUT = Path(__file__).resolve().parents[3]
STUDENTS = ["ada", "ben", "cleo"]
HOLD = """import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN " + sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class with old grades, all zero, and new submissions that are not graded yet."""
    course = make_course(tmp_path_factory.mktemp("faults"))
    for student in STUDENTS:
        hand_in(course, student, answer=None, twice=None)
    grade(course)
    for student in STUDENTS:
        hand_in(course, student, answer=INTERPOLATED)
    return course


@pytest.fixture(scope="module")
def wanted(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The grades of a run that nothing happens to."""
    course = tmp_path_factory.mktemp("whole") / "course"
    shutil.copytree(template, course)
    grade(course, force=True)
    return grades(course)


@pytest.fixture
def course(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "course")
    return tmp_path / "course"


@contextlib.contextmanager
def held(gradebook: Path, lock: str = "EXCLUSIVE") -> Iterator[None]:
    """Another process has sqlite's lock; an ``IMMEDIATE`` one lets others read."""
    command = [sys.executable, "-c", HOLD, str(gradebook), lock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


class LockedAt(FakeBackend):
    """Another process takes the lock when the result of the second student is there."""

    slots = 1

    def __init__(self, gradebook: Path, stack: contextlib.ExitStack) -> None:
        super().__init__()
        self.gradebook, self.stack = gradebook, stack

    def submit(self, job: dict[str, Any]) -> Any:
        if job["student"] == "cleo":
            self.stack.enter_context(held(self.gradebook))
        return super().submit(job)


def test_a_gradebook_locked_in_mid_run(course: Path, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading.class_run.gradebook, "SECONDS_TO_WAIT", 0.2)
    before = grades(course)
    with contextlib.ExitStack() as stack:
        backend = LockedAt(course / "gradebook.db", stack)
        with pytest.raises(FileError, match=r"locked by another program.*--resume") as caught:
            grade(course, backend, force=True)
    assert "\n" not in str(caught.value)
    then = grades(course)
    assert all(then[student] in (before[student], wanted[student]) for student in STUDENTS)
    assert wanted["ada"] in then.values(), "what was recorded before stays"
    again = FakeBackend()
    assert grade(course, again, resume=True).failed == {}
    assert grades(course) == wanted
    assert len(again.graded) < len(STUDENTS), "results that had come back are not made again"


def test_a_gradebook_that_can_only_be_read(
    course: Path,
    wanted: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """nbgrader turns what the database says into an error of the entry, whose submission would be voided."""
    monkeypatch.setattr(grading.class_run.gradebook, "SECONDS_TO_WAIT", 0.2)
    hand_in(course, "ada", answer=INTERPOLATED, timestamp="2026-01-11 12:00:00 UTC")
    hand_in(course, "zoe", answer=INTERPOLATED)
    before = grades(course)
    with held(course / "gradebook.db", "IMMEDIATE"):
        with pytest.raises(FileError, match=r"locked by another program.*--resume") as caught:
            grade(course)
        with pytest.raises(FileError, match="locked"):
            grade(course, student="zoe")
    assert "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err + caplog.text
    assert "Rolling back" not in caplog.text
    assert grades(course) == before
    assert grade(course, resume=True).failed == {}
    assert grade(course).failed == {}
    assert grades(course) == before | {"ada": wanted["ada"], "zoe": wanted["ada"]}


def test_a_lock_that_is_let_go_in_time_is_only_waited_for(course: Path, wanted: dict[str, Any]) -> None:
    """sqlite itself would give up after five seconds."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(held(course / "gradebook.db"))
        let_go = threading.Timer(6.5, stack.pop_all().close)
        let_go.start()
        assert grade(course, force=True).failed == {}
    let_go.join()
    assert grades(course) == wanted


def _small_file_system(folder: Path) -> None:
    script = f"mount -t tmpfs tmpfs {folder}"
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this machine does not let a test mount a small file system")


@pytest.mark.parametrize("moment", PLACES)
def test_a_disk_that_becomes_full(template: Path, wanted: dict[str, Any], tmp_path: Path, moment: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    _small_file_system(disk)
    script = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("full_disk.py"))]
    command = ["unshare", "--map-root-user", "--mount", *script, str(template), str(disk), moment]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert "--resume" in found["message"], found["message"]
    assert "full" in found["message"] or "No space left" in found["message"]
    assert "\n" not in found["message"]
    plain = json.loads(json.dumps(wanted))
    for student in STUDENTS:
        assert found["then"][student] in (found["before"][student], plain[student]), "an old or a new grade, never none"
    assert found["failed"] == {}
    assert found["after"] == plain


def test_a_worker_without_room_stops_the_class_and_voids_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import grading.sandbox.box

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device", "/tmp/grading-sandbox-x")

    monkeypatch.setattr(grading.sandbox.box, "open_box", full)
    settings = {"limits": {}, "isolation": "landlock", "cold": False}
    answer = work({"settings": settings})
    assert "No space left" in answer["fatal"]
    assert "--resume" in answer["fatal"]

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(grading.sandbox.box, "open_box", broken)
    with pytest.raises(OSError, match="No such file"):
        work({"settings": settings})


def test_a_whole_run_killed_outright_and_continued(course: Path, wanted: dict[str, Any]) -> None:
    """The real command with its workers and walls: nothing of it lives on, and no grade is lost or given twice."""
    command = [sys.executable, "-m", "grading", "autograde", ASSIGNMENT, "--course", str(course)]
    before = automatic(course)
    run = subprocess.Popen([*command, "--force", "--jobs", "1"], cwd=CHECKOUT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while automatic(course) == before:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    family = _descendants(run.pid)
    assert len(family) > 2, "a worker, and a server behind its wall"
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while any(map(_lives, family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in family if _lives(pid)]
    done = subprocess.run(
        [*command, "--resume"], cwd=CHECKOUT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert grades(course) == wanted
    assert run.returncode == -signal.SIGKILL


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _descendants(pid: int) -> list[int]:
    found, level = [], [pid]
    while level:
        try:
            children = Path(f"/proc/{(parent := level.pop())}/task/{parent}/children").read_text().split()
        except OSError:
            continue
        found += map(int, children)
        level += map(int, children)
    return found
