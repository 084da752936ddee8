"""What the commands that grade a single thing share: their options, their sandbox, and the result on the terminal."""

import argparse
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deep_learning_cases.errors import DeepLearningCasesError
from deep_learning_cases.ground.command_line import printable
from grading.judging.flags import Flag
from grading.judging.items import ItemResult

if TYPE_CHECKING:
    from grading.sandbox.box import Box

__all__ = ["NoWallError", "add_arguments", "open_for", "result_lines"]


class NoWallError(DeepLearningCasesError):
    """No sandbox can be built here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--isolation`` and ``--json``, as these commands have them."""
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


def result_lines(items: Sequence[ItemResult], flags: Sequence[Flag], isolation: str) -> list[str]:
    """One paragraph per item, then the flags, the total and the wall."""
    width = max(len(item.id) for item in items)
    lines = []
    for item in items:
        named = f"[{item.mistake}] " if item.mistake else ""
        head = f"{item.id:<{width}}  {item.points:>3g} of {item.max_points:g}  "
        lines += textwrap.wrap(
            printable(named + item.message), 110, initial_indent=head, subsequent_indent=" " * len(head)
        )
    for flag in flags:
        place = f" ({flag.where})" if flag.where else ""
        lines += textwrap.wrap(printable(f"to look at: {flag.reason}{place}"), 110, subsequent_indent="  ")
    points, most = sum(item.points for item in items), sum(item.max_points for item in items)
    return [*lines, f"{points:g} of {most:g} points; isolation: {isolation}"]
