"""What every command has in common: a parser that complains in one line, a path, an answer for people or programs."""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from deep_learning_cases.errors import one_line

__all__ = ["Parser", "emit", "path", "print_json", "printable", "say"]


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
        self.exit(2, printable(f"{self.prog}: {one_line(message, 2000)}; see {self.prog} --help") + "\n")


def path(text: str) -> Path:
    """An unset shell variable gives "", and ``Path("")`` is the current folder: hardly what was meant."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: expected a path; write . for the current folder")
    return Path(text)


def printable(text: str) -> str:
    """``text`` as one line for a terminal: what is no character to look at is written as Python writes it.

    A file, a folder or an exception may be named with what moves the cursor, turns the direction or begins a new line.
    """
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    wide = character.isspace() and ord(character) > 0x9F and character not in "\u2028\u2029"
    return " " if wide else ascii(character)[1:-1]


def say(*lines: str, error: bool = False) -> None:
    """Print lines that may repeat what somebody else wrote, on standard output or standard error."""
    for line in lines:
        print(printable(line), file=sys.stderr if error else sys.stdout)


def print_json(value: Any, indent: int | None = 1) -> None:
    """One JSON value on standard output, safe to look at; ValueError for NaN or Infinity."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    print("".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text))


def emit(arguments: argparse.Namespace, value: Any, lines: Iterable[str]) -> int:
    """The answer of a command: one JSON value, or lines for a person.  Returns exit code 0."""
    if arguments.json:
        print_json(value)
    else:
        say(*lines)
    return 0
