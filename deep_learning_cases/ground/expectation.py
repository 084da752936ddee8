"""What a record should say, as a tree beside the one that was handed in, and every leaf where the two differ.

Some values are known exactly, some within rounding, some only by their kind.  The tree says which.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deep_learning_cases.errors import one_line
from deep_learning_cases.ground.arguments import is_number

__all__ = [
    "COUNT", "NOT_NEGATIVE", "OBJECT", "POSITIVE", "ROUNDING", "TEXT", "TIME",
    "Close", "Digest", "Maybe", "Rule",
    "compare", "is_number", "look", "shown", "unknown",
]  # fmt: skip


ROUNDING = 1e-9
"""Sums of the same numbers in another order differ by this much at most (300 samples, double precision: 1e-13)."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|\+00:00)", re.ASCII)


@dataclass(frozen=True)
class Rule:
    """A value that cannot be known in advance, only recognised: ``expectation`` in words, ``accepts`` as a test."""

    expectation: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True)
class Close:
    """A number recomputed by floating-point sums: equal within ``tolerance`` (relative above 1, absolute below)."""

    value: float
    tolerance: float


class Digest(str):
    """A file's SHA-256 that remembers which file it is of, so that a message can name it."""

    __slots__ = ("of",)
    of: str

    @classmethod
    def known(cls, hexadecimal: str, of: str) -> "Digest":
        """The digest of a file that is called ``of``."""
        digest = cls(hexadecimal)
        digest.of = of
        return digest


@dataclass(frozen=True)
class Maybe:
    """A key that may be left out."""

    expected: Any


def compare(stated: Any, expected: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Every place where ``stated`` is not what ``expected`` says, as (JSON pointer, what is wrong).

    ``expected`` is a tree of plain values (equal in value and kind: ``true`` is not 1 and not "true"), :class:`Close`,
    :class:`Rule`, dictionaries (exactly these keys, apart from :class:`Maybe`) and lists (exactly this length).
    """
    if isinstance(expected, Maybe):
        expected = expected.expected
    if isinstance(expected, dict):
        yield from _compare_objects(stated, expected, pointer)
    elif isinstance(expected, list):
        yield from _compare_arrays(stated, expected, pointer)
    elif not _agrees(stated, expected):
        yield pointer, f"is {shown(stated)}: expected {_words(expected)}"


def _compare_objects(stated: Any, expected: dict[str, Any], pointer: str) -> Iterator[tuple[str, str]]:
    if not isinstance(stated, dict):
        yield pointer, f"is {shown(stated)}: expected an object with {', '.join(expected)}"
        return
    for key, value in expected.items():
        if key in stated:
            yield from compare(stated[key], value, f"{pointer}/{key}")
        elif not isinstance(value, Maybe):
            yield f"{pointer}/{key}", f"is missing: expected {_words(value)}"
    for key in stated:
        if key not in expected:
            yield f"{pointer}/{_escape(key)}", "is not part of the format: expected only the keys of the format"


def _compare_arrays(stated: Any, expected: list[Any], pointer: str) -> Iterator[tuple[str, str]]:
    if not isinstance(stated, list):
        yield pointer, f"is {shown(stated)}: expected an array of {len(expected)}"
        return
    if len(stated) != len(expected):
        yield pointer, f"holds {len(stated)} entries: expected {len(expected)}"
    for index, (one, other) in enumerate(zip(stated, expected, strict=False)):
        yield from compare(one, other, f"{pointer}/{index}")


def _agrees(stated: Any, expected: Any) -> bool:
    if isinstance(expected, Rule):
        return expected.accepts(stated)
    if isinstance(expected, Close):
        return is_number(stated) and abs(stated - expected.value) <= expected.tolerance * max(1.0, abs(expected.value))
    if isinstance(expected, str):
        return isinstance(stated, str) and stated == expected
    if isinstance(expected, bool) or expected is None:
        return type(stated) is type(expected) and bool(stated == expected)
    return is_number(stated) and bool(stated == expected)


def _words(expected: Any) -> str:
    if isinstance(expected, Maybe):
        return _words(expected.expected)
    if isinstance(expected, Rule):
        return expected.expectation
    if isinstance(expected, Close):
        return shown(expected.value)
    if isinstance(expected, Digest):
        return f"{shown(str(expected))}, the SHA-256 of {expected.of} as it is now"
    if isinstance(expected, dict):
        return f"an object with {', '.join(expected)}"
    return f"an array of {len(expected)}" if isinstance(expected, list) else shown(expected)


def look(value: Any, *path: str | int) -> Any:
    """What stands at ``path``, or None where the value has no such place."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def is_time(value: Any) -> bool:
    """ISO 8601 in UTC, to the second or finer, and a day that the calendar has."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value[:19])
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= 10_000


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _is_count(value: Any) -> bool:
    return is_number(value) and value == int(value) and value > 0


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


TEXT = Rule("text", _is_text)
TIME = Rule("a UTC time such as 2026-01-31T12:00:00+00:00", is_time)
OBJECT = Rule("an object that is not empty", _is_object)
COUNT = Rule("a whole number above 0", _is_count)
POSITIVE = Rule("a finite number above 0", _is_positive)
NOT_NEGATIVE = Rule("a finite number, 0 or more", lambda value: is_number(value) and value >= 0)


def unknown(reason: str) -> Rule:
    """What a value would have to be cannot be recomputed, so no value is accepted; ``reason`` says why."""
    return Rule(f"a value that follows from the files, and {reason}", lambda _value: False)


def shown(value: Any, limit: int = 60) -> str:
    """A value as it would stand in the file, on one line, cut to ``limit`` characters."""
    if isinstance(value, dict | list):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    if isinstance(value, str):
        text = json.dumps(value[: limit + 1])
    else:
        text = json.dumps(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _escape(key: str) -> str:
    return one_line(key, 40).replace("~", "~0").replace("/", "~1")
