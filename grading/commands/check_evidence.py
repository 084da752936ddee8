"""``python -m grading check-evidence DIR``: judge one evidence folder exactly as grading would."""

import argparse
import tempfile
from pathlib import Path

from deep_learning_cases.errors import FileError
from deep_learning_cases.ground.command_line import print_json, say
from grading.commands import single_grading
from grading.judging.evidence import RELEASE
from grading.judging.flags import Flag
from grading.judging.items import as_json
from grading.submission.stage import stage

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``check-evidence DIR [--isolation KIND] [--json]``."""
    parser = subparsers.add_parser(
        "check-evidence",
        help="judge one evidence folder as grading would",
        description="Copy DIR, recompute everything from its files behind the wall, and judge what was found.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="an evidence folder, or a submission that holds one")
    single_grading.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the items; 0 whenever the folder could be judged, whatever its points."""
    source = _evidence_folder(args.folder)
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        staged = stage(source, Path(scratch, "evidence"))
        with single_grading.open_for(args) as box:
            items, flags = RELEASE.judge(staged.folder, box)
            isolation = box.isolation
    flags += [Flag("left-out", f"{entry['name']} was not looked at: {entry['why']}") for entry in staged.left_out]
    if args.json:
        print_json(as_json(items, isolation))
    else:
        say(*single_grading.result_lines(items, flags, str(isolation.get("kind"))))
    return 0


def _evidence_folder(folder: Path) -> Path:
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise FileError(f"{folder} {what}: expected an evidence folder; name the folder that holds benchmark.json")
    inner = folder / "evidence"
    return inner if inner.is_dir() and not (folder / "benchmark.json").exists() else folder
