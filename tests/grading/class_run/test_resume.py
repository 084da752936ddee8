"""A run killed outright at any moment continues without a lost, doubled or half grade."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grading.class_run.spool import RECORDED, Spool
from grading.cli import main
from tests.grading.classroom import ASSIGNMENT, INTERPOLATED, FakeBackend, grade, grades, hand_in, make_course

CHECKOUT = Path(__file__).resolve().parents[3]
STUDENTS = ["ada", "ben", "cleo", "dan"]
MOMENTS = [
    ("staged", 1),
    ("staged", 3),
    ("spooled", 1),
    ("spooled", 3),
    ("recording", 1),
    ("recording", 4),
    ("committed", 1),
    ("committed", 3),
    ("recorded", 2),
    ("recorded", 4),
]


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class that has old grades (all blank) and new submissions with other answers."""
    course = make_course(tmp_path_factory.mktemp("resume"))
    for student in STUDENTS:
        hand_in(course, student, answer=None, twice=None)
    grade(course)
    for student in STUDENTS:
        hand_in(course, student, answer=INTERPOLATED if student == "cleo" else None)
    return course


@pytest.fixture(scope="module")
def wanted(graded_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The grades of a run that nobody kills."""
    course = tmp_path_factory.mktemp("whole") / "course"
    shutil.copytree(graded_once, course)
    grade(course, force=True)
    return grades(course)


def killed(course: Path, moment: str, count: int) -> int:
    script = Path(__file__).with_name("killed_run.py")
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-W", "ignore", str(script), str(course), moment, str(count)]
    return subprocess.run(command, env=environment, capture_output=True, timeout=120).returncode


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_a_killed_run_is_continued(
    graded_once: Path, wanted: dict[str, Any], tmp_path: Path, moment: str, count: int
) -> None:
    course = tmp_path / "course"
    shutil.copytree(graded_once, course)
    assert killed(course, moment, count) == -signal.SIGKILL
    done = [s for s in STUDENTS if Spool(course, ASSIGNMENT).state(s) == RECORDED and is_new(course, s)]
    backend = FakeBackend()
    summary = grade(course, backend, resume=True)
    assert not summary.failed
    assert not set(done) & set(backend.graded), "what was recorded is not run again"
    assert grades(course) == wanted
    for student in STUDENTS:
        files = sorted(p.name for p in (course / "autograded" / student / ASSIGNMENT).iterdir())
        assert files == [".grading.json", "double.ipynb", "stats.ipynb", "timestamp.txt"]
    assert not (course / ".results" / ASSIGNMENT / "scratch").exists()
    again = FakeBackend()
    assert grade(course, again, resume=True).graded == 0, "a run that is through has nothing to continue"
    assert again.graded == []


def is_new(course: Path, student: str) -> bool:
    spool = Spool(course, ASSIGNMENT)
    spool.resume()
    return spool.of_this_run(student) is not None


@pytest.mark.slow
def test_a_grade_is_never_half_in_the_gradebook(graded_once: Path, tmp_path: Path) -> None:
    """Killed between the two notebooks of one submission: the gradebook still has the old grades of both."""
    course = tmp_path / "course"
    shutil.copytree(graded_once, course)
    before = grades(course)
    assert killed(course, "recording", 1) == -signal.SIGKILL
    assert grades(course) == before


@pytest.mark.slow
def test_without_resume_an_unfinished_submission_is_graded_anew(graded_once: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(graded_once, course)
    assert killed(course, "committed", 2) == -signal.SIGKILL
    grade(course)
    assert Spool(course, ASSIGNMENT).state("ben") == RECORDED


def test_a_spooled_result_of_other_files_is_not_used(graded_once: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(graded_once, course)
    assert killed(course, "spooled", 1) == -signal.SIGKILL
    hand_in(course, "ada", answer=None, twice=None)
    backend = FakeBackend()
    grade(course, backend, resume=True)
    assert "ada" in backend.graded
    assert grades(course)["ada"]["double"][0] == 0.0


def test_resume_without_a_run_before_is_an_ordinary_run(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    hand_in(course, "ada")
    assert grade(course, resume=True).graded == 1


def test_a_file_cut_short_by_a_full_disk_counts_as_none(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    hand_in(course, "ada")
    grade(course)
    spool = Spool(course, ASSIGNMENT)
    path = spool.folder / "students" / "ada.json"
    path.write_bytes(path.read_bytes()[:100])
    assert spool.get("ada") is None
    assert grade(course, force=True).graded == 1


def new_inputs(course: Path) -> None:
    (course / "fixtures.seed").write_text("another-seed-for-the-tests-of-a-class\n")


@pytest.mark.slow
def test_what_was_graded_with_other_hidden_inputs_is_not_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = make_course(tmp_path)
    for student in ("ada", "ben"):
        hand_in(course, student)
    grade(course)
    assert grade(course).skipped == 2
    seed = (course / "fixtures.seed").read_text().strip()
    records = [path.read_text() for path in course.rglob(".grading.json")]
    assert len({json.loads(record)["inputs"] for record in records}) == 1
    assert not any(seed in record for record in records)
    new_inputs(course)
    partly = grade(course, student="ada", notebook="stats")
    assert (partly.graded, partly.other_inputs) == (1, 1)
    assert grade(course, student="ada").graded == 1, "its other notebook was still of the old inputs"
    summary = grade(course)
    assert (summary.graded, summary.skipped, summary.other_inputs) == (1, 1, 1)
    assert grade(course).skipped == 2
    (course / "fixtures.seed").write_text(seed + "\n")
    assert main(["autograde", ASSIGNMENT, "--course", str(course), "--jobs", "1"]) == 0
    assert "0 up to date; 2 had been graded with other hidden inputs\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_resumed_run_does_not_mix_two_seeds(graded_once: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(graded_once, course)
    assert killed(course, "spooled", 2) == -signal.SIGKILL
    new_inputs(course)
    backend = FakeBackend()
    assert grade(course, backend, resume=True).failed == {}
    assert sorted(backend.graded) == STUDENTS
    assert grade(course).skipped == len(STUDENTS)
