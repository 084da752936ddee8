"""What comes back from a call is checked like any untrusted input before a judge sees it."""

import builtins
import json
import math
import re
from typing import Any

__all__ = ["KEYS", "checked", "failed", "known_names"]

KEYS = ("n", "p50_us", "p95_us", "images_per_second")
_WORD = re.compile(r"[A-Za-z_]\w{0,59}", re.ASCII)
_LARGEST_INTEGER = 1 << 1000
_MOST_ITEMS = 1001
_COMMON_NAMES = {
    "ndarray", "float64", "float32", "float16", "int64", "int32", "uint8", "longdouble", "NoneType", "generator",
    "coroutine", "function", "dict_values", "dict_keys", "dict_items", "Series", "DataFrame", "Tensor", "Fraction",
    "Decimal", "method", "module", "mappingproxy", "defaultdict", "OrderedDict", "SimpleNamespace", "array", "deque",
    "StatisticsError", "LibrarySummaryOff", "NotDefined", "LinAlgError", "AxisError", "InvalidOperation",
    "DivisionByZero", "JSONDecodeError", "ValidationError", "InputError", "DeepLearningCasesError", "missing", "inf",
}  # fmt: skip


def known_names(sources: list[str]) -> frozenset[str]:
    """Names that may be shown: Python's own and words of the student's text, which stood there before any hidden input.

    A class made while a hidden input is in hand could carry it out in its name.
    """
    words = {word for source in sources for word in _WORD.findall(source)}
    return frozenset(set(dir(builtins)) | _COMMON_NAMES | words)


def failed(kind: str) -> dict[str, Any]:
    """The answer of a call that gave none: TimeLimit, Died, NotAsked, BadAnswer."""
    return {
        "ok": False,
        "value": None,
        "types": {},
        "notes": {},
        "items": None,
        "returned": None,
        "error": {"type": kind, "mro": []},
        "samples_after": None,
        "used_library": False,
    }


def checked(line: bytes, known: frozenset[str], most_samples: int) -> dict[str, Any]:
    """The answer in ``line`` with every field of its proper type; ``BadAnswer`` where it is not an answer at all."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return failed("BadAnswer")
    if not isinstance(raw, dict):
        return failed("BadAnswer")
    answer = failed("BadAnswer")
    answer["used_library"] = raw.get("used_library") is True
    answer["samples_after"] = _samples(raw.get("samples_after"), most_samples)
    error = raw.get("error")
    if raw.get("ok") is not True:
        if isinstance(error, dict):
            ancestors = error.get("mro")
            names = ancestors[:12] if isinstance(ancestors, list) else []
            answer["error"] = {"type": _name(error.get("type"), known), "mro": [_name(name, known) for name in names]}
        return answer
    answer |= {"ok": True, "error": None, "returned": _name(raw.get("returned"), known)}
    value, notes, types, items = (raw.get(key) for key in ("value", "notes", "types", "items"))
    if isinstance(items, list):
        answer["items"] = [_number_or_name(item, known) for item in items[:_MOST_ITEMS]]
    if isinstance(value, dict):
        answer["value"] = {key: _number_or_name(value.get(key, "missing"), known) for key in KEYS}
    if isinstance(notes, dict):
        answer["notes"] = {key: notes[key] for key in KEYS if notes.get(key) in ("nan", "inf", "-inf")}
    if isinstance(types, dict):
        answer["types"] = {key: _name(types[key], known) for key in KEYS if key in types}
    return answer


def _name(value: Any, known: frozenset[str]) -> str:
    return value if isinstance(value, str) and value in known else "a class of its own"


def _number_or_name(value: Any, known: frozenset[str]) -> int | float | str | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_INTEGER else "int"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return _name(value, known)
    return None


def _samples(value: Any, most: int) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    return [item if item is None or isinstance(item, bool | int | float | str) else "?" for item in value[: most + 1]]
