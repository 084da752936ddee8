"""A student may be called ``[ab]``: names are names, and a pattern is one only where nobody is called so."""

import csv
import io
import shutil
from pathlib import Path

import pytest

from deep_learning_cases.errors import InputError
from grading.class_run.chosen_names import chosen
from grading.commands import class_report, export, feedback
from grading.course_config import COURSE_ID
from tests.grading.classroom import ASSIGNMENT, FULL, automatic, grade, hand_in, make_course

STUDENTS = ["[ab]", "a", "b", "star*", "starred", "what?"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    course = make_course(tmp_path_factory.mktemp("names"))

    def beside(folder: Path) -> None:
        (folder / "submission_secret.txt").write_text(folder.parent.name)
        (folder / "picture[1]").mkdir()
        (folder / "picture[1]" / "note.txt").write_text("kept")

    for student in STUDENTS:
        hand_in(course, student, plant=beside)
    with (course / "nbgrader_config.py").open("a") as config:
        config.write(f"c.Exchange.root = {str(course / 'exchange')!r}\n")
    (course / "exchange").mkdir(mode=0o777)
    (course / "exchange").chmod(0o777)
    assert grade(course).failed == {}
    return course


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("[ab]", ["[ab]"]),
        ("star*", ["star*"]),
        ("s*", ["star*", "starred"]),
        ("[a]", ["a"]),
        ("*", sorted(STUDENTS)),
        ("nobody", []),
    ],
)
def test_a_name_comes_before_a_pattern(wanted: str, meant: list[str]) -> None:
    assert chosen(wanted, STUDENTS) == meant


def test_a_folder_called_star_does_not_hide_the_others() -> None:
    assert chosen("*", ["*", "a"]) == ["*", "a"]


def test_everybody_is_graded_and_one_alone_is_one(course: Path) -> None:
    assert automatic(course) == {student: {k: float(v) for k, v in FULL.items()} for student in STUDENTS}
    for student in ("[ab]", "star*", "what?"):
        assert grade(course, student=student, force=True).graded == 1


def test_everybody_gets_feedback_and_nothing_that_is_not_theirs(course: Path) -> None:
    assert len(feedback.generate(course, ASSIGNMENT, force=True)) == 2 * len(STUDENTS)
    for student in STUDENTS:
        folder = course / "feedback" / student / ASSIGNMENT
        found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        assert found == ["double.html", "picture[1]/note.txt", "stats.html", "submission_secret.txt", "timestamp.txt"]


@pytest.mark.parametrize("student", ["[ab]", "star*"])
def test_feedback_of_one_alone(course: Path, student: str) -> None:
    pages = feedback.generate(course, ASSIGNMENT, student=student, force=True)
    assert [page.relative_to(course / "feedback").parts[0] for page in pages] == [student, student]


def test_feedback_of_one_notebook_replaces_what_is_there(course: Path) -> None:
    from nbgrader.coursedir import CourseDirectory

    from grading.course_config import course_config
    from grading.hooks.converter import SafeGenerateFeedback

    feedback.generate(course, ASSIGNMENT, student="[ab]", force=True)
    page = course / "feedback" / "[ab]" / ASSIGNMENT / "stats.html"
    page.write_text("old")
    config = course_config(course)
    config.CourseDirectory.update({"assignment_id": ASSIGNMENT, "student_id": "[ab]", "notebook_id": "stats"})
    SafeGenerateFeedback(coursedir=CourseDirectory(config=config), config=config, force=True).start()
    assert "stats_p95" in page.read_text()


def test_feedback_is_handed_out_to_whom_it_is_meant(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    feedback.release(course, ASSIGNMENT, student="[ab]")
    out = course / "exchange" / COURSE_ID / "feedback"
    assert len(list(out.glob("*.html"))) == 2
    feedback.release(course, ASSIGNMENT)
    assert len(list(out.glob("*.html"))) == 2 * len(STUDENTS)


@pytest.mark.filterwarnings("ignore:Passing unrecognized arguments")
def test_formgraders_buttons_mean_the_same(course: Path) -> None:
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    from grading.course_config import course_config

    config = course_config(course)
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    folder, out = course / "feedback" / "[ab]", course / "exchange" / COURSE_ID / "feedback"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    assert api.generate_feedback(ASSIGNMENT, "[ab]")["success"] is True
    assert len(list(folder.rglob("*.html"))) == 2
    assert api.release_feedback(ASSIGNMENT, "[ab]")["success"] is True
    assert len(list(out.glob("*.html"))) == 2


def test_nobody_of_that_name_is_one_line(course: Path) -> None:
    with pytest.raises(InputError, match=r"by '\[cd\]'"):
        feedback.generate(course, ASSIGNMENT, student="[cd]")
    with pytest.raises(InputError, match=r"by '\[cd\]'"):
        grade(course, student="[cd]")


def test_everybody_is_in_the_report_and_in_every_export(course: Path) -> None:
    assert set(class_report.collect(course, ASSIGNMENT).scores) == set(STUDENTS)
    for form, column in {"csv": 3, "canvas": 3, "moodle": 0}.items():
        export.export(course, form, course / f"{form}.csv")
        rows = list(csv.reader(io.StringIO((course / f"{form}.csv").read_text())))
        assert {row[column] for row in rows} >= set(STUDENTS)


def test_an_assignment_is_no_pattern(course: Path) -> None:
    for command in (feedback.generate, class_report.collect):
        with pytest.raises(InputError, match=r"small\*"):
            command(course, "small*")
