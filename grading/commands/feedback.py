"""``python -m grading feedback ASSIGNMENT``: nbgrader's own feedback, safe to open, and its release to students."""

import argparse
import sys
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError, FileError, InputError
from grading.class_run.chosen_names import step_folders
from grading.class_run.quiet import quiet_nbgrader
from grading.course.places import COURSE

__all__ = ["add_parser", "generate", "release", "run"]

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


def run(args: argparse.Namespace) -> int:
    """Write, and release if asked to."""
    pages = generate(args.course, args.assignment, student=args.student, force=args.force)
    print(f"{len(pages)} feedback pages in {Path(args.course).resolve() / 'feedback'}")
    if args.release:
        left_out = release(args.course, args.assignment, student=args.student)
        print("released: students find them with nbgrader's fetch_feedback")
        if left_out:
            print(
                f"not released: {_some(left_out)}, whose submissions did not come through nbgrader's exchange "
                f"(no {SECRET}); send those pages another way",
                file=sys.stderr,
            )
    return 0


def generate(course: Path, assignment: str, *, student: str = "*", force: bool = False) -> list[Path]:
    """Write ``feedback/STUDENT/ASSIGNMENT/*.html`` from what is autograded; returns the pages, sorted.

    Raises InputError where nothing is autograded, FileError where something cannot be written.
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
    try:
        with shared(coursedir.db_url):
            SafeGenerateFeedback(coursedir=coursedir, config=config, force=force).start()
    except NbGraderException as error:
        raise _incomplete(coursedir, folders, error) from error
    except Exception as error:
        if type(error).__module__.startswith("sqlalchemy"):
            raise FileError(one_line(coursedir.db_url, error)) from error
        if isinstance(error, OSError) and not isinstance(error, DeepLearningCasesError):
            raise FileError(
                f"cannot write {error.filename} ({error.strerror}): expected a course folder of yours"
            ) from error
        raise
    pages = step_folders(coursedir, coursedir.feedback_directory).values()
    return sorted(page for folder in pages for page in folder.glob("*.html"))


def _incomplete(coursedir: Any, folders: dict[str, Path], error: Exception) -> FileError:
    written = step_folders(coursedir, coursedir.feedback_directory)
    who = _some([name for name, folder in folders.items() if _has_no_page(folder, written.get(name))])
    return FileError(
        f"feedback is not complete ({f'none for {who}' if who else error}): expected a page a notebook; "
        "grade again, then --force"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _has_no_page(autograded: Path, pages: Path | None) -> bool:
    return any(autograded.glob("*.ipynb")) and (pages is None or not any(pages.glob("*.html")))


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
