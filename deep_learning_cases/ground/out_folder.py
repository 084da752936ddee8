"""A folder that a command writes into: made if need be, tried before anything is measured, and locked meanwhile.

What is measured cannot be measured again, so a record that is replaced stays beside the new one.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError
from deep_learning_cases.ground import files

__all__ = ["EARLIER", "check_room", "keep", "made", "taken"]

EARLIER = "earlier"
"""Folder beside a record, for what it replaced; no check, report or package looks into it."""

NEEDED_BYTES = 4 << 20
"""More than a whole evidence folder, or the models of one comparison's versions."""

LOCK_FILE = ".dlcases.lock"
"""On Windows alone, and only while a command runs there."""


@contextlib.contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Have an existing ``folder`` for this process alone, and know that files can be written into it.

    FileError, before the block begins, where it cannot be written, has too little room, or another process has taken
    it.  A killed process holds nothing: the lock is the system's.
    """
    with _locked(folder):
        check_room(folder)
        yield


@contextlib.contextmanager
def made(folder: Path) -> Iterator[None]:
    """Have ``folder``; FileError where it cannot be made.

    Folders that were made here are removed again where the block fails and left nothing in them.
    """
    new: list[Path] = []
    try:
        try:
            new = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {folder} ({error.strerror}): choose a writable place") from error
        yield
    except BaseException:
        for place in new:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise


def check_room(folder: Path, needed_bytes: int = NEEDED_BYTES) -> None:
    """FileError unless files of so many bytes can be written into ``folder``: tried, with a file that has no name."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(needed_bytes))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise FileError(
            f"cannot write into {folder} ({error.strerror or type(error).__name__}): expected a writable folder with"
            f" {needed_bytes / 1e6:.0f} MB free; free space or choose another folder"
        ) from error


def keep(path: Path, content: bytes) -> Path | None:
    """Before ``path`` is replaced by ``content``: put what stands there into ``earlier/``, and say so on stderr.

    Its name there holds the record's ``created_at``, or the file's time where it has none.  Returns that place, or None
    where nothing would be lost: no file, the same content, or a record that differs in ``created_at`` alone.  Raises
    FileError where it cannot be kept; then nothing should be replaced.
    """
    if not path.is_file():
        return None
    old = files.read_bytes(path)
    said = _record(path, old)
    if old == content or (said is not None and said == _record(path, content)):
        return None
    folder = path.parent / EARLIER
    try:
        folder.mkdir(exist_ok=True)
        time = _created_at(old) or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise FileError(
            f"cannot keep the earlier {path.name} in {folder} ({error.strerror}): nothing was replaced; make room there"
        ) from error
    stem, number = f"{path.stem}-{time:%Y-%m-%dT%H-%M-%SZ}", 1  # a colon is no character of a name on Windows
    place = folder / f"{stem}{path.suffix}"
    while place.exists() and files.read_bytes(place) != old:
        number += 1
        place = folder / f"{stem}-{number}{path.suffix}"
    files.write_bytes(place, old)
    print(f"the earlier {path.name} is kept as {place}", file=sys.stderr)
    return place


def _record(path: Path, content: bytes) -> dict[str, Any] | None:
    """What a JSON record says apart from when; None for anything else."""
    try:
        value = json.loads(content) if path.suffix == ".json" else None
    except (ValueError, RecursionError):
        return None
    return {key: one for key, one in value.items() if key != "created_at"} if isinstance(value, dict) else None


def _created_at(content: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(json.loads(content)["created_at"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle: int | None = None
    try:
        # Some network drives lock no folder: there a second command is not noticed.
        with contextlib.suppress(OSError):
            handle = _open(folder)
            if not _lock(handle):
                raise FileError(
                    f"another command is writing into {folder}: expected it for this command alone; wait until that"
                    " one has ended, or choose another folder"
                )
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _open(folder: Path) -> int:
    """What carries the lock: the folder itself, so that no file of ours lies in it.

    Windows locks files only.  There it is one that the system deletes when its last user has closed it or was killed.
    """
    if sys.platform == "win32":
        return os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_TEMPORARY)
    else:  # noqa: RET505 - the form that mypy reads as one of two systems
        return os.open(folder, os.O_RDONLY)


def _lock(handle: int) -> bool:
    """Take the lock, or return False at once because another process has it."""
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # flock(2) says the one, Windows the other
        return False
    return True
