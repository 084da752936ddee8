"""The gate: may the candidate be released?  A pure function of numbers and limits, and a reason for each limit."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.expectation import ROUNDING, is_number, look
from deep_learning_cases.models import artefacts

__all__ = ["LIMITS", "Reason", "Verdict", "decide"]

LIMITS = {"model_bytes_limit": artefacts.MAX_INT8_BYTES, "loss_limit_pp": 1.0}
"""Of the candidate's file in bytes (not of a process) and of the accuracy lost in percentage points."""


_SMALLER = "quantize again, then regression and measuring again: every converted file is a new model"
_BETTER = "train or calibrate again, then convert, run the regression and measure again: a new hash is not enough"
_MORE = "collect more labelled test images; 500 leave this open"
_COUNT = "count again from the files"


@dataclass(frozen=True)
class Reason:
    """One limit and what was found: ``outcome`` is pass, fail or inconclusive; ``redo`` is empty for a pass."""

    quantity: str
    outcome: str
    value: float | None
    limit: float
    unit: str
    message: str
    redo: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.message}" + (f"; {self.redo}" if self.redo else "")


@dataclass(frozen=True)
class Verdict:
    """``decision`` is release or reject; every limit has a reason, met or not."""

    decision: str
    reasons: tuple[Reason, ...]

    @property
    def outcome(self) -> str:
        """The worst of the reasons: fail, then inconclusive, then pass."""
        outcomes = {reason.outcome for reason in self.reasons}
        return next(outcome for outcome in ("fail", "inconclusive", "pass") if outcome in outcomes)

    def as_json(self) -> dict[str, Any]:
        """JSON values, with the outcome."""
        return asdict(self) | {"outcome": self.outcome}


def decide(facts: Mapping[str, Any], limits: Mapping[str, float] = LIMITS) -> Verdict:
    """May the candidate be released?  A pure function: numbers and limits in, decision and reasons out.

    Args:
        facts: ``model_bytes`` (of the candidate's file), ``loss_pp`` (accuracy lost, percentage points, negative for a
            gain) and, if known, ``loss_interval_pp`` {``low``, ``high``}.  A fact that is missing or not a finite
            number counts as a limit not met.
        limits: ``model_bytes_limit`` and ``loss_limit_pp``; a value equal to its limit meets it.

    The measured loss decides.  Where its paired interval includes the limit there is an inconclusive reason besides:
    the images that were looked at do not settle on which side the true loss lies.

    Raises InputError for limits that are missing or not finite numbers.
    """
    for name in LIMITS:
        if not is_number(limits.get(name)):
            raise InputError(f"the limit {name} is {limits.get(name)!r}: expected a number; take release.LIMITS")
    reasons = [
        _limit("model_bytes", "the candidate's file has", facts, limits["model_bytes_limit"], "bytes", _SMALLER),
        _limit("loss_pp", "the candidate loses", facts, limits["loss_limit_pp"], "percentage points", _BETTER),
    ]
    low, high = (look(facts.get("loss_interval_pp"), end) for end in ("low", "high"))
    limit = limits["loss_limit_pp"]
    if is_number(low) and is_number(high) and low <= limit <= high:
        message = f"the 95 % interval of the loss, {low:+.2f} to {high:+.2f} percentage points, includes {limit:g}"
        reasons.append(Reason("loss_interval_pp", "inconclusive", high, limit, "percentage points", message, _MORE))
    decision = "reject" if any(reason.outcome == "fail" for reason in reasons) else "release"
    return Verdict(decision, tuple(reasons))


def _limit(quantity: str, words: str, facts: Mapping[str, Any], limit: float, unit: str, redo: str) -> Reason:
    value = facts.get(quantity)
    if not is_number(value):
        return Reason(
            quantity, "fail", None, limit, unit, f"{quantity} is not known: expected at most {limit:g}", _COUNT
        )
    number: float = value if value is not None else math.nan
    # 5 of 500 images are 1 point, and 100 * (0.990 - 0.980) is a little more than 1.
    met = number <= limit + ROUNDING
    shown, bound = (f"{number:,.4g}", f"{limit:g}") if unit != "bytes" else (f"{number:,.0f}", f"{limit:,.0f}")
    message = f"{words} {shown} {unit}, limit {bound}"
    return Reason(quantity, "pass" if met else "fail", number, limit, unit, message, "" if met else redo)
