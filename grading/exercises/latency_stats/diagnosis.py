"""Which known mistake gives exactly these answers?"""

from collections.abc import Sequence
from dataclasses import dataclass

from grading.exercises.latency_stats.arithmetic import Case, true_answer
from grading.exercises.latency_stats.mistakes import RAISED, Memo, Value, Variant, variants
from grading.judging.function_judge import close

__all__ = ["Diagnosis", "diagnose"]

FEW_SAMPLES = 3


@dataclass(frozen=True)
class Diagnosis:
    """The mistakes that fit, one or two together; ``everywhere`` is false if most wrong answers fit and not all.

    ``raises`` holds the indices of the cases on which code with these mistakes fails.
    """

    ids: tuple[str, ...]
    everywhere: bool = True
    raises: frozenset[int] = frozenset()


def diagnose(quantity: str, cases: Sequence[Case], answers: Sequence[Value]) -> list[Diagnosis]:
    """The known mistakes behind ``answers`` to ``cases``, likeliest first; empty if none is wrong or none fits.

    Preferred is a mistake that gives all answers, right and wrong ones, and fails where the function failed; then one
    that gives all numbers; then one that gives all wrong numbers; at last one that gives most of the wrong numbers.
    One mistake is preferred to two.  Several may fit; other quantities can tell which it is.
    """
    right = [true_answer(case)[quantity] for case in cases]
    numbers = [index for index, answer in enumerate(answers) if not isinstance(answer, str)]
    wrong = [index for index in numbers if not _same(answers[index], right[index])]
    if not wrong:
        return []
    if _constant([answers[index] for index in numbers], [right[index] for index in numbers]):
        return [Diagnosis(("hard-coded",))]
    search = _Search(cases, answers)
    # The case with the most distinct samples separates the mistakes best: what misses there is out at once.
    probe = max(wrong, key=lambda index: len(set(cases[index].samples)))
    for together in (1, 2):
        hits = [variant for variant in variants(quantity, together) if search.fits(variant, probe)]
        found: dict[tuple[str, ...], Diagnosis] = {}
        for where, strict in ((list(range(len(cases))), True), (numbers, False), (wrong, False)):
            # Two mistakes have so many forms that one hit may be chance.
            if together == 1 or len(where) > 1:
                for variant in hits:
                    if variant.ids not in found and all(search.fits(variant, index, strict) for index in where):
                        found[variant.ids] = search.explained(variant)
        if found:
            return list(found.values())
    return search.mostly(variants(quantity), wrong)


class _Search:
    """Compares variants with the given answers."""

    def __init__(self, cases: Sequence[Case], answers: Sequence[Value]) -> None:
        self.cases, self.answers = cases, answers
        self.memo = Memo()

    def fits(self, variant: Variant, index: int, strict: bool = True) -> bool:
        """Not strict: few samples, on which the mistaken code would fail, may have been given a way of their own."""
        answer = variant.answer(self.cases[index], self.memo)
        if not strict and answer == RAISED and len(self.cases[index].samples) <= FEW_SAMPLES:
            return True
        return _same(answer, self.answers[index])

    def mostly(self, candidates: Sequence[Variant], wrong: Sequence[int]) -> list[Diagnosis]:
        """The mistake behind more than half of the wrong answers, if there are several."""
        counts = [sum(self.fits(variant, index) for index in wrong) for variant in candidates]
        best = max(range(len(counts)), key=counts.__getitem__)
        if counts[best] < 2 or 2 * counts[best] <= len(wrong):
            return []
        return [self.explained(candidates[best], everywhere=False)]

    def explained(self, variant: Variant, everywhere: bool = True) -> Diagnosis:
        fails = (index for index, case in enumerate(self.cases) if variant.answer(case, self.memo) == RAISED)
        return Diagnosis(variant.ids, everywhere, frozenset(fails))


def _constant(answers: Sequence[Value], right: Sequence[float]) -> bool:
    """The same number again and again where the right one changes."""
    return len(answers) > 2 and len(set(answers)) == 1 and len(set(right)) > 1


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return close(a, b)
