"""From whatever a student's function returned to plain JSON numbers, without trusting any method of it."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

KEYS = ("n", "p50_us", "p95_us", "images_per_second")
MISSING = "missing"
MOST_ITEMS = 1000
_MAX_INTEGER_BITS = 1000


def describe(value: Any) -> dict[str, Any]:
    """The four fields of an answer as numbers, null (not finite), "missing" or the name of a type that is no number."""
    if not isinstance(value, dict):
        mapping = _as_mapping(value)
        if mapping is None:
            return {"value": None, "types": {}, "notes": {}}
    else:
        mapping = value
    fields: dict[str, Any] = {}
    types: dict[str, str] = {}
    notes: dict[str, str] = {}
    for key in KEYS:
        try:
            item = dict.__getitem__(mapping, key) if isinstance(mapping, dict) else mapping[key]
        except Exception:
            fields[key] = MISSING
            continue
        types[key] = type_name(item)
        number = plain(item)
        if number is None:
            fields[key] = types[key]
        elif isinstance(number, float) and not math.isfinite(number):
            fields[key] = None
            notes[key] = "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
        else:
            fields[key] = number
    return {"value": fields, "types": types, "notes": notes}


def items(value: Any) -> list[Any] | None:
    """The members of a list, tuple or one-dimensional array as numbers, null (None, NaN) or the name of their type.

    None for anything else.
    """
    import numpy as np

    if isinstance(value, np.ndarray):
        value = np.ndarray.tolist(value) if value.ndim == 1 else None
    if not isinstance(value, list | tuple):
        return None
    members = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
    return [_item(member) for member, _ in zip(members, range(MOST_ITEMS + 1), strict=False)]


def _item(member: Any) -> int | float | str | None:
    if member is None:
        return None
    number = plain(member)
    if isinstance(number, float) and not math.isfinite(number):
        return None if math.isnan(number) else "inf"
    return type_name(member) if number is None else number


def _as_mapping(value: Any) -> Any:
    from collections.abc import Mapping

    return value if isinstance(value, Mapping) else None


def plain(value: Any) -> int | float | None:
    """A plain int or float with the value of ``value``; None for anything that is not a number (a bool is none)."""
    try:
        return _plain(value)
    except Exception:
        return None


def _plain(value: Any) -> int | float | None:
    if isinstance(value, bool | str | bytes | bytearray | complex):
        return None
    if isinstance(value, int):
        # The base's own slots: a subclass cannot lie about its value.
        return int.__add__(value, 0) if int.bit_length(value) <= _MAX_INTEGER_BITS else None
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    if isinstance(value, Fraction | Decimal):
        return float(value)
    return _array_number(value)


def _array_number(value: Any) -> int | float | None:
    import numpy as np

    if isinstance(value, np.ndarray):
        value = np.ndarray.__getitem__(value, ()) if value.ndim == 0 else None
    if isinstance(value, np.bool_):
        return None
    if isinstance(value, np.integer):
        return int(np.integer.__int__(value)) if hasattr(np.integer, "__int__") else int(value)
    if isinstance(value, np.floating):
        return float(np.float64(value))
    if type(value).__module__.partition(".")[0] == "torch" and getattr(value, "ndim", 1) == 0:
        return _plain(value.item())
    return None


def type_name(value: Any) -> str:
    """The name of the value's type, bounded and printable."""
    return clean_name(type(value))


def clean_name(kind: type) -> str:
    """A class's own name, taken from the type itself so that a metaclass cannot answer for it."""
    try:
        name = type.__dict__["__name__"].__get__(kind)
    except Exception:
        return "object"
    text = name if isinstance(name, str) else "object"
    return text[:60] if text.isidentifier() and text.isascii() else "object"


def samples_after(held: Any, most: int) -> list[float | int | str | None]:
    """The input as it is after the call, for the comparison that shows whether it was changed."""
    try:
        values = list(held.tolist() if hasattr(held, "tolist") else held)[: most + 1]
    except Exception:
        return ["unreadable"]
    return [_sample(value) for value in values]


def _sample(value: Any) -> float | int | str | bool | None:
    number = plain(value)
    if number is not None:
        return number if math.isfinite(number) else repr(number)
    if value is None or isinstance(value, bool):
        return value
    return f"type:{type_name(value)}"
