"""Put the student notebooks into a work folder and start JupyterLab there.

Work is never overwritten: a notebook that the student changed stays, and a newer version of ours lands beside it.
"""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import deep_learning_cases
from deep_learning_cases.errors import EvidenceError, FileError, MissingDependencyError
from deep_learning_cases.ground import files

__all__ = ["command", "lines", "notebooks_folder", "prepare", "start"]

ISSUED = ".issued.json"
"""The SHA-256 of what we put there: an untouched notebook may be renewed, a student's work may not."""


def notebooks_folder() -> Path:
    """``labs/`` of the checkout this library runs from, or of the image it was installed in; FileError without any."""
    places = (
        Path(deep_learning_cases.__path__[0]).resolve().parent / "labs",
        Path(sys.prefix) / "share" / "deep_learning_cases" / "labs",
    )
    for folder in places:
        if folder.is_dir():
            return folder
    raise FileError(
        f"no notebooks at {places[0]}: they come with the project's source; clone it and run `make lab` there"
    )


def prepare(work: Path, source: Path | None = None) -> dict[str, Any]:
    """Copy every notebook of ``source`` into ``work``; returns ``{"folder", "new", "renewed", "kept", "beside"}``.

    ``beside`` names the newer versions that were put next to a notebook which the student has changed.
    """
    source = source or notebooks_folder()
    issued = _read_issued(work / ISSUED)
    result: dict[str, Any] = {"folder": str(work), "new": [], "renewed": [], "kept": [], "beside": []}
    for original in sorted(source.glob("*/*.ipynb")):
        content = original.read_bytes()
        target = work / original.relative_to(source)
        kind = _place(work, target, content, issued)
        placed = _beside(work, target, content, issued) if kind == "beside" else target
        result[kind].append(placed.relative_to(work).as_posix())
        issued[target.relative_to(work).as_posix()] = files.sha256_bytes(content)
        # Once for each notebook: what an interrupted run has placed is known to the next one.
        files.write_json(work / ISSUED, issued)
    return result


def _read_issued(path: Path) -> dict[str, str]:
    """What was issued; nothing where that is not known, so that every notebook counts as a student's work."""
    try:
        value = files.read_json(path) if path.exists() else {}
    except EvidenceError:
        return {}
    return {name: str(digest) for name, digest in value.items()} if isinstance(value, dict) else {}


def _place(work: Path, target: Path, content: bytes, issued: dict[str, str]) -> str:
    digest, before = files.sha256_bytes(content), issued.get(target.relative_to(work).as_posix())
    if not target.exists():
        _make_folder(target.parent)
        files.write_bytes(target, content)
        return "new"
    current = files.sha256_file(target)
    if digest in (current, before):
        return "kept"
    if current == before:
        files.write_bytes(target, content)
        return "renewed"
    return "beside"


def _beside(work: Path, target: Path, content: bytes, issued: dict[str, str]) -> Path:
    """Write the newer version next to a student's work, under a name that holds no work of theirs either."""
    digest, number = files.sha256_bytes(content), 1
    while True:
        place = target.with_name(f"{target.stem}.new{number if number > 1 else ''}{target.suffix}")
        name = place.relative_to(work).as_posix()
        if not place.exists() or files.sha256_file(place) in (digest, issued.get(name)):
            files.write_bytes(place, content)
            issued[name] = digest
            return place
        number += 1


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder} ({error.strerror}): choose a writable place") from error


def lines(result: dict[str, Any]) -> list[str]:
    """What :func:`prepare` did, for a person."""
    text = [f"notebooks in {result['folder']}: {len(result['new'])} new, {len(result['renewed'])} renewed"]
    text += [f"your work is kept; the newer version is {name}" for name in result["beside"]]
    return text


def start(work: Path) -> int:
    """JupyterLab on loopback with a token, in ``work``; its exit code.  MissingDependencyError without JupyterLab.

    Where the system can, this process becomes JupyterLab and does not come back: whoever stops or kills it then stops
    or kills JupyterLab, which also asks its own question at Ctrl-C.  A notebook's kernel runs in the notebook's own
    folder, where it keeps its ``evidence/``.
    """
    if find_spec("jupyterlab") is None:
        raise MissingDependencyError(
            "JupyterLab is not installed: install it with: pip install 'deep_learning_cases[lab]'"
        )
    environment = os.environ | {"PATH": _path()}
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.chdir(work)
        os.execve(sys.executable, command(), environment)
    return _child(command(), work, environment)


def _child(words: list[str], work: Path, environment: dict[str, str]) -> int:
    """Windows has no exec.  Its Ctrl-C reaches both processes: the child answers it, and we wait for that."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.call(words, cwd=work, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)


def command() -> list[str]:
    """How JupyterLab is started: for this machine only; with a new random token, unless the user has set a password."""
    options = ["--ServerApp.ip=127.0.0.1", "--ServerApp.allow_remote_access=False"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Within a container everybody is root, and Jupyter would refuse.
        options.append("--ServerApp.allow_root=True")
    return [sys.executable, "-m", "jupyterlab", *options]


def _path() -> str:
    """A terminal in JupyterLab finds ``dlcases`` though the environment was never activated."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
