"""The catalogue of known mistakes: what each would answer, and what to say about it.

The words stand in ``mistakes.toml``, the arithmetic in ``rules``; here the two meet.  Texts are fixed, only the
name of the quantity is put in, so that no hidden number can get into a message.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from grading.exercises.latency_stats.arithmetic import Case, Finish, Rule, View
from grading.exercises.latency_stats.rules import FINISHES, RULES
from grading.exercises.latency_stats.views import VIEWS
from grading.judging.function_judge import catalogue

__all__ = ["CATALOGUE", "RAISED", "Memo", "Value", "Variant", "sentences", "variants"]

RAISED = "raised"
Value = float | str
"""A number, or RAISED where a function raises instead of answering."""

_FAILURES = (ArithmeticError, LookupError, ValueError)
"""How mistaken code fails; statistics' and NumPy's complaints about empty input are ValueErrors."""


CATALOGUE = catalogue(__file__)


def sentences(mistake: str, quantity: str) -> str:
    """The two sentences of a mistake about one quantity."""
    return CATALOGUE[mistake].sentences(quantity)


class Variant(NamedTuple):
    """One way to make one mistake, or two together (``ids`` in the order of the calculation)."""

    ids: tuple[str, ...]
    view: View
    rule: Rule
    finish: Finish

    def answer(self, case: Case, memo: "Memo | None" = None) -> Value:
        """What code with this mistake would answer; RAISED where it would fail.

        ``memo`` keeps what is computed from the same samples by the same rule, which many variants share.
        """
        memo = Memo() if memo is None else memo
        number = memo.number(self.view, self.rule, case)
        return number if isinstance(number, str) else _number(lambda: self.finish(number, case))


class Memo:
    """Views and rules already computed; a search tries thousands of variants that share them."""

    def __init__(self) -> None:
        self._views: dict[tuple[int, View], Sequence[float] | None] = {}
        self._numbers: dict[tuple[int, View, Rule], Value] = {}

    def number(self, view: View, rule: Rule, case: Case) -> Value:
        """What the rule makes of the samples that the view uses; RAISED where either fails."""
        key = (id(case), view, rule)
        if key not in self._numbers:
            samples = self._samples(view, case)
            self._numbers[key] = RAISED if samples is None else _number(lambda: rule(samples, case))
        return self._numbers[key]

    def _samples(self, view: View, case: Case) -> Sequence[float] | None:
        key = (id(case), view)
        if key not in self._views:
            try:
                self._views[key] = view(case.samples)
            except _FAILURES:
                self._views[key] = None
        return self._views[key]


def _number(compute: Callable[[], float]) -> Value:
    try:
        number = float(compute())
    except _FAILURES:
        return RAISED
    return number if abs(number) < float("inf") else RAISED


@cache
def variants(quantity: str, together: int = 1) -> tuple[Variant, ...]:
    """All ways to make ``together`` (1 or 2) known mistakes in one quantity, in the order they are to be tried.

    A wrong rule comes before a wrong finish, and that before a wrong choice of samples.
    """
    found: list[Variant] = []
    for wrong_view, wrong_finish in ((False, False), (False, True), (True, False), (True, True)):
        wrong_rule = together - wrong_view - wrong_finish
        if wrong_rule in (0, 1):
            views = [view for view in _views(quantity) if (view[0] is not None) == wrong_view]
            finishes = [finish for finish in FINISHES[quantity] if (finish[0] is not None) == wrong_finish]
            rules = [rule for rule in RULES[quantity] if (rule[0] is not None) == wrong_rule]
            found += _combinations(rules, views, finishes)
    return tuple(found)


def _views(quantity: str) -> list[tuple[str | None, View]]:
    return [view for view in VIEWS if quantity != "n" or view[0] in (None, "drops-ties")]


def _combinations(
    rules: list[tuple[str | None, Rule]],
    views: list[tuple[str | None, View]],
    finishes: list[tuple[str | None, Finish]],
) -> Iterator[Variant]:
    """One of each, unless the same mistake would be made in two places. There are thousands: nothing is made twice."""
    for rule_id, rule in rules:
        for view_id, view in views:
            for finish_id, finish in finishes:
                ids = tuple(i for i in (view_id, rule_id, finish_id) if i is not None)
                if len(set(ids)) == len(ids):
                    yield Variant(ids, view, rule, finish)
