"""What ``dlcases`` understands: every command, its arguments, and the module that carries it out."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from deep_learning_cases import __version__, release_cli
from deep_learning_cases.ground import command_line as commands

__all__ = ["OTHER_LABS", "run"]

OTHER_LABS = {
    "latency": ("latency_cli", "time one network: batch sizes, boundaries, cold starts, memory"),
    "batching": ("batching_cli", "simulate a queue in front of a server, and choose a batching policy"),
    "quantize": ("quantize_cli", "make int8 versions in PyTorch and compare size, speed, memory and predictions"),
    "serve": ("service_cli", "answer images over HTTP, with dynamic batching"),
    "load": ("load_cli", "send requests at a declared rate, timed from their intended start"),
}
"""Command -> module with ``add_arguments`` and ``command``, and help.  Only the one that was asked for is imported."""


def run(words: Sequence[str]) -> int:
    """Carry out one command; returns its exit code and raises whatever it raises.  SystemExit for a wrong call."""
    arguments = _parser(words).parse_args(words)
    code: int = arguments.command(arguments)
    return code


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = commands.Parser(prog="dlcases", description="Measure neural networks honestly.")
    parser.add_argument("--version", action="version", version=f"dlcases {__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=commands.Parser)

    def add(
        name: str, command: release_cli.Command, text: str, folder: str | None = "evidence folder"
    ) -> argparse.ArgumentParser:
        sub = parsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if folder:
            sub.add_argument("folder", metavar="DIR", type=commands.path, help=folder)
        sub.add_argument("--json", action="store_true", help="one JSON value on standard output")
        sub.set_defaults(command=command)
        return sub

    release_cli.add_commands(add)
    doctor = add("doctor", _doctor, "what would spoil a measurement on this machine", folder=None)
    doctor.add_argument(
        "folder", metavar="DIR", type=commands.path, nargs="?", help="evidence folder, for an A/A reading"
    )
    for name, (module, text) in OTHER_LABS.items():
        sub = add(name, _from(module), text, folder=None)
        if name in words:
            importlib.import_module(f"deep_learning_cases.{module}").add_arguments(sub)
    lab = add("lab", _lab, "put the notebooks into a work folder and start JupyterLab", folder=None)
    lab.add_argument(
        "folder", metavar="DIR", type=commands.path, nargs="?", default=Path("work/labs"), help="(work/labs)"
    )
    lab.add_argument("--no-start", action="store_true", help="only copy the notebooks")
    return parser


def _from(module: str) -> Callable[[argparse.Namespace], int]:
    """A command that lives in a module of its own, imported when it runs."""

    def command(arguments: argparse.Namespace) -> int:
        code: int = importlib.import_module(f"deep_learning_cases.{module}").command(arguments)
        return code

    return command


def _doctor(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import doctor

    result = doctor.examine(release_cli.existing(arguments.folder) if arguments.folder else None)
    return commands.emit(arguments, result, doctor.lines(result))


def _lab(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import lab

    copied = lab.prepare(arguments.folder)
    commands.emit(arguments, copied, lab.lines(copied))
    return 0 if arguments.no_start else lab.start(arguments.folder)
