"""Whatever goes wrong with one submission of five, at whichever step: the other four are as alone, and it is named."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep_learning_cases.errors import EvidenceError
from grading.class_run import beside, record, spool, whole_class
from grading.class_run.whole_class import _Run
from grading.cli import main
from tests.grading.classroom import ASSIGNMENT, INTERPOLATED, FakeBackend, grade, grades, hand_in, make_course

pytestmark = pytest.mark.slow

STUDENTS = ["ada", "ben", "cleo", "dan", "eve"]
VICTIM = "cleo"
OTHERS = [name for name in STUDENTS if name != VICTIM]
FAILURES = [EvidenceError("of our own"), KeyError("foreign"), MemoryError(), RecursionError("too deep")]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A class with old grades that handed in again, and what it gets when nothing goes wrong."""
    course = make_course(tmp_path_factory.mktemp("five"))
    for student in STUDENTS:
        hand_in(course, student, answer=None, twice=None)
    grade(course)
    for student in STUDENTS:
        hand_in(course, student, answer=INTERPOLATED, timestamp="2026-01-11 12:00:00 UTC")
    whole = tmp_path_factory.mktemp("whole") / "course"
    shutil.copytree(course, whole)
    grade(whole)
    return course, grades(whole)


@pytest.fixture
def course(template: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    shutil.copytree(template[0], tmp_path / "course")
    return tmp_path / "course"


@pytest.fixture
def wanted(template: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return template[1]


def failing(original: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """As ``original``, but for the one student, whose name stands in the arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(VICTIM in str(one) for one in (*args, *kwargs.values())):
            raise error
        return original(*args, **kwargs)

    return call


STEPS: dict[str, tuple[Any, str]] = {
    "stage": (whole_class, "stage"),
    "beside": (_Run, "_put_beside"),
    "files beside": (whole_class, "files_beside"),
    "keep others": (_Run, "_keep_others"),
    "spool": (spool.Spool, "put"),
    "record": (record.Recorder, "record"),
    "register": (record.Recorder, "_register"),
    "notebook": (record.Recorder, "_record_notebook"),
    "files": (record.Recorder, "_copy_files"),
    "spool at the end": (spool.Spool, "recorded"),
}


EVERY = [(step, FAILURES[number % len(FAILURES)]) for number, step in enumerate(STEPS)]


@pytest.mark.parametrize(("step", "error"), [*EVERY, *(("record", error) for error in FAILURES)])
def test_a_step_of_grading(
    course: Path, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    owner, name = STEPS[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(getattr(owner, name), error))
        summary = grade(course)
    assert list(summary.failed) == [VICTIM]
    said = summary.failed[VICTIM]
    assert "\n" not in said
    assert said == "of our own" or (type(error).__name__ in said and "the grader did not expect this" in said)
    assert summary.graded == 4
    found = grades(course)
    assert {name: found[name] for name in OTHERS} == {name: wanted[name] for name in OTHERS}
    assert all(auto is None for auto, _, _ in found[VICTIM].values()), "no score of before may stand"
    again = grade(course, resume=True)
    assert (again.graded, again.failed) == (1, {})
    assert grades(course) == wanted


@pytest.mark.parametrize(
    ("question", "error"),
    list(zip(["_needs_grading", "has_other_inputs", "_unfinished"], FAILURES[1:], strict=True)),
)
def test_the_plan_asks_each_for_itself(
    course: Path, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, question: str, error: Exception
) -> None:
    monkeypatch.setattr(_Run, question, failing(getattr(_Run, question), error))
    summary = grade(course)
    assert summary.graded + len(summary.failed) == 5
    found = grades(course)
    assert {name: found[name] for name in OTHERS} == {name: wanted[name] for name in OTHERS}


@pytest.mark.parametrize("error", FAILURES[1:3])
def test_a_worker(course: Path, wanted: dict[str, Any], error: Exception) -> None:
    summary = grade(course, FakeBackend(fail={VICTIM: error}))
    assert list(summary.failed) == [VICTIM]
    assert grade(course, resume=True).graded == 1
    assert grades(course) == wanted


def test_an_earlier_score_that_cannot_be_taken_back(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record.Recorder, "record", failing(record.Recorder.record, KeyError("x")))
    monkeypatch.setattr(record.Recorder, "void", failing(record.Recorder.void, KeyError("y")))
    summary = grade(course)
    assert summary.graded == 4
    assert "earlier score could not be taken back" in summary.failed[VICTIM]


def _out(*words: str) -> int:
    return main([*words])


@pytest.mark.parametrize("error", FAILURES[1:3])
def test_pages_report_and_export(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    from grading.commands import class_report, export
    from grading.hooks.converter import SafeGenerateFeedback

    grade(course)
    capsys.readouterr()
    where = ["--course", str(course)]
    steps = [
        (SafeGenerateFeedback, "convert_single_notebook", "feedback", ["feedback", ASSIGNMENT, *where]),
        (class_report, "_add_entry", "report", ["report", ASSIGNMENT, *where]),
        (export, "_csv_row", "exported", ["export", ASSIGNMENT, *where]),
    ]
    for owner, name, word, command in steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, failing(getattr(owner, name), error))
            assert _out(*command) == 1
        said = capsys.readouterr().err.splitlines()
        assert [line for line in said if line.startswith(f"{VICTIM}: ") and word in line], said
        assert _out(*command) == 0
        capsys.readouterr()
    assert len(list(course.glob("feedback/*/*/*.html"))) == 10


def test_pages_of_the_others_while_one_fails(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grading.commands import class_report, export, feedback
    from grading.hooks.converter import SafeGenerateFeedback

    grade(course)
    make = SafeGenerateFeedback.convert_single_notebook
    monkeypatch.setattr(SafeGenerateFeedback, "convert_single_notebook", failing(make, KeyError("x")))
    monkeypatch.setattr(class_report, "_add_entry", failing(class_report._add_entry, KeyError("x")))
    with pytest.raises(feedback.IncompleteFeedback, match="none for cleo") as caught:
        feedback.generate(course, ASSIGNMENT)
    assert len(caught.value.pages) == 8
    assert not (course / "feedback" / VICTIM / ASSIGNMENT).exists(), "no half of it"
    facts = class_report.collect(course, ASSIGNMENT)
    assert list(facts.failed) == [VICTIM]
    assert len(facts.items["stats_p50"]) == 4
    monkeypatch.setattr(export, "_csv_row", failing(lambda *_: [1], KeyError("x")))
    failed: dict[str, str] = {}
    assert export.export(course, "csv", course / "x.csv", ASSIGNMENT, failed) in (0, 4)


@pytest.mark.parametrize("name", ["data", "info.csv", "stats.ipynb", "timestamp.txt", ".grading.json"])
def test_a_file_or_folder_with_a_name_of_the_course(course: Path, name: str) -> None:
    """What the instructor hands out stays in its place, and the student is graded like everybody."""
    source = course / "source" / ASSIGNMENT
    (source / "data").mkdir()
    (source / "data" / "info.csv").write_text("of the course")
    (source / "info.csv").write_text("of the course")
    theirs = course / "submitted" / VICTIM / ASSIGNMENT / name
    theirs.unlink(missing_ok=True)
    if name == "data":
        theirs.write_text("mine")
    else:
        (theirs / "inside").mkdir(parents=True)
        (theirs / "inside" / "x.txt").write_text("mine")
    summary = grade(course, force=True)
    assert summary.failed == {}, summary.failed
    autograded = course / "autograded" / VICTIM / ASSIGNMENT
    assert (autograded / "data" / "info.csv").read_text() == "of the course"
    assert (autograded / "info.csv").read_text() == "of the course"
    kept = json.loads((autograded / ".grading.json").read_bytes())
    named = [one["name"] for one in kept["left_out"]]
    assert named == {"data": ["data"], "info.csv": ["info.csv/inside/x.txt"], "stats.ipynb": [name]}.get(name, [])
    if name == "stats.ipynb":
        message = kept["notebooks"]["stats"]["message"]
        assert "is a folder where a notebook is expected" in message
        assert all(auto == 0 for item, (auto, _, _) in grades(course)[VICTIM].items() if item.startswith("stats_"))
    from grading.commands import feedback

    assert feedback.generate(course, ASSIGNMENT, student=VICTIM)


def test_names_of_folders_that_are_no_text(course: Path, wanted: dict[str, Any]) -> None:
    for name in (b"\xff\xfe", b"new\nline", b"\x1b[2J", "\u202egnp".encode()):
        shutil.copytree(course / "submitted" / "ada", course / "submitted" / os.fsdecode(name))
    for resume in (False, True):
        summary = grade(course, resume=resume)
        assert len(summary.failed) == 4
        assert all("has characters that nbgrader cannot read back" in why for why in summary.failed.values())
    assert grades(course) == wanted


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    source, staged = tmp_path / "source", tmp_path / "staged"
    for name in ("a/b/c.csv", "d", "notes.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("ours")
    for name in ("a/b", "d/e/f", "notes.txt", "mine"):
        (staged / name).parent.mkdir(parents=True, exist_ok=True)
        (staged / name).write_text("theirs")
    found = beside.files_beside(staged, source, [])
    assert {name: path.is_relative_to(source) for name, path in found.items()} == {
        "a/b/c.csv": True,
        "d": True,
        "notes.txt": True,
        "mine": False,
    }
    assert {one["name"] for one in beside.in_the_way(staged, source, [])} == {"a/b", "d/e/f"}
    kept = beside.files_beside(staged, source, ["notes.txt", "d", "a/b/c.csv"])
    assert not any(path.is_relative_to(source) for path in kept.values())
