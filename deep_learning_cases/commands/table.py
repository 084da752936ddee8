"""What ``dlcases`` understands: every command, its arguments, and the module that carries it out."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deep_learning_cases import __version__
from deep_learning_cases.commands import release
from deep_learning_cases.ground import command_line

__all__ = ["OTHER_COMMANDS", "run"]

OTHER_COMMANDS = {
    "latency": "time one network: batch sizes, boundaries, cold starts, memory",
    "batching": "simulate a queue in front of a server, and choose a batching policy",
    "quantize": "make int8 versions in PyTorch and compare size, speed, memory and predictions",
    "serve": "answer images over HTTP, with dynamic batching",
    "load": "send requests at a declared rate, timed from their intended start",
}
"""Command -> help.  Its module beside this one has ``add_arguments`` and ``command``; only one that is asked for is
imported."""


def run(words: Sequence[str]) -> int:
    """Carry out one command; returns its exit code and raises whatever it raises.  SystemExit for a wrong call."""
    arguments = _parser(words).parse_args(words)
    code: int = arguments.command(arguments)
    return code


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = command_line.Parser(prog="dlcases", description="Measure neural networks honestly.")
    parser.add_argument("--version", action="version", version=f"dlcases {__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=command_line.Parser)

    def add(
        name: str, command: release.Command, text: str, folder: str | None = "evidence folder"
    ) -> argparse.ArgumentParser:
        sub = parsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if folder:
            sub.add_argument("folder", metavar="DIR", type=command_line.path, help=folder)
        sub.add_argument("--json", action="store_true", help="one JSON value on standard output")
        sub.set_defaults(command=command)
        return sub

    release.add_commands(add)
    doctor = add("doctor", _doctor, "what would spoil a measurement on this machine", folder=None)
    doctor.add_argument(
        "folder", metavar="DIR", type=command_line.path, nargs="?", help="evidence folder, for an A/A reading"
    )
    for name, text in OTHER_COMMANDS.items():
        sub = add(name, _from(name), text, folder=None)
        if name in words:
            _module(name).add_arguments(sub)
    lab = add("lab", _lab, "put the notebooks into a work folder and start JupyterLab", folder=None)
    lab.add_argument(
        "folder", metavar="DIR", type=command_line.path, nargs="?", default=Path("work/labs"), help="(work/labs)"
    )
    lab.add_argument("--no-start", action="store_true", help="only copy the notebooks")
    return parser


def _from(name: str) -> Callable[[argparse.Namespace], int]:
    """A command that lives in a module of its own, imported when it runs."""

    def command(arguments: argparse.Namespace) -> int:
        code: int = _module(name).command(arguments)
        return code

    return command


def _module(name: str) -> Any:
    return importlib.import_module(f"{__package__}.{name}")


def _doctor(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import doctor

    result = doctor.examine(release.existing(arguments.folder) if arguments.folder else None)
    return command_line.emit(arguments, result, doctor.lines(result))


def _lab(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.commands import lab

    copied = lab.prepare(arguments.folder)
    command_line.emit(arguments, copied, lab.lines(copied))
    return 0 if arguments.no_start else lab.start(arguments.folder)
