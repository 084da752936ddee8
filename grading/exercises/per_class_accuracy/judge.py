"""The judge of ``per_class_accuracy``: questions for the sandbox, points and messages for the answers.  Pure.

``per_class_values`` is judged where every class has images, ``per_class_empty`` by the places of classes without any,
and ``per_class_manners`` by input that makes no sense and by the lists afterwards.  The last two count only for a
function that answers at least one of the hidden questions about values rightly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grading.exercises.per_class_accuracy.mistakes import ABSENT, Answer, diagnose, sentences
from grading.exercises.per_class_accuracy.questions import Question
from grading.judging.flags import Flag, source_flags
from grading.judging.function_judge import (
    CallRecord,
    Reply,
    close,
    faults_of,
    named_error,
    refusal,
    unanswered,
    why_raised,
)
from grading.judging.items import PER_CLASS_ITEMS, ItemResult

__all__ = ["calls", "judge"]

FUNCTION = "per_class_accuracy"
GATE = "Counts only together with a function that gets the classes of a hidden question right; see the item above."
HALF = " Half of the points."
TELLING_CLASSES = 5
"""With fewer, numbers in a wrong order may stand right by chance."""
LIBRARY = ("predictions.accuracy", "compare_logits", "classification_report", "recall_score")

PRAISE = {
    "per_class_values": (
        "Right for each class. Weighted by the images of the classes, these numbers have the overall accuracy as their "
        "mean, which is why a small class can fall unseen."
    ),
    "per_class_empty": (
        "Right: without images there is no accuracy, and the classes behind keep their place. A zero would have blamed "
        "the network for a class that nobody tested."
    ),
    "per_class_manners": (
        "Right: nonsense is refused, and the lists are as they were. A label of -1 would have counted silently for the "
        "last class wherever it is used as an index."
    ),
}
FAULTS = {
    "lengths": "predictions and labels of different length",
    "label outside": "a label that is no class",
    "prediction outside": "a prediction that is no class",
}


@dataclass(frozen=True)
class _Reading(Reply):
    """One question with what came back: ``values`` is None where ``form`` names a mistake or the function raised."""

    question: Question
    values: Answer | None
    form: str | None

    @property
    def right(self) -> bool:
        """Whether the answer is right for every class."""
        truth = self.question.truth
        return self.values is not None and len(self.values) == len(truth) and all(map(close, self.values, truth))


def calls(questions: Sequence[Question]) -> list[CallRecord]:
    """One call per question; nothing in them tells what is expected."""
    return [
        {
            "id": question.id,
            "function": FUNCTION,
            "arguments": [list(question.predictions), list(question.labels), question.classes],
            "container": question.container,
        }
        for question in questions
    ]


def judge(
    questions: Sequence[Question], answers: Mapping[str, Any], reached: bool = True, source: str = ""
) -> tuple[list[ItemResult], list[Flag]]:
    """Points for the answers, by call id, that the sandbox brought back; ``source`` serves flags only."""
    readings = [_read(question, answers.get(question.id)) for question in questions]
    flags = source_flags(source) + _library_flags(source)
    proper = [reading for reading in readings if not reading.question.bad]
    whole = unanswered(proper, reached)
    if whole:
        return [ItemResult.of(item, 0, sentences(whole), whole) for item in PER_CLASS_ITEMS], flags
    full = [reading for reading in proper if all(reading.question.images)]
    values = _values(full)
    if not any(reading.right and reading.question.classes >= TELLING_CLASSES for reading in full):
        return [values, *(ItemResult.of(item, 0, GATE) for item in ("per_class_empty", "per_class_manners"))], flags
    # A function that cannot take one kind of sequence has paid for that above.
    refused = {reading.question.container for reading in full if not reading.answered}
    absent = [one for one in proper if not all(one.question.images) and one.question.container not in refused]
    return [values, _empty(absent), _manners(proper, [one for one in readings if one.question.bad])], flags


def _read(question: Question, answer: Any) -> _Reading:
    """Read one answer with suspicion; whatever has not the expected form counts as no answer."""
    answer = answer if isinstance(answer, dict) else {}
    values, form = _members(answer) if answer.get("ok") is True else (None, None)
    return _Reading(question, (*question.predictions, *question.labels), answer, values, form)


def _members(answer: dict[str, Any]) -> tuple[Answer | None, str | None]:
    items, returned = answer.get("items"), answer.get("returned")
    if isinstance(items, list):
        if all(item is None or (isinstance(item, int | float) and not isinstance(item, bool)) for item in items):
            return [None if item is None else float(item) for item in items], None
        return None, "entries-are-no-numbers"
    if returned == "NoneType":
        return None, "returns-nothing"
    if returned in ("int", "float", "float64", "float32", "Fraction", "Decimal"):
        return None, "returns-one-number"
    return None, "returns-a-dictionary" if isinstance(answer.get("value"), dict) else "returns-another-type"


def _values(full: list[_Reading]) -> ItemResult:
    item = "per_class_values"
    forms = [reading.form for reading in full if reading.form]
    if forms:
        return ItemResult.of(item, 0, sentences(forms[0]), forms[0])
    answered = [reading for reading in full if reading.answered]
    raised = [reading for reading in full if not reading.answered]
    wrong = [reading for reading in answered if not reading.right]
    if wrong:
        mistake = _named(answered)
        return ItemResult.of(item, 0, sentences(mistake) + _remark(raised), mistake)
    if raised:
        half = 2 * len(raised) < len(full)
        mistake = why_raised(raised)
        message = sentences(mistake) + _remark(raised) + (HALF if half else "")
        return ItemResult.of(item, 0.5 if half else 0, message, mistake)
    return ItemResult.of(item, 1, PRAISE[item])


def _named(answered: list[_Reading]) -> str:
    """The mistake behind a set of answers of which some are wrong."""
    given = [reading.values or [] for reading in answered]
    # The wrong ones first: a mistake may not show on small questions.
    found = diagnose([reading.question for reading in answered], given)
    return found or _wrong_length(answered) or "unknown"


def _wrong_length(readings: list[_Reading]) -> str | None:
    """A mistake of the number of entries; None where all have one for each class."""
    sizes = [(len(reading.values or []), reading.question.classes) for reading in readings]
    if all(given == classes for given, classes in sizes):
        return None
    if {given for given, _ in sizes} == {10}:
        return "assumes-ten-classes"
    if all(given == classes + 1 for given, classes in sizes):
        return "one-class-too-many"
    if all(given == classes - 1 for given, classes in sizes):
        first = all(map(close, readings[0].values or [], readings[0].question.truth[1:]))
        return "first-class-missing" if first else "last-class-missing"
    return "wrong-length"


def _empty(absent: list[_Reading]) -> ItemResult:
    item = "per_class_empty"
    mistakes = [mistake for reading in absent if (mistake := _empty_mistake(reading))]
    if not absent:
        return ItemResult.of(item, 0, sentences("raises-on-good-input"), "raises-on-good-input")
    if not mistakes:
        return ItemResult.of(item, 1, PRAISE[item])
    return ItemResult.of(item, 0, sentences(mistakes[0]), mistakes[0])


def _empty_mistake(reading: _Reading) -> str | None:
    question = reading.question
    if not reading.answered:
        return "absent-raises" if reading.error else "stopped"
    if reading.values is None:
        return reading.form
    present = [value for value in question.truth if value is not None]
    if len(reading.values) != question.classes:
        left_out = len(reading.values) < question.classes and all(map(close, reading.values, present))
        return "absent-classes-left-out" if left_out else "wrong-length"
    given = [value for value, count in zip(reading.values, question.images, strict=True) if not count]
    numbers = [value for value in given if value is not None]
    if numbers:
        return ABSENT.get(numbers[0], "absent-as-number")
    # A class with images that was given no number: the rest of the answer went wrong with it.
    kept = [value for value, count in zip(reading.values, question.images, strict=True) if count]
    return "unknown" if None in kept else None


def _manners(proper: list[_Reading], faulty: list[_Reading]) -> ItemResult:
    item = "per_class_manners"
    if any(reading.changed for reading in proper):
        return ItemResult.of(item, 0, sentences("changes-its-input"), "changes-its-input")
    if not all(reading.kept for reading in proper):
        return ItemResult.of(item, 0, sentences("input-not-shown"), "input-not-shown")
    accepted, other = faults_of(faulty)
    for mistake, faults, fraction in (("accepts-bad-input", accepted, 0.0), ("wrong-error-type", other, 0.5)):
        if faults:
            return refusal(item, mistake, sentences(mistake), faults, FAULTS, fraction)
    return ItemResult.of(item, 1, PRAISE[item])


def _remark(raised: list[_Reading]) -> str:
    return f" Some proper inputs ended in an exception{named_error(raised)}." if raised else ""


def _library_flags(source: str) -> list[Flag]:
    found = [name for name in LIBRARY if name in source]
    reason = "the code names a library function that counts by class; have a look whether it was written or called"
    return [Flag("calls-a-library", f"{reason}: {', '.join(found)}", "source")] if found else []
