"""``python -m grading try FILE.py``: grade one ``latency_stats`` exactly as hidden grading would."""

import argparse
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import EvidenceError, FileError, InputError
from deep_learning_cases.ground.command_line import print_json, say
from deep_learning_cases.ground.files import read_bytes
from grading.commands import single_grading
from grading.course.provided_imports import imports_before
from grading.exercises.latency_stats import judge, questions
from grading.judging.flags import Flag
from grading.judging.items import ItemResult, as_json
from grading.judging.seed import course_seed

__all__ = ["add_parser", "grade_text", "read_solution", "run"]

MAX_SOURCE_BYTES = 256 * 1024
CELL = "latency_stats"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``try FILE [--seed-file FILE] [--isolation KIND] [--json]``."""
    parser = subparsers.add_parser(
        "try",
        help="grade one latency_stats file as hidden grading would",
        description="Run FILE as the solution cell behind the wall, with what the notebook's cells above it import; "
        "ask it the hidden inputs, and judge its answers.",
    )
    parser.add_argument("file", type=Path, metavar="FILE.py", help="Python that defines latency_stats")
    parser.add_argument(
        "--seed-file", type=Path, metavar="FILE", help="the course's seed (default: the checkout's own)"
    )
    single_grading.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the items; 0 whenever the file could be graded, whatever its points."""
    source = read_solution(args.file)
    seed = course_seed(args.seed_file)
    with single_grading.open_for(args) as box:
        items, flags = grade_text(source, seed, box)
        isolation = box.isolation
    if args.json:
        print_json(as_json(items, isolation))
    else:
        say(*single_grading.result_lines(items, flags, str(isolation.get("kind"))))
    return 0


def read_solution(path: Path) -> str:
    """The text of a Python file; one-line errors for what is none."""
    if path.suffix == ".ipynb":
        raise InputError(f"{path} is a notebook: expected a Python file; put the solution cell's text into a .py file")
    if path.is_dir():
        raise FileError(f"{path} is a folder: expected a Python file; name the file in it")
    content = read_bytes(path, MAX_SOURCE_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvidenceError(
            f"{path} is not UTF-8 text (byte {error.start}): expected Python source; save it as UTF-8"
        ) from error


def grade_text(source: str, seed: str, box: Any) -> tuple[list[ItemResult], list[Flag]]:
    """Run ``source`` as the solution cell in ``box``, below the notebook's imports, and judge its hidden answers."""
    hidden = questions.load(seed)
    cells = [{"id": "imports", "source": imports_before(CELL)}, {"id": CELL, "source": source}]
    run = box.run(cells, calls=judge.calls(hidden))
    return judge.judge(hidden, run.answers, run.asked, source, _ended(run))


def _ended(run: Any) -> str:
    """What ended the cell early, if anything: a limit or an exception of its own, before any hidden input was there."""
    if run.stopped:
        return str(run.stopped["message"])
    errors = [output for output in run.outputs.get(CELL, []) if output.get("output_type") == "error"]
    return f"the cell raised {errors[0].get('ename')}" if errors else ""
