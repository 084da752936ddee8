"""JSON Schemas of the evidence files, and what a file violates.

``jsonschema`` is imported on first use, since the measuring process never needs it, and without the checker of links
that costs ten times as much: no schema here asks for a format.
"""

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

from deep_learning_cases.errors import EvidenceError, InputError
from deep_learning_cases.ground import late_import

__all__ = ["NAMES", "load", "validate", "violations"]

NAMES = (
    "benchmark",
    "claims",
    "latency",
    "load",
    "policy",
    "quantization",
    "regression",
    "release",
    "target_benchmark",
)
"""The files that have a schema; version 1 of each lies beside this module as ``<name>-1.json``."""

_WORDS = {
    "const": "expected {}",
    "enum": "expected one of {}",
    "type": "expected {}",
    "pattern": "expected text that matches {}",
    "minimum": "expected at least {}",
    "maximum": "expected at most {}",
    "exclusiveMinimum": "expected more than {}",
    "exclusiveMaximum": "expected less than {}",
    "minItems": "expected at least {} items",
    "maxItems": "expected at most {} items",
    "minLength": "expected at least {} characters",
    "maxLength": "expected at most {} characters",
    "minProperties": "expected at least {} keys",
    "maxProperties": "expected at most {} keys",
}


def load(name: str) -> dict[str, Any]:
    """The schema called ``name`` as a fresh dictionary; InputError for a name not in :data:`NAMES`."""
    if name not in NAMES:
        raise InputError(f"there is no schema {name!r}: expected one of {', '.join(NAMES)}; check the name")
    text = resources.files(__name__).joinpath(f"{name}-1.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def violations(value: Any, name: str) -> list[tuple[str, str]]:
    """Everything in ``value`` that schema ``name`` does not allow, in file order of the pointers.

    Each entry is (JSON pointer after RFC 6901, message), for example ``("/runs/0/samples_us/1/3", "'12' is str:
    expected number")``.  A missing or unknown key is pointed at itself, not at the object around it.  NaN and Infinity
    are violations wherever they stand, whatever the schema says.  An empty list means that the value is valid.
    """
    found = {(path, f"{number} is not finite: expected a finite number") for path, number in _not_finite(value, ())}
    for error in _validator(name).iter_errors(value):
        found.update(_explain(error))
    return [(_pointer(path), message) for path, message in sorted(found, key=_order)]


def validate(value: Any, name: str, file: str) -> None:
    """Raise EvidenceError that names ``file`` and the first violation, if there is one."""
    found = violations(value, name)
    if found:
        pointer, message = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise EvidenceError(f"{file} at {pointer or 'the top'}: {message}{more}; make the file again")


@lru_cache(maxsize=len(NAMES))
def _validator(name: str) -> Any:
    with late_import.put_off():
        from jsonschema import Draft202012Validator

    return Draft202012Validator(load(name))


def _explain(error: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    path, keyword, allowed = tuple(error.absolute_path), error.validator, error.validator_value
    if keyword == "required":
        for key in allowed:
            if key not in error.instance:
                yield (*path, key), "the key is missing: expected it here"
    elif keyword == "additionalProperties" and allowed is False:
        for key in error.instance:
            if key not in error.schema.get("properties", {}):
                yield (*path, key), f"the key {_short(key)} is unknown: expected only the keys of the format"
    else:
        yield path, _message(error.instance, keyword, allowed, error.message)


def _message(value: Any, keyword: str, allowed: Any, otherwise: str) -> str:
    if keyword not in _WORDS:
        return otherwise if len(otherwise) <= 160 else f"{_short(value)} does not satisfy {keyword!r}"
    if keyword in ("enum", "type") and isinstance(allowed, list):
        allowed_words = ", ".join(str(choice) for choice in allowed)
    else:
        allowed_words = str(allowed) if keyword == "type" else _short(allowed)
    kind = f" is {type(value).__name__}" if keyword == "type" else ""
    size = f" has {len(value)}" if keyword.endswith(("Items", "Length", "Properties")) else ""
    return f"{_short(value)}{kind}{size}: {_WORDS[keyword].format(allowed_words)}"


def _short(value: Any, limit: int = 60) -> str:
    """``repr`` of a value, cut so that a message stays one readable line."""
    if isinstance(value, list | dict) and len(value) > 8:
        return f"{'an array' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = repr(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _not_finite(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], float]]:
    """NaN passes every comparison of a schema ("minimum" asks whether it is smaller), so it is searched apart."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _not_finite(child, (*path, key))
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from _not_finite(child, (*path, index))


def _order(found: tuple[tuple[Any, ...], str]) -> Any:
    path, message = found
    return [(isinstance(part, str), part if isinstance(part, int) else 0, str(part)) for part in path], message


def _pointer(path: tuple[Any, ...]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
