"""Untrusted evidence, opened safely: regular files only, bounded, read once; and what is wrong with it, as findings.

Nothing here raises for what a file holds.  A damaged file is a :class:`Finding`, because the reader (a student, a
grader) wants all that is wrong and not the first exception.
"""

import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deep_learning_cases import files

__all__ = [
    "AREAS",
    "OTHER_AREAS",
    "Close",
    "Document",
    "Finding",
    "Maybe",
    "Rule",
    "compare",
    "one_line",
    "parse",
    "read_regular",
    "shown",
]

AREAS = (
    "benchmark_record", "benchmark_linkage", "benchmark_summary",
    "regression", "release_linkage", "release_limits", "release_claims",
)  # fmt: skip
"""What a finding is about: the parts of the evidence that are judged apart."""

OTHER_AREAS = ("report", "target_benchmark", "package")
"""Files that are made from the evidence and handed on: wrong ones are named, and say nothing about the evidence."""

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
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return None, "is a symbolic link: expected a regular file"
        with open(os.open(path, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None, "is not a regular file"
            content = stream.read(max_bytes + 1)
    except FileNotFoundError:
        return None, "is missing"
    except OSError as error:
        kind = "is a folder: expected a file" if path.is_dir() else f"cannot be read ({error.strerror})"
        return None, kind
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
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return type(stated) is type(expected) and bool(stated == expected)
    return is_number(stated) and bool(stated == expected)


def _words(expected: Any) -> str:
    if isinstance(expected, Maybe):
        return _words(expected.expected)
    if isinstance(expected, Rule):
        return expected.expectation
    if isinstance(expected, Close):
        return shown(expected.value)
    if isinstance(expected, dict):
        return f"an object with {', '.join(expected)}"
    return f"an array of {len(expected)}" if isinstance(expected, list) else shown(expected)


def is_number(value: Any) -> bool:
    """A finite JSON number; ``true`` and ``false`` are none, though Python counts them as integers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_time(value: Any) -> bool:
    """ISO 8601 in UTC, to the second or finer."""
    if not isinstance(value, str) or len(value) > 40 or "T" not in value:
        return False
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False
    offset = moment.utcoffset()
    return offset is not None and not offset


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


def one_line(error: BaseException | str, limit: int = 160) -> str:
    """The text of an error, on one line and cut to ``limit`` characters, without what a terminal would act upon."""
    text = " ".join(str(error).split()) or type(error).__name__
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= limit else f"{printable[: limit - 3]}..."


def _escape(key: str) -> str:
    return one_line(key, 40).replace("~", "~0").replace("/", "~1")
