"""``python -m grading feedback ASSIGNMENT``: nbgrader's own feedback, safe to open, and its release to students."""

import argparse
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError, FileError, InputError
from deep_learning_cases.ground.command_line import say
from grading.class_run.chosen_names import step_folders
from grading.class_run.quiet import quiet_nbgrader
from grading.course.places import COURSE

__all__ = ["IncompleteFeedback", "add_parser", "generate", "release", "run"]

SECRET = "submission_secret.txt"
NEEDED = (SECRET, "timestamp.txt")
"""What nbgrader's exchange reads beside the pages of each submission."""


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("feedback", help="write the feedback pages of an assignment")
    parser.add_argument("assignment", help="name of the assignment, for example release")
    parser.add_argument("--student", default="*", metavar="S", help="only this student, or those a pattern matches")
    parser.add_argument("--force", action="store_true", help="write again what is up to date")
    parser.add_argument("--release", action="store_true", help="hand the pages out through nbgrader's exchange as well")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="course folder (default: grading/)")


class IncompleteFeedback(FileError):
    """``pages`` are there; ``failed`` says of whom there are none, and why."""

    def __init__(self, pages: list[Path], failed: dict[str, str]) -> None:
        self.pages, self.failed = pages, failed
        super().__init__(
            f"feedback is not complete (none for {_some(sorted(failed))}): expected a page a notebook; "
            "grade again, then --force"
        )


def run(args: argparse.Namespace) -> int:
    """Write, and release if asked to; status 1 if there is no page of somebody."""
    failed: dict[str, str] = {}
    try:
        pages = generate(args.course, args.assignment, student=args.student, force=args.force)
    except IncompleteFeedback as error:
        pages, failed = error.pages, error.failed
    for student, why in sorted(failed.items()):
        say(f"{student}: no feedback: {why}", error=True)
    say(f"{len(pages)} feedback pages in {Path(args.course).resolve() / 'feedback'}")
    if args.release:
        left_out = release(args.course, args.assignment, student=args.student)
        say("released: students find them with nbgrader's fetch_feedback")
        if left_out:
            say(
                f"not released: {_some(left_out)}, whose submissions did not come through nbgrader's exchange "
                f"(no {SECRET}); send those pages another way",
                error=True,
            )
    return 1 if failed else 0


def generate(course: Path, assignment: str, *, student: str = "*", force: bool = False) -> list[Path]:
    """Write ``feedback/STUDENT/ASSIGNMENT/*.html`` from what is autograded; returns the pages, sorted.

    Raises InputError where nothing is autograded, FileError where something cannot be written, and IncompleteFeedback
    once all others are there where some submission's pages cannot be made.
    """
    course = Path(course).resolve()
    quiet_nbgrader()
    from nbgrader.converters.base import NbGraderException

    from grading.class_run.gradebook import one_line, shared
    from grading.hooks.converter import SafeGenerateFeedback

    coursedir, config = _course(course, assignment, student)
    folders = step_folders(coursedir, coursedir.autograded_directory)
    if not folders:
        raise InputError(
            f"nothing autograded of {assignment!r} by {student!r} in {course}: expected it; "
            f"run `python -m grading autograde {assignment}` first"
        )
    converter = SafeGenerateFeedback(coursedir=coursedir, config=config, force=force)
    try:
        with shared(coursedir.db_url):
            converter.start()
    except NbGraderException as error:
        if not converter.failed:
            raise FileError(
                f"feedback is not complete ({error}): expected a page a notebook; grade again, then --force"
            ) from error
        raise IncompleteFeedback(_pages(coursedir), converter.failed) from error
    except Exception as error:
        if type(error).__module__.startswith("sqlalchemy"):
            raise FileError(one_line(coursedir.db_url, error)) from error
        if isinstance(error, OSError) and not isinstance(error, DeepLearningCasesError):
            raise FileError(
                f"cannot write {error.filename} ({error.strerror}): expected a course folder of yours"
            ) from error
        raise
    return _pages(coursedir)


def _pages(coursedir: Any) -> list[Path]:
    folders = step_folders(coursedir, coursedir.feedback_directory).values()
    return sorted(page for folder in folders for page in folder.glob("*.html"))


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def release(course: Path, assignment: str, *, student: str = "*") -> list[str]:
    """Hand the pages out with nbgrader's ``release_feedback``; InputError with its reason where it refuses.

    Returns whose pages are left out: nbgrader's own exchange names a page after a secret that came with the submission,
    and one that was put into the folder by hand has none.
    """
    course = Path(course).resolve()
    quiet_nbgrader()
    from nbgrader.exchange import ExchangeFactory
    from nbgrader.exchange.default import ExchangeReleaseFeedback

    coursedir, config = _course(course, assignment, student)
    sender = ExchangeFactory(config=config).ReleaseFeedback(coursedir=coursedir, config=config)
    left_out = []
    if isinstance(sender, ExchangeReleaseFeedback):
        folders = step_folders(coursedir, coursedir.feedback_directory)
        left_out = [n for n, folder in folders.items() if not all((folder / name).is_file() for name in NEEDED)]
        if len(left_out) == len(folders):
            raise InputError(
                f"nbgrader did not release the feedback: expected submissions that came through its exchange, with "
                f"{SECRET}; none did; send the pages another way"
            )
        coursedir.student_id_exclude = ",".join([coursedir.student_id_exclude, *left_out])
    try:
        sender.start()
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"nbgrader did not release the feedback ({reason}): expected a writable exchange and submissions that came "
            "through it; check Exchange.root in nbgrader_config.py, or send the pages another way"
        ) from error
    return left_out


def _course(course: Path, assignment: str, student: str) -> tuple[Any, Any]:
    from grading.course_config import course_directory

    if not course.is_dir():
        raise FileError(f"no course folder {course}: expected one with autograded/; check --course")
    return course_directory(course, assignment_id=assignment, student_id=student)
