"""What the judges of a student's function have in common, whatever the function: drawing, reading, refusals, words.

Each exercise in ``grading/exercises`` asks its own questions and knows its own mistakes; it stands on this.
"""

import builtins
import hashlib
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict

from grading.judging.items import ItemResult

__all__ = [
    "RELATIVE_TOLERANCE", "CallRecord", "Mistake", "Reply",
    "catalogue", "close", "drawing", "faults_of", "named_error", "refusal", "unanswered", "why_raised",
]  # fmt: skip

RELATIVE_TOLERANCE = 1e-6
"""Room for float32 arithmetic (6e-8) and for any order of summation; a time rounded to a thousandth of a microsecond is
an order of magnitude further off on the hidden inputs, and every other known mistake much further."""

_LOST = ("TimeLimit", "Died", "NotAsked", "BadAnswer")
"""What the sandbox says of a call that brought no answer back."""


class CallRecord(TypedDict):
    """A question as the sandbox takes it; nothing in it tells what is expected."""

    id: str
    function: str
    container: str
    samples: NotRequired[list[float]]
    batch_size: NotRequired[float]
    arguments: NotRequired[list[Any]]


class Asked(Protocol):
    """A hidden question: ``bad`` is empty for a proper one, else the fault that ValueError is the right answer to."""

    @property
    def bad(self) -> str:
        """The fault, if any."""


@dataclass(frozen=True)
class Mistake:
    """``equals`` says what the answer equals, ``ask`` is the question to ask oneself; ``{q}`` is the quantity."""

    equals: str
    ask: str

    def sentences(self, quantity: str = "") -> str:
        """Both, about one quantity. The texts are fixed, so that no hidden number can get into a message."""
        return f"{self.equals.format(q=quantity)} {self.ask}"


def catalogue(module: str) -> dict[str, Mistake]:
    """The words of all known mistakes: those of ``mistakes.toml`` beside the file ``module``."""
    texts = tomllib.loads(Path(module).with_name("mistakes.toml").read_text(encoding="utf-8"))
    return {key: Mistake(**text) for key, text in texts.items()}


def drawing(seed: str, *names: str) -> random.Random:
    """The random numbers of one part of the hidden questions; they follow from the course's ``seed`` and the names."""
    return random.Random(int.from_bytes(hashlib.sha256("\0".join([seed, *names]).encode()).digest(), "big"))


def close(a: float | None, b: float | None) -> bool:
    """Equal within the tolerance for right answers; None only equals None."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b))


@dataclass(frozen=True)
class Reply:
    """One question with what came back, read with suspicion: it was written next to a student's code.

    ``handed_over`` are the numbers that the function was given, ``answer`` is a dict, or counts as none at all.
    """

    question: Asked
    handed_over: Sequence[float]
    answer: Mapping[str, Any]

    @property
    def answered(self) -> bool:
        """Whether the function returned something."""
        return self.answer.get("ok") is True

    @property
    def error(self) -> str | None:
        """The name of the exception's type; None if there is none, or no answer at all."""
        error = self.answer.get("error")
        kind = error.get("type") if isinstance(error, dict) and not self.answered else None
        return kind if isinstance(kind, str) and kind not in _LOST else None

    @property
    def value_error(self) -> bool:
        """Whether that exception is a ValueError."""
        ancestry = self.answer["error"].get("mro") if self.error else None
        return isinstance(ancestry, list) and "ValueError" in ancestry

    @property
    def changed(self) -> bool:
        """Whether the numbers are known to be others now."""
        after = self.answer.get("samples_after")
        return isinstance(after, list) and after != list(self.handed_over)

    @property
    def kept(self) -> bool:
        """Whether the numbers are known to be the same; where it is not known, neither this nor ``changed`` holds."""
        after = self.answer.get("samples_after")
        return isinstance(after, list) and after == list(self.handed_over)


def unanswered(proper: Sequence[Reply], reached: bool) -> str | None:
    """The mistake that leaves no proper question with an answer; None if one has any, or exceptions differ."""
    kinds = {reply.error for reply in proper}
    if any(reply.answered for reply in proper):
        return None
    if kinds in ({"NotImplementedError"}, {"NotDefined"}):
        return "not-written" if kinds == {"NotImplementedError"} else "no-function"
    return "stopped" if kinds == {None} or not reached else None


def why_raised(raised: Sequence[Reply]) -> str:
    """The mistake behind proper questions without an answer, where all the others are answered rightly."""
    return "stopped" if all(reply.error is None for reply in raised) else "raises-on-good-input"


def named_error(raised: Sequence[Reply]) -> str:
    """The one exception of them all, in brackets, or nothing.

    A class's name is the student's text and could carry anything: only Python's own names are repeated.
    """
    kinds = {reply.error for reply in raised}
    kind = kinds.pop() if len(kinds) == 1 else None
    return f" ({kind})" if kind in vars(builtins) else ""


def faults_of(faulty: Sequence[Reply]) -> tuple[set[str], set[str]]:
    """(faults that were answered, faults that ended in something else than ValueError)."""
    accepted = {reply.question.bad for reply in faulty if reply.answered}
    return accepted, {reply.question.bad for reply in faulty if not reply.answered and not reply.value_error}


def refusal(
    item: str, mistake: str, sentences: str, faults: set[str], words: Mapping[str, str], fraction: float
) -> ItemResult:
    """The item about bad input where it is not refused as it should be; ``words`` name the faults."""
    named = "; ".join(word for fault, word in words.items() if fault in faults)
    half = " Half of the points." if fraction else ""
    return ItemResult.of(item, fraction, f"{sentences} It happened for: {named}.{half}", mistake)
