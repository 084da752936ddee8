"""The slot that submissions use one after the other: its work folder, its processes, and emptying it in between."""

import contextlib
import os
import shutil
import socket
import stat
import time
from pathlib import Path
from typing import Any

from . import frames  # so that tests outside the wall can import this module by its full name

_SECONDS_TO_EMPTY = 2.0


# Files come in over the channel, and what the cells wrote is listed.


def write_files(channel: socket.socket, listing: list[list[Any]]) -> dict[str, tuple[int, int]]:
    """Write the staged files, whose bytes follow the request, into the work folder."""
    staged = {}
    for name, size in listing:
        path = Path(name)
        content = frames.read_exactly(channel, size)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        about = path.stat()
        staged[str(path)] = (about.st_size, about.st_mtime_ns)
    return staged


def changed_files(staged: dict[str, tuple[int, int]], most: int = 200) -> list[dict[str, Any]]:
    """Names and sizes of regular files that the cells wrote or changed, at most ``most``."""
    found: list[dict[str, Any]] = []
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name))
            with contextlib.suppress(OSError):
                about = os.lstat(path)
                if staged.get(path) != (about.st_size, about.st_mtime_ns) and len(found) < most:
                    found.append({"file": path[:200], "bytes": about.st_size})
        if len(found) >= most:
            break
    return found


# The processes of a submission, also those that left its session.


def strangers(ours: set[int], uid: int | None, pid_namespace: bool) -> list[int]:
    """Live processes beside ``ours``: of user ``uid`` if it is given, of the namespace or else our descendants."""
    if pid_namespace:
        candidates = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    else:
        candidates = descendants(os.getpid(), ours - {os.getpid()})
    return [pid for pid in candidates if pid not in ours and _is_students(pid, uid)]


def descendants(root: int, leave_out: set[int]) -> list[int]:
    """Children, their children and so on; orphans are ours too where we are their reaper."""
    found, level = [], [root]
    while level:
        parent = level.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as stream:
                children = [int(text) for text in stream.read().split()]
        except (OSError, ValueError):
            continue
        children = [pid for pid in children if pid not in leave_out]
        found += children
        level += children
    return found


def private_bytes(pids: list[int]) -> int:
    """Memory that these processes do not share with the libraries' files, in bytes."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as stream:
            fields = stream.read().split()
            total += (int(fields[1]) - int(fields[2])) * page
    return total


def _is_students(pid: int, uid: int | None) -> bool:
    """Not a zombie, and of the user; /proc shows a process that is not dumpable as root's, so its status is read."""
    try:
        with open(f"/proc/{pid}/status") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return False
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
    if fields.get("State", ["Z"])[0] == "Z":
        return False
    return uid is None or str(uid) in fields.get("Uid", [])


# The folders that a submission could write to are emptied, whatever it made of them.


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
    deadline = time.monotonic() + _SECONDS_TO_EMPTY
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
