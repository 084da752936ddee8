"""What every command has in common: a parser that complains in one line, a path, an answer for people or programs."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from deep_learning_cases.errors import one_line
from deep_learning_cases.ground import files

__all__ = ["Parser", "emit", "path", "print_json"]


class Parser(argparse.ArgumentParser):
    """argparse prints the usage before every error; one line and where to find help is enough.

    A command refuses itself what it does not know: left to the parser above it, as argparse does, the answer would
    point to the wrong help.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse's, but what nobody knows ends the program here."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line on standard error."""
        self.exit(2, f"{self.prog}: {one_line(message, 2000)}; see {self.prog} --help\n")


def path(text: str) -> Path:
    """An unset shell variable gives "", and ``Path("")`` is the current folder: hardly what was meant."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: expected a path; write . for the current folder")
    return Path(text)


def print_json(value: Any) -> None:
    """One JSON value on standard output; ValueError for NaN or Infinity."""
    sys.stdout.write(files.json_bytes(value).decode("utf-8"))


def emit(arguments: argparse.Namespace, value: Any, lines: Iterable[str]) -> int:
    """The answer of a command: one JSON value, or lines for a person.  Returns exit code 0."""
    if arguments.json:
        print_json(value)
    else:
        print("\n".join(lines))
    return 0
