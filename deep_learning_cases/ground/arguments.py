"""What an argument has to be, one check for each kind: NumPy's numbers are welcome everywhere, True and False nowhere.

What is kept is Python's own int or float, so that a record stays JSON.  A measuring process imports this module, so it
knows NumPy's numbers by the classes of the standard library that they are registered with.
"""

import math
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from deep_learning_cases.errors import InputError, one_line

__all__ = ["distinct_sizes", "fraction", "is_number", "number", "positive", "settle", "shown", "whole"]

LARGEST = 2**63 - 1
"""What NumPy counts with: no array, file or loop of any machine is longer."""


def whole(value: object, what: str, least: int = 1, most: int = LARGEST) -> int:
    """``value`` as an int from ``least`` to ``most``; InputError otherwise (True and 8.0 are not whole numbers)."""
    count = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if count is None or not least <= count <= most:
        bounded = most < LARGEST or (count is not None and count > most)
        span = f"from {least} to {most}" if bounded else f"of at least {least}"
        raise InputError(f"{what} is {shown(value)}: expected a whole number {span}; change it")
    return count


def positive(value: object, what: str, *, zero: bool = False, most: float = LARGEST) -> float:
    """``value`` as a finite float above 0 (or at least 0 with ``zero``), at most ``most``; InputError otherwise."""
    found = number(value)
    if not (0 < found <= most or (zero and found == 0)):
        bounded = most < LARGEST or most < found < math.inf
        span = f"{'of at least' if zero else 'above'} 0{f', at most {most:g}' if bounded else ''}"
        raise InputError(f"{what} is {shown(value)}: expected a finite number {span}; change it")
    return found


def fraction(value: object, what: str) -> float:
    """``value`` as a float strictly between 0 and 1; InputError otherwise."""
    found = number(value)
    if not 0 < found < 1:
        raise InputError(f"{what} is {shown(value)}: expected more than 0 and less than 1; write 0.95 for 95 %")
    return found


def distinct_sizes(value: Any, most: int = LARGEST) -> list[int]:
    """Distinct whole numbers from 1 in the order given, one alone as a list of one; InputError otherwise."""
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    sizes = [whole(size, "a batch size", 1, most) for size in given]
    if not sizes or len(set(sizes)) != len(sizes):
        raise InputError(f"the batch sizes are {shown(sizes)}: expected at least one, none twice; change them")
    return sizes


def settle(record: object, **values: object) -> None:
    """Put checked values into a frozen dataclass, from its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def number(value: object) -> float:
    """A number as a float, also one of NumPy's: NaN for anything else, infinite for one that no float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_number(value: object, least: float = -sys.float_info.max) -> bool:
    """A finite JSON number of at least ``least``; ``true`` and ``false`` are none."""
    return isinstance(value, int | float) and least <= number(value) < math.inf


def shown(value: object) -> str:
    """A value as Python writes it, on one line of at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = f"a {type(value).__name__} too long to show"
    return one_line(text, 60)
