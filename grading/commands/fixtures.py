"""``python -m grading fixtures``: a course's own hidden inputs."""

import argparse
from collections import Counter
from pathlib import Path

from deep_learning_cases.ground.command_line import say
from grading.exercises.latency_stats import questions
from grading.judging.seed import DEFAULT_SEED_FILE, write_seed

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``fixtures [--seed-file FILE] [--replace]``."""
    parser = subparsers.add_parser(
        "fixtures",
        help="write a course's own secret seed for the hidden inputs",
        description="Write a new random seed; the hidden samples follow from it. Keep the file out of version control.",
    )
    parser.add_argument(
        "--seed-file",
        type=Path,
        default=DEFAULT_SEED_FILE,
        metavar="FILE",
        help="where to write it (default: %(default)s, which grading uses when no other is named)",
    )
    parser.add_argument("--replace", action="store_true", help="replace an existing seed: hidden inputs change")


def run(args: argparse.Namespace) -> int:
    """Write the seed and say what it stands for, without showing it."""
    seed = write_seed(args.seed_file, replace=args.replace)
    made = questions.load(seed)
    kinds = Counter("faulty" if fixture.bad else "proper" for fixture in made)
    say(
        f"wrote {args.seed_file} (readable by you only): {kinds['proper']} proper and {kinds['faulty']} faulty hidden "
        f"inputs follow from it; never put it under version control, and keep it as long as marks may be questioned"
    )
    return 0
