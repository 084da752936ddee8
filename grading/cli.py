"""The dispatcher behind ``python -m grading COMMAND``.

A command is a module with ``add_parser(subparsers)``, which adds one parser named as the command, and
``run(args) -> int``, which returns the exit status.  Only the module of the command asked for is imported, so that
``try`` does not wait for nbgrader; heavy imports of a module still belong inside its functions.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from deep_learning_cases.errors import DeepLearningCasesError
from deep_learning_cases.ground.command_line import Parser, say

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "build": "grading.commands.build",
    "autograde": "grading.commands.autograde",
    "feedback": "grading.commands.feedback",
    "report": "grading.commands.class_report",
    "export": "grading.commands.export",
    "sample": "grading.commands.sample",
    "try": "grading.commands.try_answer",
    "check-evidence": "grading.commands.check_evidence",
    "fixtures": "grading.commands.fixtures",
    "student-tree": "grading.commands.student_tree",
}
"""Command -> module, in the order the help shows them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; bad input ends in one line on standard error and a non-zero status, never in a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    asked = arguments[:1] if arguments and arguments[0] in COMMANDS else list(COMMANDS)
    parser = Parser(prog="python -m grading", description="Build, grade and report the course.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {name: importlib.import_module(COMMANDS[name]) for name in asked}
    for module in modules.values():
        module.add_parser(subparsers)
    args = parser.parse_args(arguments)
    try:
        status: int = modules[args.command].run(args)
        sys.stdout.flush()
    except DeepLearningCasesError as error:
        say(f"python -m grading {args.command}: {_one_line(str(error))}", error=True)
        return error.exit_code
    except KeyboardInterrupt:
        say(f"python -m grading {args.command}: stopped", error=True)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is left to say, and the interpreter must not complain at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _one_line(text: str) -> str:
    return " ".join(text.split())
