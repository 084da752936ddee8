"""Empty the folders that a submission could write to, whatever it made of them."""

import contextlib
import os
import shutil
import stat
import time
from typing import Any

_SECONDS = 2.0


def is_untouched(work: str, writable: list[str]) -> bool:
    """Whether there is nothing but the bare work folder; most submissions write no file."""
    home, name = os.path.split(work)
    try:
        about = os.lstat(work)
        if not stat.S_ISDIR(about.st_mode) or about.st_mode & 0o777 != 0o755 or os.listdir(work):
            return False
        left = {os.path.join(folder, entry) for folder in writable for entry in os.listdir(folder)}
        return left <= {work, home} and os.listdir(home) == [name]
    except OSError:
        return False


def bytes_in(folders: list[str], most_entries: int = 20_000) -> int:
    """Bytes of the regular files in ``folders``; very many entries count as too much."""
    total = entries = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            entries += len(names)
            if entries > most_entries:
                return 1 << 60
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(parent, name)).st_size
    return total


def empty_folders(folders: list[str]) -> bool:
    """Empty them all; False when something is left."""
    done = [empty_folder(folder) for folder in folders]  # all of them, also after one that failed
    return all(done)


def empty_folder(folder: str) -> bool:
    """Remove everything in ``folder`` without following a link; False when it takes too long."""
    deadline = time.monotonic() + _SECONDS
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if time.monotonic() > deadline:
            return False
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, onerror=_make_removable)
        else:
            os.unlink(path)
    return not os.listdir(folder)


def _make_removable(_function: Any, path: str, _error: Any) -> None:
    """A folder without rights is given them back and tried again, once."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700, follow_symlinks=False) if not os.path.islink(path) else None
    with contextlib.suppress(OSError):
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
