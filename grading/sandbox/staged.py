"""A folder on its way into the wall: regular files only, bounded, sent as bytes and never as a mount."""

import json
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any

from grading.sandbox.limits import Limits

__all__ = ["read_folder", "send_files"]


def read_folder(folder: Path, limits: Limits) -> list[tuple[str, bytes]]:
    """Relative names and contents; links, devices and what exceeds the limits are left out."""
    found: list[tuple[str, bytes]] = []
    room = limits.folder_mb * 1024 * 1024
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            content = _read_regular(path, min(room, limits.file_mb * 1024 * 1024))
            if content is None or len(found) >= limits.files_in:
                continue
            room -= len(content)
            found.append((str(path.relative_to(folder)), content))
    return found


def _read_regular(path: Path, most: int) -> bytes | None:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(number, "rb") as stream:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        content = stream.read(most + 1)
    return content if len(content) <= most else None


def send_files(sock: socket.socket, request: dict[str, Any], files: list[tuple[str, bytes]]) -> None:
    """One framed request that lists the files, then their bytes."""
    body = json.dumps(request | {"files": [[name, len(content)] for name, content in files]}).encode()
    sock.sendall(struct.pack("!I", len(body)) + body)
    for _, content in files:
        sock.sendall(content)
