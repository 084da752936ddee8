"""Files that somebody handed in: regular files only, bounded, and JSON taken apart as far as it can be.

Nothing here raises for what a file holds.  A damaged file becomes words, because the reader (a student, a grader) wants
all that is wrong and not the first exception.
"""

import errno
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import MissingDependencyError, one_line
from deep_learning_cases.ground import files

__all__ = ["Document", "Finding", "attempt", "parse", "read_regular"]

MAX_NODES = 50_000
"""Values in one JSON file.  A whole benchmark.json has about 1,500."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where (``file`` and JSON ``pointer``), what (``message``), and what to ``redo``."""

    area: str
    file: str
    pointer: str
    message: str
    redo: str

    def __str__(self) -> str:
        place = f"{self.file} at {self.pointer}" if self.pointer else self.file
        return f"{place}: {self.message}; {self.redo} [{self.area}]"


def read_regular(path: Path, max_bytes: int) -> tuple[bytes | None, str]:
    """The bytes of a regular file, or None and what is there instead; links are not followed, pipes not waited for."""
    try:
        with files.open_regular(path, links=False) as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        told = {
            errno.ENOENT: "is missing",
            errno.ELOOP: "is a symbolic link: expected a regular file",
            errno.EINVAL: "is not a regular file",
        }
        return None, told.get(error.errno or 0, f"cannot be read ({error.strerror or type(error).__name__})")
    if len(content) > max_bytes:
        return None, f"is larger than {max_bytes:,} bytes"
    return content, ""


@dataclass(frozen=True)
class Document:
    """A JSON file taken apart as far as it can be.

    ``value`` is None where ``unreadable`` says why there is none.  ``repeated`` holds keys that stand twice in one
    object (the last one is in ``value``, and no reader can know which was meant).
    """

    value: Any
    unreadable: str = ""
    repeated: tuple[str, ...] = ()


def parse(content: bytes) -> Document:
    """As much of a JSON file as is safe to judge field by field.

    NaN and Infinity, which JSON does not have, stay in the value so that the check of their own field names them.
    """
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result and len(repeated) < 8:
                repeated.append(key)
            result[key] = value
        return result

    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=unique, parse_int=_integer)
    except RecursionError:
        return Document(None, "is nested too deeply to be a record")
    except (ValueError, MemoryError) as error:
        return Document(None, f"is not JSON in UTF-8 ({one_line(error)})")
    if problem := _too_much(value):
        return Document(None, problem)
    return Document(value, "", tuple(repeated))


def _integer(text: str) -> int | float:
    """Integers beyond 64 bits count as infinite: no count of bytes is one, and arithmetic on them takes for ever."""
    return int(text) if len(text) <= 18 else math.inf


def _too_much(value: Any) -> str:
    depth, nodes, level = 0, 0, [value]
    while level:
        depth, nodes = depth + 1, nodes + len(level)
        if depth > files.MAX_JSON_DEPTH:
            return f"is nested deeper than {files.MAX_JSON_DEPTH} levels"
        if nodes > MAX_NODES:
            return f"holds more than {MAX_NODES:,} values"
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return ""


def attempt(action: Callable[[], Any]) -> tuple[Any, str]:
    """Run ``action`` on a file that somebody handed in: whatever it raises becomes words.

    Only a package that is not installed here is raised on: that says nothing about the file.
    """
    try:
        return action(), ""
    except (ModuleNotFoundError, MissingDependencyError):
        raise
    except Exception as error:
        # ONNX Runtime, protobuf and zipfile each have their own family of failures for damaged input.
        return None, one_line(error)
