"""One function of the installed library, run on staged files; its result leaves as one bounded JSON line."""

import dataclasses
import importlib
import json
import math
import socket
from pathlib import Path
from typing import Any

from behind_wall import frames, kernel, slot


def run(channel: socket.socket, request: dict[str, Any]) -> None:
    """Write the staged files, call ``module:function`` with the folder first, send ``{"ok", "value" | "error"}``."""
    listing, _ = frames.receive(channel, max_bytes=16 << 20, max_fds=0)
    slot.write_files(channel, listing["files"])
    kernel.seed_afresh()
    module, _, name = request["name"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        value = function(Path.cwd(), *request["arguments"], **request["named"])
        reply: dict[str, Any] = {"ok": True, "value": jsonable(value)}
    except Exception as error:
        reply = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)[:2000]}}
    channel.sendall(json.dumps(reply).encode() + b"\n")


def jsonable(value: Any, depth: int = 0) -> Any:
    """Dataclasses, paths, arrays and their kin as plain JSON; a float that is not finite becomes null."""
    if depth > 30:
        return None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item, depth + 1) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist(), depth + 1)
    return str(value)[:2000]
