"""``python -m grading export``: grades as CSV for a spreadsheet, or as Canvas and Moodle read them.

The three are nbgrader export plugins as well:
``nbgrader export --exporter=grading.commands.export.CanvasExportPlugin``.
"""

import argparse
import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.command_line import say
from deep_learning_cases.ground.files import write_bytes
from grading.class_run.machine_faults import raise_if_of_all, sentence
from grading.class_run.quiet import quiet_nbgrader
from grading.course.places import COURSE

__all__ = ["FORMATS", "add_parser", "export", "run", "scores_of"]


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("export", help="write the grades as CSV, for Canvas or for Moodle")
    parser.add_argument("assignment", nargs="?", help="only this assignment (default: all of the gradebook)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="csv", help="which file (default: csv)")
    parser.add_argument(
        "--to", type=Path, metavar="FILE", help="where (default: grades-FORMAT.csv in the course folder)"
    )
    parser.add_argument("--assignment", dest="named", metavar="A", help="the same, by name")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="course folder (default: grading/)")


def run(args: argparse.Namespace) -> int:
    """Write the file and say where it is."""
    if args.assignment and args.named and args.assignment != args.named:
        raise InputError(
            f"two assignments are named, {args.assignment!r} and {args.named!r}: expected one, or none for all of them"
        )
    if "" in (args.assignment, args.named):
        raise InputError(
            "the assignment's name is empty: expected a name, or no argument for all of them; "
            "is a variable of the shell not set?"
        )
    path = args.to or Path(args.course) / f"grades-{args.format}.csv"
    failed: dict[str, str] = {}
    rows = export(args.course, args.format, path, args.assignment or args.named, failed)
    say(f"{rows} rows in {path}")
    for student, why in sorted(failed.items()):
        say(f"{student}: not exported: {why}", error=True)
    return 1 if failed else 0


def export(
    course: Path, form: str, path: Path, assignment: str | None = None, failed: dict[str, str] | None = None
) -> int:
    """Write the grades of a course to ``path``; returns the number of rows of students.

    ``failed`` takes who is left out because of what only that student's row raises, and why; without it, it is raised.
    Raises InputError for an unknown assignment and FileError for a gradebook or file that cannot be used.
    """
    course = Path(course).resolve()
    quiet_nbgrader()
    from grading.class_run.gradebook import shared
    from grading.course_config import course_directory

    url = course_directory(course)[0].db_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        raise FileError(f"no gradebook {url.removeprefix('sqlite:///')}: expected nbgrader's database; check --course")
    with shared(url) as gradebook:
        table = FORMATS[form](gradebook, _assignments(gradebook, assignment), failed)
    write_bytes(path, _text(table).encode("utf-8"))
    return len(table) - (2 if form == "canvas" else 1)


def _assignments(gradebook: Any, name: str | None) -> list[Any]:
    found = [a for a in gradebook.assignments if name is None or a.name == name]
    if not found:
        known = ", ".join(a.name for a in gradebook.assignments) or "none yet"
        raise InputError(f"no assignment {name!r} in the gradebook: expected one of: {known}")
    return found


def scores_of(gradebook: Any, assignment: Any) -> dict[str, dict[str, Any]]:
    """One query for a class of any size: {student id: nbgrader's summary of the submission}."""
    found = {row["student"]: row for row in gradebook.submission_dicts(assignment.name)}
    penalties: dict[str, float] = {}
    for submission in assignment.submissions:
        penalties[submission.student_id] = sum(n.late_submission_penalty or 0.0 for n in submission.notebooks)
    for student, row in found.items():
        row["penalty"] = penalties.get(student, 0.0)
        row["final"] = max(0.0, row["score"] - row["penalty"])
    return found


Failed = dict[str, str] | None


