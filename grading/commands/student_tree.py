"""``python -m grading student-tree DIR``: the files that students get, in a folder or an image, and nothing else.

An image keeps every layer, so what must not be in it must not be in its build context.  What may go in is listed in
``binder/.dockerignore``, which repo2docker reads as well: both ways give the same files.  The README is the students'
own, ``binder/student-README.md``; in an image of the repository ``binder/postBuild`` puts it there.
"""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.ground.command_line import say
from deep_learning_cases.ground.files import write_bytes
from grading.course.places import CHECKOUT

__all__ = ["LIST", "add_parser", "allowed", "findings", "make", "run"]

LIST = "binder/.dockerignore"

_SECRETS = (
    b"BEGIN SOLUTION",
    b"BEGIN HIDDEN",
    b"import grading",
    b"from grading",
    b"fixtures.seed",
    b"grading.exercises",
)
"""What only the instructors' side says; the settings that name these words for other reasons are not in the tree."""

_README = "binder/student-README.md"

_NEEDED = (
    "binder/environment.yml",
    "binder/postBuild",
    "deploy/student/jupyter_server_config.json",
    "pyproject.toml",
    _README,
)

_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+\.(?:png|jpg|svg))\)")

_FOLDERS = frozenset(
    {".git", "grading", "tests", "benchmarks", "evidence", "work", "__pycache__", ".ipynb_checkpoints"}
)


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("student-tree", help="write the files that students get, in a folder or an image")
    parser.add_argument("folder", metavar="DIR", type=Path, help="where: a new or empty folder")


def run(args: argparse.Namespace) -> int:
    """Check the notebooks against their masters, write the tree, search it, and say what to do with it."""
    from grading.course import build

    stale = build.differences()
    if stale:
        raise EvidenceError(
            f"labs/ is not what the masters give ({stale[0]}): expected no other notebook in an image; "
            "run `python -m grading build`"
        )
    paths = make(args.folder)
    say(f"{len(paths)} files in {args.folder}: no answer, fixture, check or history")
    say(f"hand it out as it is, or build an image: jupyter-repo2docker --no-run --image-name NAME {args.folder}")
    return 0


def allowed(checkout: Path = CHECKOUT) -> list[str]:
    """Every file that may go in, as sorted names relative to ``checkout``: no links, nothing untracked.

    Those of the list, and the pictures that their pages show.
    """
    lines = [line.strip() for line in (checkout / LIST).read_text(encoding="utf-8").splitlines()]
    rules = [line for line in lines if line and not line.startswith("#")]
    if rules[:1] != ["*"] or not all(rule.startswith("!") for rule in rules[1:]):
        raise FileError(f"{LIST} is no list of exceptions: expected * first and then only lines with !; correct it")
    tracked = _tracked(checkout)
    found = {path for rule in rules[1:] for path in checkout.glob(rule[1:]) if _plain(path, checkout)}
    found |= set(_pictures(found, checkout))
    names = sorted(path.relative_to(checkout).as_posix() for path in found)
    return [name for name in names if tracked is None or name in tracked]


def make(folder: Path, checkout: Path = CHECKOUT) -> list[Path]:
    """Write the tree to ``folder``; returns the files.

    Raises FileError for a folder that holds something already, EvidenceError where a secret would have gone in (the
    tree is then removed again).
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already: expected a new or empty folder, lest old files get into the image")
    written = []
    names = allowed(checkout)
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise FileError(
            f"{checkout / missing[0]} is missing or not under version control: an image needs it; commit it"
        )
    sources = {name: name for name in names if name != _README} | {"README.md": _README}
    for name, source in sources.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, (checkout / source).read_bytes())
        target.chmod(0o755 if name.endswith("postBuild") else 0o644)
        written.append(target)
    found = findings(folder)
    if found:
        shutil.rmtree(folder)
        raise EvidenceError(f"{found[0]}: expected nothing of the instructors' side in an image; correct {LIST}")
    return written


def findings(folder: Path) -> list[str]:
    """What in ``folder`` no student may have, one line each: names of folders, words, links, compiled files."""
    lines = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            lines.append(f"{name} is a link")
        elif path.name in _FOLDERS:
            lines.append(f"{name} is there")
        elif path.suffix in {".pyc", ".db", ".seed"}:
            lines.append(f"{name} is no source")
        elif path.is_file():
            content = path.read_bytes()
            lines += [f"{name} says {secret.decode()!r}" for secret in _SECRETS if secret in content]
    return lines


def _pictures(pages: Iterable[Path], checkout: Path) -> Iterator[Path]:
    """The pictures of the checkout that Markdown pages show; the repository's README is for others."""
    for page in pages:
        if page.suffix == ".md" and page != checkout / "README.md":
            for target in _PICTURE.findall(page.read_text(encoding="utf-8")):
                path = Path(os.path.normpath(page.parent / target))
                if path.is_relative_to(checkout) and _plain(path, checkout):
                    yield path


def _plain(path: Path, checkout: Path) -> bool:
    parents = [parent for parent in path.parents if parent != checkout and parent.is_relative_to(checkout)]
    return path.is_file() and not any(place.is_symlink() for place in (path, *parents))


def _tracked(checkout: Path) -> set[str] | None:
    """Names under version control, so that a stray notebook stays behind; None where there is no repository."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(checkout), "ls-files", "-z"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return set(listed.split("\0"))
