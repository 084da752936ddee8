"""Results in nbgrader's gradebook: what nbgrader's users rely on stays, and no old score survives a failure."""

import json
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from deep_learning_cases.errors import FileError, InputError
from grading.commands import feedback
from grading.commands.autograde import autograde
from grading.course_config import COURSE_ID
from tests.grading.classroom import (
    ASSIGNMENT,
    FULL,
    INTERPOLATED,
    FakeBackend,
    automatic,
    grade,
    grades,
    hand_in,
    load_case,
    make_course,
)

BLANK = dict.fromkeys(FULL, 0.0)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return make_course(tmp_path)


def gradebook(course: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID)


def test_right_answers_earn_all_and_a_blank_nothing(course: Path) -> None:
    hand_in(course, "ada")
    hand_in(course, "blank", answer=None, twice=None)
    assert grade(course).graded == 2
    assert automatic(course) == {"ada": {k: float(v) for k, v in FULL.items()}, "blank": BLANK}


def test_every_automatic_cell_holds_one_message_and_one_number(course: Path) -> None:
    hand_in(course, "ada", answer=INTERPOLATED)
    grade(course)
    notebook = json.loads((course / "autograded" / "ada" / ASSIGNMENT / "stats.ipynb").read_text())
    cells = {c["id"]: c for c in notebook["cells"]}
    for name in ("stats_p50", "stats_p95", "stats_pure"):
        kinds = [output["output_type"] for output in cells[name]["outputs"]]
        assert kinds == ["display_data", "execute_result"]
    assert "interpolat" in "".join(cells["stats_p95"]["outputs"][0]["data"]["text/plain"])


def test_a_written_answer_waits_for_a_person_and_a_blank_one_does_not(course: Path) -> None:
    hand_in(course, "ada", scope="Everything inside the timer.")
    hand_in(course, "ben")
    grade(course)
    found = grades(course)
    assert found["ada"]["scope"] == (None, None, True)
    assert found["ben"]["scope"] == (0.0, None, False)


def test_what_is_up_to_date_is_skipped_and_force_grades_again(course: Path) -> None:
    hand_in(course, "ada")
    grade(course)
    backend = FakeBackend()
    assert grade(course, backend).skipped == 1
    assert backend.graded == []
    assert grade(course, backend, force=True).graded == 1
    assert backend.graded == ["ada"]


def test_a_newer_submission_is_graded_again(course: Path) -> None:
    hand_in(course, "ada", answer=None)
    grade(course)
    hand_in(course, "ada", timestamp="2026-01-11 12:00:00 UTC")
    assert grade(course).graded == 1
    assert automatic(course)["ada"]["stats_p50"] == 2.0
    with gradebook(course) as book:
        assert str(book.find_submission(ASSIGNMENT, "ada").timestamp) == "2026-01-11 12:00:00"


def test_manual_scores_comments_and_extra_credit_survive_a_regrade(course: Path) -> None:
    hand_in(course, "ada", answer=None)
    grade(course)
    with gradebook(course) as book:
        mark = book.find_grade("stats_p50", "stats", ASSIGNMENT, "ada")
        mark.manual_score, mark.extra_credit, mark.needs_manual_grade = 1.5, 0.5, False
        book.find_comment("latency_stats", "stats", ASSIGNMENT, "ada").manual_comment = "See me."
        book.db.commit()
    hand_in(course, "ada", timestamp="2026-01-11 12:00:00 UTC")
    grade(course)
    with gradebook(course) as book:
        mark = book.find_grade("stats_p50", "stats", ASSIGNMENT, "ada")
        assert (mark.auto_score, mark.manual_score, mark.score, mark.needs_manual_grade) == (2.0, 1.5, 2.0, True)
        assert book.find_comment("latency_stats", "stats", ASSIGNMENT, "ada").comment == "See me."


def test_an_untouched_solution_is_commented_as_nbgrader_does(course: Path) -> None:
    hand_in(course, "ada", answer=None)
    grade(course)
    with gradebook(course) as book:
        assert book.find_comment("latency_stats", "stats", ASSIGNMENT, "ada").auto_comment == "No response."


def test_late_work_is_penalised_by_the_plugin(course: Path) -> None:
    with (course / "nbgrader_config.py").open("a") as config:
        config.write('c.AssignLatePenalties.plugin_class = "grading.late.TenPercentADay"\n')
    with gradebook(course) as book:
        book.update_or_create_assignment(ASSIGNMENT, duedate="2026-01-09 12:00:00")
    hand_in(course, "ada", timestamp="2026-01-10 13:00:00 UTC")
    grade(course)
    with gradebook(course) as book:
        penalties = {n.name: n.late_submission_penalty for n in book.find_submission(ASSIGNMENT, "ada").notebooks}
    assert penalties == {"stats": 1.8, "double": 0.6}


