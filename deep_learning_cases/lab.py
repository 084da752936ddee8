"""Put the student notebooks into a work folder and start JupyterLab there.

Work is never overwritten: a notebook that the student changed stays, and a newer version of ours lands beside it.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deep_learning_cases import files
from deep_learning_cases.errors import FileError, MissingDependencyError

__all__ = ["lines", "notebooks_folder", "prepare", "start"]

ISSUED = ".issued.json"
"""The SHA-256 of what we put there: an untouched notebook may be renewed, a student's work may not."""


def notebooks_folder() -> Path:
    """``labs/`` of the checkout this library runs from; FileError where the library was installed without it."""
    folder = Path(__file__).resolve().parent.parent / "labs"
    if not folder.is_dir():
        raise FileError(
            f"no notebooks at {folder}: they come with the project's source; clone it and run `make lab` there"
        )
    return folder


def prepare(work: Path, source: Path | None = None) -> dict[str, Any]:
    """Copy every notebook of ``source`` into ``work``; returns ``{"folder", "new", "renewed", "kept", "beside"}``.

    ``beside`` names the newer versions that were put next to a notebook which the student has changed.
    """
    source = source or notebooks_folder()
    issued_path = work / ISSUED
    issued: dict[str, str] = files.read_json(issued_path) if issued_path.exists() else {}
    result: dict[str, Any] = {"folder": str(work), "new": [], "renewed": [], "kept": [], "beside": []}
    for original in sorted(
        path for path in source.rglob("*") if path.is_file() and ".ipynb_checkpoints" not in path.parts
    ):
        name = original.relative_to(source).as_posix()
        content = original.read_bytes()
        digest = files.sha256_bytes(content)
        target = work / name
        kind = _place(target, content, digest, issued.get(name))
        result[kind].append(name if kind != "beside" else _beside(target).relative_to(work).as_posix())
        issued[name] = digest
    files.write_json(issued_path, issued)
    return result


def _place(target: Path, content: bytes, digest: str, issued: str | None) -> str:
    if not target.exists():
        _make_folder(target.parent)
        files.write_bytes(target, content)
        return "new"
    current = files.sha256_file(target)
    if current == digest or issued == digest:
        return "kept"
    if current == issued:
        files.write_bytes(target, content)
        return "renewed"
    files.write_bytes(_beside(target), content)
    return "beside"


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.stem}.new{target.suffix}")


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
    """JupyterLab on loopback with a token, in ``work``; its exit code.  MissingDependencyError without JupyterLab."""
    if find_spec("jupyterlab") is None:
        raise MissingDependencyError(
            "JupyterLab is not installed: install it with: pip install 'deep_learning_cases[lab]'"
        )
    return subprocess.call([sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"], cwd=work)
