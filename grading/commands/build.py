"""``python -m grading build``: the notebooks of the course from their masters; ``--check`` only compares."""

import argparse
from pathlib import Path
from typing import Any

from deep_learning_cases.ground.command_line import say
from grading.course.places import COURSE, LABS

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Add the parser of ``build``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "build", help="masters -> source -> release -> labs, with nbgrader's own generate_assignment"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if labs/ is not what masters give")
    parser.add_argument("--course", type=Path, metavar="DIR", help="the nbgrader course (grading/ of the checkout)")
    parser.add_argument("--labs", type=Path, metavar="DIR", help="the students' notebooks (labs/ of the checkout)")


def run(args: argparse.Namespace) -> int:
    """Build, or compare; one line a notebook on standard output, differences on standard error."""
    # nbgrader takes two seconds to import; --help should not wait for it.
    from grading.course import build

    course, labs = args.course or COURSE, args.labs or LABS
    if args.check:
        lines = build.differences(labs)
        for line in lines:
            say(f"{labs.name}/{line}; run `python -m grading build`", error=True)
        return 1 if lines else 0
    for path in build.build(course.resolve(), labs.resolve()):
        say(str(path))
    return 0
