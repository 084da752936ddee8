"""Bounded reading of JSON lines that a student's process may have written."""

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["Lines", "parse"]


class Lines:
    """Splits bytes into lines; a line longer than ``most`` bytes is skipped, and nothing larger is ever held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = bytearray()
        self._skipping = False
        self.skipped = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[dict[str, Any], int]]:
        """The JSON objects that are complete with ``chunk``, and their sizes; anything else is dropped."""
        parts = chunk.split(b"\n")
        for part in parts[:-1]:
            self._take(part)
            if self._skipping:
                self._skipping = False
            else:
                line = bytes(self._held)
                self._held.clear()
                if (value := parse(line)) is not None:
                    yield value, len(line)
        self._take(parts[-1])

    def _take(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._held) + len(part) > self._most:
            self._skipping = True
            self.skipped += 1
            self._held.clear()
        else:
            self._held += part


def parse(line: bytes) -> dict[str, Any] | None:
    """A JSON object with a "type", or None: not JSON, too deep, numbers too long, another kind of value."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None
