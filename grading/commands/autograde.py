"""``python -m grading autograde ASSIGNMENT``: a whole class, in parallel, behind the wall."""

import argparse
import time
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError, FileError
from deep_learning_cases.ground.command_line import print_json, say
from grading.class_run.chosen_names import students_with
from grading.class_run.quiet import quiet_nbgrader
from grading.course.places import COURSE
from grading.quick_imports import without_collecting

__all__ = ["add_parser", "autograde", "run"]


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("autograde", help="grade the submissions of an assignment")
    parser.add_argument("assignment", help="name of the assignment, for example release")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_jobs, default=0, metavar="N", help="local worker processes (default: the cores)")
    where.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="run on a Dask cluster, for example tcp://host:8786"
    )
    parser.add_argument("--student", default="*", metavar="S", help="only this student, or those a pattern matches")
    parser.add_argument("--notebook", default="*", metavar="N", help="only this notebook")
    parser.add_argument("--resume", action="store_true", help="continue the last run where it was stopped")
    parser.add_argument("--force", action="store_true", help="grade again what is up to date")
    parser.add_argument("--cold", action="store_true", help="a fresh kernel for every notebook (slow, most compatible)")
    parser.add_argument(
        "--isolation", choices=["auto", "bubblewrap", "landlock", "none"], help="the wall to run behind"
    )
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="course folder (default: grading/)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """Grade and print one line for each failure; status 1 if there was one."""
    started = time.monotonic()
    settings = {name: getattr(args, name) for name in ("jobs", "scheduler", "resume", "force")}
    # What nobody asked for is left to the course's own configuration.
    settings |= {name: value for name in ("cold", "isolation") if (value := getattr(args, name))}
    summary = autograde(args.course, args.assignment, student=args.student, notebook=args.notebook, **settings)
    seconds = time.monotonic() - started
    if args.json:
        value = {name: getattr(summary, name) for name in ("graded", "skipped", "failed", "other_inputs")}
        value |= {"seconds": round(seconds, 2), "gradebook": str(args.course / "gradebook.db")}
        print_json(value, indent=None)
    else:
        for student, error in sorted(summary.failed.items()):
            say(f"{student}: not graded: {error}", error=True)
        total = summary.graded + len(summary.failed)
        before = f"; {summary.other_inputs} had been graded with other hidden inputs" if summary.other_inputs else ""
        done = f"{summary.graded} of {total} graded in {seconds:.1f} s, {summary.skipped} up to date"
        say(f"{args.assignment}: {done}{before}")
        if summary.failed:
            say("Those not graded have no automatic score; correct the cause and run the same command again.")
    return 1 if summary.failed else 0


def autograde(course: Path, assignment: str, *, student: str = "*", notebook: str = "*", **settings: Any) -> Any:
    """Grade ``assignment`` of the course at ``course``; returns :class:`grading.class_run.whole_class.Summary`.

    ``settings`` are traits of :class:`grading.hooks.converter.SafeAutograde`: jobs, scheduler, resume, force, cold,
    isolation, limits, fixtures_seed_file.  Raises one-line errors for what concerns the whole class.
    """
    course = Path(course).resolve()
    if not course.is_dir():
        raise FileError(f"no course folder {course}: expected one with source/ and submitted/; check --course")
    early = (
        None if settings.get("backend") or settings.get("scheduler") else _early_backend(course, assignment, settings)
    )
    try:
        return _grade(course, assignment, student, notebook, settings | ({"backend": early} if early else {}))
    finally:
        if early is not None:
            early.close()


def _grade(course: Path, assignment: str, student: str, notebook: str, settings: dict[str, Any]) -> Any:
    with without_collecting():
        quiet_nbgrader()
        from nbgrader.converters.base import NbGraderException

        from grading.class_run.gradebook import one_line
        from grading.course_config import course_directory
        from grading.hooks.converter import SafeAutograde

    coursedir, config = course_directory(course, assignment_id=assignment, student_id=student, notebook_id=notebook)
    converter = SafeAutograde(coursedir=coursedir, config=config, **settings)
    try:
        converter.start()
    except NbGraderException as error:
        if isinstance(error.__cause__, DeepLearningCasesError):
            raise error.__cause__ from None
        if converter.summary is None:
            raise
    except Exception as error:
        if type(error).__module__.startswith("sqlalchemy"):
            raise FileError(one_line(coursedir.db_url, error)) from error
        raise
    return converter.summary


def _early_backend(course: Path, assignment: str, settings: dict[str, Any]) -> Any:
    """Workers that boot while this process imports nbgrader, where there is a class to grade; None for a few.

    They are warmed for the default limits; a course with others has its sandboxes booted again with the first jobs.
    """
    submissions = len(students_with(course / "submitted", (assignment,)))
    again = settings.get("force") or settings.get("resume")
    done = 0 if again else len(students_with(course / "autograded", (assignment,)))
    if submissions - done < 2:
        return None
    from deep_learning_cases.ground.machine import usable_cores
    from grading.class_run.pool import LocalBackend
    from grading.sandbox.limits import Limits

    backend = LocalBackend(max(1, min(settings.get("jobs") or usable_cores(), submissions - done)))
    limits = Limits.from_dict(settings.get("limits") or {}).to_dict()
    backend.warm(
        {"limits": limits, "isolation": settings.get("isolation", "auto"), "cold": settings.get("cold", False)}
    )
    return backend


def _jobs(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of processes from 1 to 1024")
    return number
