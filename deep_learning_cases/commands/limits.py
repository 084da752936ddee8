"""How large a number on the command line may be: beyond that it is a slip of the finger, and nothing should try."""

from typing import TypeVar

from deep_learning_cases.errors import InputError

__all__ = ["MOST_SECONDS", "at_most"]

MOST_SECONDS = 3600.0
"""Of one wait for an answer."""

Number = TypeVar("Number", int, float)


def at_most(value: Number, most: Number, what: str) -> Number:
    """``value``; InputError where it is above ``most``."""
    if value > most:
        shown = str(value) if len(str(value)) <= 24 else f"a number of {len(str(value))} digits"
        raise InputError(f"{what} is {shown}: expected at most {most:,.0f}; change it")
    return value
