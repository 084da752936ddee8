"""Which known mistake gives exactly these answers?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grading.mistake_rules import Case, true_answer
from grading.mistakes import Value, Variant, variants

__all__ = ["RELATIVE_TOLERANCE", "Diagnosis", "close", "diagnose"]

RELATIVE_TOLERANCE = 1e-6
"""Room for float32 arithmetic (6e-8) and for any order of summation; a time rounded to a thousandth of a microsecond is
an order of magnitude further off on the hidden inputs, and every other known mistake much further."""


@dataclass(frozen=True)
class Diagnosis:
    """The mistakes that fit, one or two together; ``everywhere`` is false if most wrong answers fit and not all.

    ``raises`` holds the indices of the cases on which code with these mistakes fails.
    """

    ids: tuple[str, ...]
    everywhere: bool = True
    raises: frozenset[int] = frozenset()


def close(a: float, b: float) -> bool:
    """Equal within the tolerance for right answers."""
    return abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b))


def diagnose(quantity: str, cases: Sequence[Case], answers: Sequence[Value]) -> Diagnosis | None:
    """The known mistake behind ``answers`` to ``cases``; None if no number is wrong, or no mistake fits.

    Preferred is a mistake that gives all answers, right and wrong ones, and fails where the function failed; then one
    that gives all numbers; then one that gives all wrong numbers; at last one that gives most of the wrong numbers.
    One mistake is preferred to two.
    """
    right = [true_answer(case)[quantity] for case in cases]
    numbers = [index for index, answer in enumerate(answers) if not isinstance(answer, str)]
    wrong = [index for index in numbers if not _same(answers[index], right[index])]
    if not wrong:
        return None
    if _constant([answers[index] for index in numbers], [right[index] for index in numbers]):
        return Diagnosis(("hard-coded",))
    # The case with the most distinct samples separates the mistakes best: what misses there is out at once.
    probe = max(wrong, key=lambda index: len(set(cases[index].samples)))
    for together in (1, 2):
        hits = [variant for variant in variants(quantity, together) if _fits(variant, cases, answers, [probe])]
        for where in (range(len(cases)), numbers, wrong):
            # Two mistakes have so many forms that one hit may be chance.
            if together > 1 and len(where) < 2:
                continue
            found = next((variant for variant in hits if _fits(variant, cases, answers, where)), None)
            if found:
                return _explained(found, cases)
    return _mostly(variants(quantity), cases, answers, wrong)


def _explained(variant: Variant, cases: Sequence[Case], everywhere: bool = True) -> Diagnosis:
    raises = frozenset(index for index, case in enumerate(cases) if isinstance(variant.answer(case), str))
    return Diagnosis(variant.ids, everywhere, raises)


def _constant(answers: Sequence[Value], right: Sequence[float]) -> bool:
    """The same number again and again where the right one changes."""
    return len(answers) > 2 and len(set(answers)) == 1 and len(set(right)) > 1


def _mostly(
    candidates: Sequence[Variant], cases: Sequence[Case], answers: Sequence[Value], wrong: Sequence[int]
) -> Diagnosis | None:
    """The mistake behind more than half of the wrong answers, if there are several."""
    counts = [sum(_fits(variant, cases, answers, [index]) for index in wrong) for variant in candidates]
    best = max(range(len(counts)), key=counts.__getitem__)
    if counts[best] < 2 or 2 * counts[best] <= len(wrong):
        return None
    return _explained(candidates[best], cases, everywhere=False)


def _fits(variant: Variant, cases: Sequence[Case], answers: Sequence[Value], where: Iterable[int]) -> bool:
    return all(_same(variant.answer(cases[index]), answers[index]) for index in where)


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return close(a, b)