def test_a_missing_notebook_is_zero_and_its_old_score_is_gone(course: Path) -> None:
    hand_in(course, "ada")
    grade(course)
    folder = hand_in(course, "ada", timestamp="2026-01-11 12:00:00 UTC")
    (folder / "stats.ipynb").unlink()
    grade(course)
    found = automatic(course)["ada"]
    assert found == {**BLANK, "double": 1.0, "double_negative": 2.0}
    assert grades(course)["ada"]["scope"] == (0.0, None, False)
    assert not (course / "autograded" / "ada" / ASSIGNMENT / "stats.ipynb").exists()


def test_a_submission_without_any_notebook_is_zero(course: Path) -> None:
    folder = hand_in(course, "ada")
    for path in folder.glob("*.ipynb"):
        path.unlink()
    assert grade(course).graded == 1
    assert automatic(course)["ada"] == BLANK


def test_what_is_not_a_notebook_is_zero_with_a_reason(course: Path) -> None:
    hand_in(course, "ada")
    grade(course)
    hand_in(course, "ada", plant=load_case("files/not_a_notebook.py").plant, timestamp="2026-01-11 12:00:00 UTC")
    assert grade(course).graded == 1
    assert automatic(course)["ada"] == BLANK
    assert "is not a notebook" in (course / "autograded" / "ada" / ASSIGNMENT / "stats.ipynb").read_text()


def test_a_failed_run_leaves_no_old_score_and_the_class_goes_on(course: Path) -> None:
    for student in ("ada", "ben", "cleo"):
        hand_in(course, student)
    grade(course)
    summary = grade(course, FakeBackend(fail={"ben": RuntimeError("worker died")}), force=True)
    assert list(summary.failed) == ["ben"]
    assert "RuntimeError: worker died" in summary.failed["ben"]
    assert set(automatic(course)["ben"].values()) == {None}
    assert all(waits for _, _, waits in grades(course)["ben"].values())
    assert automatic(course)["cleo"]["stats_p95"] == 3.0
    assert not (course / "autograded" / "ben" / ASSIGNMENT).exists()
    assert grade(course).graded == 1, "the next run tries the failed one again, and only that"
    assert automatic(course)["ben"]["stats_p95"] == 3.0


