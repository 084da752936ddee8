"""What came back from one call, read with suspicion: it was written next to a student's code."""

import math
from dataclasses import dataclass
from typing import Any

from grading.exercises.latency_stats.arithmetic import Case, true_answer
from grading.exercises.latency_stats.mistakes import Value
from grading.exercises.latency_stats.questions import Fixture
from grading.judging.function_judge import Reply

__all__ = ["QUANTITIES", "Reading", "read"]

QUANTITIES = ("n", "p50_us", "p95_us", "images_per_second")
_TYPE_MISTAKES = {"missing": "missing-key", "str": "returns-text", "bool": "returns-bool", "bool_": "returns-bool"}


@dataclass(frozen=True)
class Reading(Reply):
    """One fixture with its answer.

    ``values`` holds a number per quantity, or the id of a mistake of form where there is none; it is empty if the
    function raised.
    """

    question: Fixture
    case: Case
    truth: dict[str, float]
    values: dict[str, Value]

    @property
    def used_library(self) -> bool:
        """Whether the function called the library's own summary."""
        return self.answer.get("used_library") is True


def read(fixture: Fixture, answer: Any) -> Reading:
    """Read one answer; whatever has not the expected form counts as no answer."""
    answer = answer if isinstance(answer, dict) else {}
    values = {quantity: _value(answer, quantity) for quantity in QUANTITIES} if answer.get("ok") is True else {}
    numbers = {quantity: float(value) for quantity, value in values.items() if not isinstance(value, str)}
    case = Case(fixture.samples, int(fixture.batch_size), numbers)
    return Reading(fixture, fixture.samples, answer, case, {} if fixture.bad else true_answer(case), values)


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
