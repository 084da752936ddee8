"""What an argument has to be: one check for each kind, so that NumPy's numbers are as welcome everywhere."""

import math

import numpy as np

from deep_learning_cases.errors import InputError

__all__ = ["positive", "whole"]


def positive(value: object, what: str, *, zero: bool = False) -> float:
    """``value`` as a finite float above 0 (or at least 0 with ``zero``); InputError otherwise."""
    expected = f"a finite number {'of at least' if zero else 'above'} 0"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{what} is {value!r}: expected {expected}")
    number = float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"{what} is {number:g}: expected {expected}")
    return number


def whole(value: object, what: str, least: int = 1) -> int:
    """``value`` as an int of at least ``least``; InputError otherwise (True and 8.0 are not whole numbers)."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} is {value!r}: expected a whole number of at least {least}")
    return int(value)
