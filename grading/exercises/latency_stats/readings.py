"""What came back from one call, read with suspicion: it was written next to a student's code."""

import math
from dataclasses import dataclass
from typing import Any

from grading.exercises.latency_stats.arithmetic import Case, true_answer
from grading.exercises.latency_stats.mistakes import Value
from grading.exercises.latency_stats.questions import Fixture

__all__ = ["QUANTITIES", "Reading", "read"]

QUANTITIES = ("n", "p50_us", "p95_us", "images_per_second")
_TYPE_MISTAKES = {"missing": "missing-key", "str": "returns-text", "bool": "returns-bool", "bool_": "returns-bool"}

_LOST = ("TimeLimit", "Died", "NotAsked", "BadAnswer")
"""What the sandbox says of a call that brought no answer back."""


@dataclass(frozen=True)
class Reading:
    """One fixture with its answer.

    ``values`` holds a number per quantity, or the id of a mistake of form where there is none; it is empty if the
    function raised.  ``error`` is the exception's type name, None if there is no answer at all.  ``changed`` tells
    that the samples were altered, ``kept`` that they were not; neither holds where it is not known.
    """

    fixture: Fixture
    case: Case
    truth: dict[str, float]
    answered: bool
    values: dict[str, Value]
    error: str | None
    value_error: bool
    changed: bool
    kept: bool
    used_library: bool


def read(fixture: Fixture, answer: Any) -> Reading:
    """Read one answer; whatever has not the expected form counts as no answer."""
    answer = answer if isinstance(answer, dict) else {}
    answered = answer.get("ok") is True
    values = {quantity: _value(answer, quantity) for quantity in QUANTITIES} if answered else {}
    numbers = {quantity: float(value) for quantity, value in values.items() if not isinstance(value, str)}
    case = Case(fixture.samples, int(fixture.batch_size), numbers)
    after = answer.get("samples_after")
    same = _same(fixture, after) if isinstance(after, list) and not fixture.bad else None
    kind, ancestry = _error(answer.get("error"))
    return Reading(
        fixture=fixture,
        case=case,
        truth={} if fixture.bad else true_answer(case),
        answered=answered,
        values=values,
        error=None if answered else kind,
        value_error="ValueError" in ancestry,
        changed=same is False,
        kept=same is True,
        used_library=answer.get("used_library") is True,
    )


def _value(answer: dict[str, Any], quantity: str) -> Value:
    """A finite number, or the id of the mistake of form."""
    fields = answer.get("value")
    if not isinstance(fields, dict):
        return "returns-nothing" if answer.get("returned") == "NoneType" else "returns-another-type"
    value = fields.get(quantity, "missing")
    if isinstance(value, bool):
        return "returns-bool"
    if isinstance(value, int | float):
        return _finite(value)
    if value is None:
        return "returns-nan"
    return _TYPE_MISTAKES.get(value, "returns-not-a-number") if isinstance(value, str) else "returns-not-a-number"


def _finite(value: float) -> Value:
    try:
        return value if math.isfinite(value) else "returns-nan"
    except OverflowError:
        return "returns-nan"


def _error(error: Any) -> tuple[str | None, list[Any]]:
    if not isinstance(error, dict) or not isinstance(error.get("type"), str) or error["type"] in _LOST:
        return None, []
    ancestry = error.get("mro")
    return error["type"], ancestry if isinstance(ancestry, list) else []


def _same(fixture: Fixture, after: list[Any]) -> bool:
    return len(after) == len(fixture.samples) and all(a == b for a, b in zip(after, fixture.samples, strict=True))
