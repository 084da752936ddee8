"""Empty the folders that a submission could write to, whatever it made of them."""

import contextlib
import os
import shutil
import stat
import time
from typing import Any

_SECONDS = 2.0


def is_untouched(work: str, writable: list[str], kept: list[str]) -> bool:
    """Whether there is nothing but the bare work folder and what is ``kept``; most submissions write no file."""
    home, name = os.path.split(work)
    try:
        about = os.lstat(work)
        if not stat.S_ISDIR(about.st_mode) or about.st_mode & 0o777 != 0o755 or os.listdir(work):
            return False
        left = {os.path.join(folder, entry) for folder in writable for entry in os.listdir(folder)}
        left |= {os.path.join(way, entry) for way in _ways(kept) for entry in os.listdir(way)}
        return left <= {work, home, *kept} and os.listdir(home) == [name]
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


def _ends(kept: list[str]) -> list[str]:
    """The kept folders themselves, as against the folders on the way to them."""
    return [path for path in kept if not any(other.startswith(path + os.sep) for other in kept)]


def _ways(kept: list[str]) -> list[str]:
    return [path for path in kept if path not in _ends(kept)]


def empty_folders(folders: list[str], kept: list[str]) -> bool:
    """Empty them all, but for what is ``kept``; False when something else is left."""
    done = [empty_folder(folder, kept) for folder in folders]  # all of them, also after one that failed
    return all(done)


def empty_folder(folder: str, kept: list[str]) -> bool:
    """Remove everything in ``folder`` without following a link; False when it takes too long."""
    deadline = time.monotonic() + _SECONDS
    done = True
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if time.monotonic() > deadline:
            return False
        if path in kept:
            done = (path in _ends(kept) or empty_folder(path, kept)) and done
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, onerror=_make_removable)
        else:
            os.unlink(path)
    return done and {os.path.join(folder, name) for name in os.listdir(folder)} <= set(kept)


def _make_removable(_function: Any, path: str, _error: Any) -> None:
    """A folder without rights is given them back and tried again, once."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700, follow_symlinks=False) if not os.path.islink(path) else None
    with contextlib.suppress(OSError):
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
