"""One sandbox for one command, and its options on the command line."""

import argparse
from typing import TYPE_CHECKING

from deep_learning_cases.errors import DeepLearningCasesError

if TYPE_CHECKING:
    from grading.sandbox.box import Box

__all__ = ["NoWallError", "add_arguments", "open_for"]


class NoWallError(DeepLearningCasesError):
    """No sandbox can be built here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--isolation`` and ``--json``, as the commands that grade a single thing share them."""
    parser.add_argument(
        "--isolation",
        choices=["auto", "bubblewrap", "landlock", "none"],
        default="auto",
        help="the wall to run behind (default: the best one this machine allows; none only if you trust the code)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines for people")


def open_for(args: argparse.Namespace) -> "Box":
    """The box that the options ask for; NoWallError, one line, if there is no such wall."""
    from grading.sandbox.box import open_box
    from grading.sandbox.wall.plan import IsolationUnavailable

    try:
        return open_box(isolation=args.isolation)
    except IsolationUnavailable as error:
        raise NoWallError(str(error)) from error
