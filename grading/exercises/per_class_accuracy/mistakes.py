"""What known mistakes of ``per_class_accuracy`` would answer; the words stand in ``mistakes.toml``."""

import math
from collections.abc import Callable, Iterator, Sequence

from grading.exercises.per_class_accuracy.questions import Question
from grading.judging.function_judge import catalogue, close

__all__ = ["ABSENT", "CATALOGUE", "Answer", "diagnose", "sentences"]

Answer = list[float | None]
Rule = Callable[[Question], Answer]
Finish = Callable[[float], float]

CATALOGUE = catalogue(__file__)

ABSENT = {0.0: "absent-as-zero", 1.0: "absent-as-one"}
"""What a class without images is given by mistake."""


def sentences(mistake: str) -> str:
    """The two sentences of a mistake: what the answer equals, and what to ask oneself."""
    return CATALOGUE[mistake].sentences()


def diagnose(questions: Sequence[Question], answers: Sequence[Answer]) -> str | None:
    """The mistake that gives exactly these answers, the likeliest first; None if no known one does."""
    for mistake, rule, finish in _variants():
        if all(_same(rule, finish, question, answer) for question, answer in zip(questions, answers, strict=True)):
            return mistake
    return "hard-coded" if len(answers) > 2 and _constant(answers) else None


def _constant(answers: Sequence[Answer]) -> bool:
    shortest = min(map(len, answers))
    return shortest > 0 and len({tuple(answer[:shortest]) for answer in answers}) == 1


def _variants() -> Iterator[tuple[str, Rule, Finish | None]]:
    """One mistake alone before two together; of two, the wrong rule is the one that is named."""
    for mistake, rule in _RULES:
        yield mistake, rule, None
    for mistake, finish in _FINISHES:
        yield mistake, _right, finish
    for mistake, rule in _RULES:
        for _, finish in _FINISHES:
            yield mistake, rule, finish


def _same(rule: Rule, finish: Finish | None, question: Question, answer: Answer) -> bool:
    expected = rule(question)
    if finish is not None:
        expected = [None if value is None else finish(value) for value in expected]
    return len(expected) == len(answer) and all(map(close, expected, answer))


def _right(question: Question) -> Answer:
    return list(question.truth)


def _ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Answer:
    return [a / b if b else None for a, b in zip(numerators, denominators, strict=True)]


def _all_images(question: Question) -> list[float]:
    return [float(len(question.labels))] * question.classes


def _overall(question: Question) -> Answer:
    return [sum(question.correct) / len(question.labels)] * question.classes


def _f1(question: Question) -> Answer:
    sums = [a + b for a, b in zip(question.images, question.predicted, strict=True)]
    return _ratio([2 * right for right in question.correct], sums)


def _overlap(question: Question) -> Answer:
    counts = zip(question.images, question.predicted, question.correct, strict=True)
    return _ratio(question.correct, [a + b - right for a, b, right in counts])


def _against_the_rest(question: Question) -> Answer:
    counts = zip(question.images, question.predicted, question.correct, strict=True)
    n = len(question.labels)
    return [(n - (a - right) - (b - right)) / n for a, b, right in counts]


def _cumulative(of: Callable[[Question], Sequence[int]], under: Callable[[Question], Sequence[int]]) -> Rule:
    return lambda question: _ratio(of(question), under(question))


def _running(counts: Sequence[int]) -> list[int]:
    return [sum(counts[: place + 1]) for place in range(len(counts))]


def _by_appearance(question: Question) -> Answer:
    return [question.truth[label] for label in dict.fromkeys(question.labels)]


def _ordered(reverse: bool) -> Rule:
    # A class without images has no size to sort by and goes last.
    return lambda question: sorted(
        question.truth, key=lambda value: math.inf if value is None else -value if reverse else value
    )


def _shifted(by: int, fill: bool) -> Rule:
    def rule(question: Question) -> Answer:
        truth = question.truth
        if not fill:
            return [truth[(place + by) % len(truth)] for place in range(len(truth))]
        places = (place + by for place in range(len(truth)))
        return [truth[place] if 0 <= place < len(truth) else None for place in places]

    return rule


_RULES: tuple[tuple[str, Rule], ...] = (
    ("overall-repeated", _overall),
    ("divided-by-all", lambda q: _ratio(q.correct, _all_images(q))),
    ("precision", lambda q: _ratio(q.correct, q.predicted)),
    ("f1-score", _f1),
    ("overlap", _overlap),
    ("one-against-the-rest", _against_the_rest),
    ("counts", lambda q: [float(count) for count in q.correct]),
    ("images-of-the-class", lambda q: _ratio(q.images, _all_images(q))),
    ("share-of-predictions", lambda q: _ratio(q.predicted, _all_images(q))),
    ("cumulative", _cumulative(lambda q: _running(q.correct), lambda q: _running(q.images))),
    ("cumulative", _cumulative(lambda q: _running(q.correct), lambda q: q.images)),
    ("add-one", lambda q: _ratio(q.correct, [count + 1 for count in q.images])),
    ("shifted-down", _shifted(1, fill=True)),
    ("shifted-down", _shifted(1, fill=False)),
    ("shifted-up", _shifted(-1, fill=True)),
    ("shifted-up", _shifted(-1, fill=False)),
    ("sorted", _ordered(reverse=False)),
    ("sorted", _ordered(reverse=True)),
    ("order-of-appearance", _by_appearance),
)

_FINISHES: tuple[tuple[str, Finish], ...] = (
    ("percent", lambda value: 100 * value),
    ("whole-numbers", lambda value: float(math.floor(value))),
    ("error-rate", lambda value: 1 - value),
    *(("rounded", lambda value, digits=digits: round(value, digits)) for digits in (4, 3, 2, 1, 0)),
    *(("percent", lambda value, digits=digits: round(100 * value, digits)) for digits in (2, 1, 0)),
    ("percent", lambda value: float(math.floor(100 * value))),
)