def test_a_failure_while_recording_leaves_nothing_half(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grading.class_run.record import Recorder

    for student in ("ada", "ben"):
        hand_in(course, student)
    grade(course)
    original = Recorder._record_notebook

    def fail_late(self: Any, student: str, name: str, *rest: Any) -> None:
        original(self, student, name, *rest)
        if student == "ada" and name == "stats":
            raise ValueError("no space for this")

    monkeypatch.setattr(Recorder, "_record_notebook", fail_late)
    summary = grade(course, force=True)
    assert list(summary.failed) == ["ada"]
    assert set(automatic(course)["ada"].values()) == {None}
    assert automatic(course)["ben"]["double"] == 1.0


def test_one_notebook_alone(course: Path) -> None:
    hand_in(course, "ada", answer=None, twice=None)
    grade(course)
    hand_in(course, "ada", timestamp="2026-01-11 12:00:00 UTC")
    grade(course, notebook="double")
    found = automatic(course)["ada"]
    assert found == {**BLANK, "double": 1.0, "double_negative": 2.0}
    record = json.loads((course / "autograded" / "ada" / ASSIGNMENT / ".grading.json").read_text())
    assert set(record["notebooks"]) == {"stats", "double"}


def test_one_student_alone(course: Path) -> None:
    for student in ("ada", "ben"):
        hand_in(course, student)
    assert grade(course, student="ben").graded == 1
    assert set(automatic(course)) == {"ben"}


def test_other_files_are_kept_and_those_a_browser_runs_are_not(course: Path) -> None:
    def plant(folder: Path) -> None:
        (folder / "evidence").mkdir()
        (folder / "evidence" / "benchmark.json").write_text("{}")
        (folder / "evidence" / "report.html").write_text("<script>1</script>")
        (folder / "timestamp.txt").write_text("never\n")

    hand_in(course, "ada", plant=plant)
    grade(course)
    folder = course / "autograded" / "ada" / ASSIGNMENT
    assert (folder / "evidence" / "benchmark.json").exists()
    assert not (folder / "evidence" / "report.html").exists()
    assert not (folder / "timestamp.txt").exists(), "what is no date must not reach formgrader"
    assert json.loads((folder / ".grading.json").read_text())["not_copied"] == ["evidence/report.html"]
    assert (folder / "stats.ipynb").stat().st_mode & 0o777 == 0o444


def test_results_do_not_depend_on_the_order(course: Path, tmp_path: Path) -> None:
    answers = {"ada": None, "ben": INTERPOLATED, "cleo": INTERPOLATED.replace("percentile", "quantile")}
    for student, answer in answers.items():
        hand_in(course, student, answer=answer)
    grade(course)
    other = make_course(tmp_path / "other")
    for student in reversed(answers):
        hand_in(other, student, answer=answers[student])
        grade(other)
    assert grades(course) == grades(other)


# --- bad input: one line, and a way out -----------------------------------------------------------------------------


def test_no_such_assignment(course: Path) -> None:
    with pytest.raises(InputError, match=r"no assignment 'nope'.*expected one of: small"):
        autograde(course, "nope")


def test_no_submission(course: Path) -> None:
    with pytest.raises(InputError, match="no submission of 'small'"):
        grade(course)
    hand_in(course, "ada")
    with pytest.raises(InputError, match="by 'ben'"):
        grade(course, student="ben")


def test_no_course(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no course folder"):
        autograde(tmp_path / "nowhere", ASSIGNMENT)


def test_no_gradebook(course: Path) -> None:
    hand_in(course, "ada")
    (course / "gradebook.db").unlink()
    with pytest.raises(FileError, match="no gradebook"):
        grade(course)
    assert not (course / "gradebook.db").exists()


def test_a_damaged_gradebook(course: Path) -> None:
    hand_in(course, "ada")
    (course / "gradebook.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(FileError, match=r"damaged.*backup") as caught:
        grade(course)
    assert "\n" not in str(caught.value)


def test_a_locked_gradebook(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    import grading.class_run.gradebook

    monkeypatch.setattr(grading.class_run.gradebook, "SECONDS_TO_WAIT", 0.1)
    hand_in(course, "ada")
    holder = sqlite3.connect(course / "gradebook.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(FileError, match=r"locked by another program.*--resume"):
            grade(course)
    finally:
        holder.close()
    assert grade(course, resume=True).graded == 1


def test_two_runs_at_once_are_refused(course: Path) -> None:
    from grading.class_run.spool import Spool

    hand_in(course, "ada")
    with Spool(course, ASSIGNMENT).locked(), pytest.raises(InputError, match="one at a time"):
        grade(course)


def test_a_folder_that_cannot_be_written(course: Path) -> None:
    hand_in(course, "ada")
    (course / ".results").write_text("a file where a folder belongs")
    with pytest.raises(FileError, match="cannot write"):
        grade(course)


def test_preprocessors_that_would_run_code_here_are_refused(course: Path) -> None:
    with (course / "nbgrader_config.py").open("a") as config:
        config.write('c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.Execute"]\n')
    hand_in(course, "ada")
    with pytest.raises(InputError, match="PutExecuted"):
        grade(course)


def test_a_notebook_the_sources_lack(course: Path) -> None:
    hand_in(course, "ada")
    (course / "source" / ASSIGNMENT / "double.ipynb").unlink()
    with pytest.raises(InputError, match="'double'"):
        grade(course)


@pytest.mark.parametrize("kind", ["large", "link"])
def test_a_notebook_that_cannot_be_taken_over_says_why(course: Path, kind: str) -> None:
    def plant(folder: Path) -> None:
        path = folder / "stats.ipynb"
        if kind == "large":
            path.write_bytes(path.read_bytes() + b" " * (25 << 20))
        else:
            path.rename(folder / "other.json")
            path.symlink_to(folder / "other.json")

    hand_in(course, "ada", plant=plant)
    assert grade(course).failed == {}
    assert sum(points or 0 for name, points in automatic(course)["ada"].items() if name.startswith("stats")) == 0
    page = (course / "autograded" / "ada" / ASSIGNMENT / "stats.ipynb").read_text()
    assert {"large": "clear its outputs", "link": "is a link"}[kind] in page


def test_a_byte_order_mark_costs_nothing(course: Path) -> None:
    def plant(folder: Path) -> None:
        path = folder / "stats.ipynb"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    hand_in(course, "ada", plant=plant)
    grade(course)
    assert automatic(course)["ada"] == {k: float(v) for k, v in FULL.items()}


def test_a_name_that_nbgrader_cannot_read_fails_alone(course: Path) -> None:
    """Its feedback would end the feedback of everybody behind it."""
    hand_in(course, "new\nline")
    hand_in(course, "zoe")
    summary = grade(course)
    assert summary.graded == 1
    assert "rename the folder" in summary.failed["new\nline"]
    assert len(feedback.generate(course, ASSIGNMENT)) == 2
