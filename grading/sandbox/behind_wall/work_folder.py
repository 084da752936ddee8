"""The submission's work folder: files come in over the channel, and what the cells wrote is listed."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

from behind_wall import frames


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