def _rows(gradebook: Any, row: Callable[[Any], list[Any]], failed: Failed) -> list[list[Any]]:
    """A row a student."""
    rows = []
    for student in gradebook.students:
        name = str(student.id)
        try:
            rows.append(row(student))
        except Exception as error:
            raise_if_of_all(error)
            if failed is None:
                raise
            failed[name] = sentence(error, "exported")
    return rows


def _csv(gradebook: Any, assignments: list[Any], failed: Failed = None) -> list[list[Any]]:
    """nbgrader's own columns, properly quoted, and whether a person still has to look."""
    header = ["assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"]
    table: list[list[Any]] = [
        [*header, "raw_score", "late_submission_penalty", "score", "max_score", "needs_manual_grade"]
    ]
    for assignment in assignments:
        scores = scores_of(gradebook, assignment)
        table += _rows(gradebook, partial(_csv_row, assignment, scores), failed)
    return table


def _csv_row(assignment: Any, scores: dict[str, dict[str, Any]], student: Any) -> list[Any]:
    row = scores.get(student.id)
    person = [student.id, student.last_name, student.first_name, student.email]
    marks = [row["score"], row["penalty"], row["final"]] if row else [0.0, 0.0, 0.0]
    when = row["timestamp"] if row else ""
    waits = bool(row and row["needs_manual_grade"])
    return [assignment.name, assignment.duedate, when, *person, *marks, assignment.max_score, waits]


def _canvas(gradebook: Any, assignments: list[Any], failed: Failed = None) -> list[list[Any]]:
    """Canvas's gradebook import: a row of points possible, students found by their SIS login. No submission: empty."""
    names = [assignment.name for assignment in assignments]
    table: list[list[Any]] = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *names]]
    table.append(["Points Possible", "", "", "", "", *(assignment.max_score for assignment in assignments)])
    scores = [scores_of(gradebook, assignment) for assignment in assignments]

    def row(student: Any) -> list[Any]:
        return [_name(student), "", student.id, student.id, "", *_marks(student, scores)]

    return table + _rows(gradebook, row, failed)


def _moodle(gradebook: Any, assignments: list[Any], failed: Failed = None) -> list[list[Any]]:
    """Moodle's grade import: students by user name, one column an assignment. No submission: empty."""
    header = ["username", "email", "firstname", "lastname"]
    table: list[list[Any]] = [[*header, *(f"{a.name} (max {a.max_score:g})" for a in assignments)]]
    scores = [scores_of(gradebook, assignment) for assignment in assignments]

    def row(student: Any) -> list[Any]:
        return [student.id, student.email, student.first_name, student.last_name, *_marks(student, scores)]

    return table + _rows(gradebook, row, failed)


def _marks(student: Any, scores: list[dict[str, dict[str, Any]]]) -> list[Any]:
    return [found[student.id]["final"] if student.id in found else "" for found in scores]


FORMATS = {"csv": _csv, "canvas": _canvas, "moodle": _moodle}


def _name(student: Any) -> str:
    parts = [part for part in (student.last_name, student.first_name) if part]
    return ", ".join(parts) or str(student.id)


def _text(table: list[list[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([[_cell(value) for value in row] for row in table])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    """A name that starts like a formula would be run by a spreadsheet."""
    if value is None:
        return ""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def __getattr__(name: str) -> Any:
    """nbgrader's plugin classes, made on demand: the command line must not wait for nbgrader to be imported."""
    forms = {"CanvasExportPlugin": "canvas", "MoodleExportPlugin": "moodle", "TableExportPlugin": "csv"}
    if name not in forms:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nbgrader.plugins import ExportPlugin

    def write(self: Any, gradebook: Any) -> None:
        chosen = [a for a in gradebook.assignments if not self.assignment or a.name in map(str, self.assignment)]
        write_bytes(self.to or f"grades-{forms[name]}.csv", _text(FORMATS[forms[name]](gradebook, chosen)).encode())

    return type(
        name, (ExportPlugin,), {"export": write, "__doc__": f"Grades for {forms[name]}.", "__module__": __name__}
    )
