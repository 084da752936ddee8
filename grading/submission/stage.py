"""Stage 1: a submission as regular files in a scratch folder, read without ever following a link.

What a student hands in is a folder that may hold links to the grader's own files, pipes, sockets, huge or oddly named
files.  Only what :func:`stage` copied is looked at by any later stage; what it left out is named in the record.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.out_folder import EARLIER

__all__ = ["LeftOut", "StageLimits", "Staged", "read_file", "stage", "unpack"]

_CHUNK = 1 << 20
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,200}")
_SKIPPED = {".ipynb_checkpoints", "__pycache__", ".git", ".grading.json"}
_OPEN = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class StageLimits:
    """What one submission may hold. An evidence folder has eight files and 0.3 MB."""

    files: int = 500
    bytes: int = 64 * 1024 * 1024
    bytes_per_file: int = 32 * 1024 * 1024
    depth: int = 6


class LeftOut(TypedDict):
    """A file that was not copied."""

    name: str
    why: str


@dataclass
class Staged:
    """``files`` {name: bytes}, what was ``left_out`` [{name, why}], and a digest over the names and contents copied."""

    folder: str
    files: dict[str, int] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    digest: str = ""


def stage(source: str | Path, folder: str | Path, limits: StageLimits | None = None) -> Staged:
    """Copy the regular files of ``source`` into the new folder ``folder``, mode 0444, and say what was left out.

    Every file is opened with O_NOFOLLOW relative to its directory's descriptor and checked to be a regular file after
    opening, so that a name exchanged for a link in between gains nothing.  Raises FileError where ``source`` itself
    cannot be read or is no folder.
    """
    limits = limits or StageLimits()
    staged = Staged(str(folder))
    try:
        root = os.open(source, _OPEN | os.O_DIRECTORY)
    except OSError as error:
        raise FileError(
            f"cannot read the submission {source} ({error.strerror}): expected a folder that is no link; check it"
        ) from error
    Path(folder).mkdir(parents=True)
    digest = hashlib.sha256()
    try:
        _copy_folder(root, "", Path(folder), limits, staged, digest)
    finally:
        os.close(root)
    staged.digest = digest.hexdigest()
    return staged


def unpack(files: dict[str, bytes], folder: str | Path) -> None:
    """The counterpart for a worker on another machine: write files that :func:`stage` has already chosen."""
    for name, content in files.items():
        path = Path(folder, name)
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(f"{name!r} leads out of the folder: expected a relative name; stage the submission again")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_file(path: str | Path, max_bytes: int) -> bytes | None:
    """The content of a regular file that is no link and holds at most ``max_bytes``; None if it is anything else."""
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_size > max_bytes:
            return None
        with open(handle, "rb", closefd=False) as stream:
            content = stream.read(max_bytes + 1)
        return content if len(content) <= max_bytes else None
    finally:
        os.close(handle)


def _copy_folder(handle: int, prefix: str, folder: Path, limits: StageLimits, staged: Staged, digest: Any) -> None:
    """One folder, names in a fixed order, so that the same submission always gives the same digest and the same cut."""
    for name in sorted(os.listdir(handle), key=lambda name: (_rank(name, prefix), name)):
        shown = f"{prefix}{name}"
        if name in _SKIPPED:
            continue
        why = _refused_name(name) or _refused_kind(handle, name)
        if why is None and shown.count("/") >= limits.depth:
            why = f"deeper than {limits.depth} folders"
        if why is None and len(staged.files) >= limits.files:
            why = f"more than {limits.files} files"
        if why is None:
            why = _copy_entry(handle, name, shown, folder, limits, staged, digest)
        if why is not None:
            _leave_out(staged, shown, why)


def _rank(name: str, prefix: str) -> int:
    """Notebooks first, then evidence: pictures beside them must not use up the room for what is graded.

    Nor may what the evidence replaced, which is kept in a folder of its own.
    """
    if prefix:
        return int(name == EARLIER)
    return 0 if name.endswith(".ipynb") else 1 if name == "evidence" else 2


def _leave_out(staged: Staged, name: str, why: str) -> None:
    # A folder with a million odd names must not fill the record.
    if len(staged.left_out) < 100:
        staged.left_out.append({"name": name.encode("utf-8", "backslashreplace").decode()[:300], "why": why})


def _refused_name(name: str) -> str | None:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if not _NAME.fullmatch(name) or name != name.strip():
        return "its name has characters or spaces that file systems read differently"
    return None


def _refused_kind(handle: int, name: str) -> str | None:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "is a link"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "is neither a file nor a folder"
    return None


def _copy_entry(
    parent: int, name: str, shown: str, folder: Path, limits: StageLimits, staged: Staged, digest: Any
) -> str | None:
    try:
        handle = os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    try:
        state = os.fstat(handle)
        if stat.S_ISDIR(state.st_mode):
            if name.endswith(".ipynb"):
                return "is a folder where a notebook is expected"
            (folder / name).mkdir()
            _copy_folder(handle, f"{shown}/", folder / name, limits, staged, digest)
            return None
        if not stat.S_ISREG(state.st_mode):
            return "is neither a file nor a folder"
        left = limits.bytes - sum(staged.files.values())
        if state.st_size > min(limits.bytes_per_file, left):
            return f"{state.st_size} bytes, too large (limits: {limits.bytes_per_file} a file, {limits.bytes} together)"
        size = _copy_file(handle, folder / name, min(limits.bytes_per_file, left), shown, digest)
        if size is None:
            return "grew while it was read"
        staged.files[shown] = size
        return None
    finally:
        os.close(handle)


def _copy_file(handle: int, target: Path, at_most: int, shown: str, digest: Any) -> int | None:
    size, content = 0, hashlib.sha256()
    with open(target, "xb") as stream:
        while chunk := os.read(handle, _CHUNK):
            size += len(chunk)
            if size > at_most:
                break
            content.update(chunk)
            stream.write(chunk)
    if size > at_most:
        target.unlink()
        return None
    target.chmod(0o444)
    digest.update(f"{shown}\0{size}\0{content.hexdigest()}\n".encode())
    return size
