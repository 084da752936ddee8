"""The sentences about ``latency_stats`` that depend on where its answers are wrong; no hidden number gets in."""

from grading.exercises.latency_stats.diagnosis import Diagnosis
from grading.exercises.latency_stats.mistakes import CATALOGUE, sentences
from grading.exercises.latency_stats.readings import Reading
from grading.judging.function_judge import named_error

__all__ = ["PRAISE", "raised_remark", "wrong_message"]

PRAISE = {
    "stats_p50": (
        "Right: the middle sample, or the mean of the middle two. Taking one of the two alone would have moved the "
        "value by half of the gap between them, which shows most where few samples lie."
    ),
    "stats_p95": (
        "Right: the nearest rank, a time that one of the calls really took. Linear interpolation would have answered "
        "with a point between two samples instead; the two definitions drift apart where the slow tail is thin."
    ),
    "stats_throughput": (
        "Right: all images over all the time. It equals the batch size over the mean time, so each slow call counts "
        "with its whole length; computed from the median, it would not have noticed them."
    ),
    "stats_pure": (
        "Right: the samples are as they were. Their order still tells which round and moment a slow call came from."
    ),
    "stats_errors": (
        "Right: bad input ends in ValueError. A gate that computes on with NaN would compare it with a limit, and "
        "every such comparison is false."
    ),
}
CONTAINERS = {"list": "lists", "tuple": "tuples", "numpy": "NumPy arrays"}


def wrong_message(
    quantity: str, diagnosis: Diagnosis | None, readings: list[Reading], wrong: list[Reading], raised: list[Reading]
) -> str:
    """What a quantity's answers equal, where that is known, and where they are off."""
    if diagnosis is None:
        return sentences("unknown", quantity) + _pattern(readings, wrong) + raised_remark(raised, readings)
    first, *others = diagnosis.ids
    message = sentences(first, quantity)
    for other in others:
        message += f" And at the same time: {CATALOGUE[other].equals.format(q=quantity)} {CATALOGUE[other].ask}"
    if not diagnosis.everywhere:
        message = f"On most samples where it is off: {message}"
    if raised and not diagnosis.raises:
        message += raised_remark(raised, readings)
    return message


def _pattern(readings: list[Reading], wrong: list[Reading]) -> str:
    """Where it is wrong, if that is a class of inputs: a hint for a mistake that has no name here."""
    right = [reading for reading in readings if reading not in wrong and reading.answered]
    tests = {
        "an even number of samples": lambda r: len(r.case.samples) % 2 == 0,
        "an odd number of samples": lambda r: len(r.case.samples) % 2 == 1,
        "samples that contain equal times": lambda r: len(set(r.case.samples)) < len(r.case.samples),
        "NumPy arrays": lambda r: r.question.container == "numpy",
        "tuples": lambda r: r.question.container == "tuple",
        "whole numbers": lambda r: all(isinstance(sample, int) for sample in r.case.samples),
    }
    for words, holds in tests.items():
        if all(map(holds, wrong)) and not any(map(holds, right)):
            return f" It is off only for {words}."
    return " It is right for some samples." if right else ""


def raised_remark(raised: list[Reading], readings: list[Reading]) -> str:
    """For which inputs there was no answer, and the exception if it is one of Python's own."""
    if not raised:
        return ""
    containers = {CONTAINERS[reading.question.container] for reading in raised}
    fine = {CONTAINERS[reading.question.container] for reading in readings if reading.answered}
    where = " and ".join(sorted(containers)) if not containers & fine and fine else "some proper samples"
    return f" There was no answer for {where}{named_error(raised)}."
