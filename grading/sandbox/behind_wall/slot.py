"""A submission's files and processes, as its own process lists them and as the server watches them."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

from . import frames  # so that tests outside the wall can import this module by its full name

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


def strangers(ours: set[int], uid: int | None) -> list[int]:
    """Live descendants beside ``ours``, of user ``uid`` if it is given."""
    return [pid for pid in descendants(os.getpid(), ours - {os.getpid()}) if pid not in ours and _is_students(pid, uid)]


def descendants(root: int, leave_out: set[int]) -> list[int]:
    """Children, their children and so on; orphans are ours too where we are their reaper."""
    found, level = [], [root]
    while level:
        parent = level.pop()
        children = [pid for pid in _children(parent) if pid not in leave_out]
        found += children
        level += children
    return found


def _children(parent: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{thread}/children") as stream:
                found += [int(text) for text in stream.read().split()]
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
