"""The judge of ``latency_stats``: questions to ask, and points and messages for the answers.  Pure; it runs nothing.

An item counts when every answer to a proper input is right.  Half of it counts where all answers are right but some
proper inputs (fewer than half) raised an exception, and half of ``stats_throughput`` where the rate is right and ``n``
is not, and half of ``stats_errors`` where all bad input is refused but not always with ValueError, or all but a batch
size that is no whole number.  ``n`` belongs to ``stats_throughput``, which it multiplies.
"""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grading.exercises.latency_stats.diagnosis import Diagnosis, diagnose
from grading.exercises.latency_stats.likeness import likeness_flags
from grading.exercises.latency_stats.messages import PRAISE, raised_remark, wrong_message
from grading.exercises.latency_stats.mistakes import RAISED, sentences
from grading.exercises.latency_stats.questions import Fixture
from grading.exercises.latency_stats.readings import Reading, read
from grading.judging.flags import Flag, source_flags
from grading.judging.function_judge import CallRecord, close, faults_of, refusal, unanswered, why_raised
from grading.judging.items import STATS_ITEMS, ItemResult

__all__ = ["calls", "judge"]

FUNCTION = "latency_stats"
MIN_TELLING_SAMPLES = 20
"""Below, a p95 is the maximum and a median may be any sample: a right answer shows little."""

VALUE_ITEMS = {"stats_p50": "p50_us", "stats_p95": "p95_us", "stats_throughput": "images_per_second"}
MAX_PARSED = 32_000
"""Characters; one that is longer is not told apart from one without the function."""

GATE = "Counts only together with a function that gets a hidden p50, p95 or throughput right; see the items above."
REMARK_NOT_WHOLE = (
    "A remark that costs nothing: a batch size that is not whole was answered; half an image is no image either."
)

FAULTS = {
    "no samples": "no samples at all",
    "not finite": "a sample that is not finite",
    "not positive": "a sample that is not positive",
    "batch size": "a batch size of zero or less",
    "batch not whole": "a batch size that is not a whole number",
}


def calls(fixtures: Sequence[Fixture]) -> list[CallRecord]:
    """The questions for the sandbox, one per fixture; nothing in them tells what is expected."""
    return [
        {
            "id": fixture.id,
            "function": FUNCTION,
            "samples": list(fixture.samples),
            "container": fixture.container,
            "batch_size": fixture.batch_size,
        }
        for fixture in fixtures
    ]


def judge(
    fixtures: Sequence[Fixture], answers: Mapping[str, Any], reached: bool = True, source: str = "", why: str = ""
) -> tuple[list[ItemResult], list[Flag]]:
    """Points for the answers, by call id, that the sandbox brought back.

    ``reached`` is false if the run was stopped before the questions were asked, and ``why`` says what ended it;
    ``source`` is the student's code and serves messages and flags only.
    """
    proper = [read(fixture, answers.get(fixture.id)) for fixture in fixtures if not fixture.bad]
    faulty = [read(fixture, answers.get(fixture.id)) for fixture in fixtures if fixture.bad]
    flags = source_flags(source) + likeness_flags(source)
    used_library = any(reading.used_library for reading in proper + faulty)
    if used_library:
        flags.append(
            Flag("calls-the-library", "the function called the library's own summary, which is switched off", "source")
        )
    whole = _whole(proper, reached, source, used_library)
    if whole:
        message = sentences(whole, "the answer") + (f" ({why})" if why and whole in ("stopped", "no-function") else "")
        return [ItemResult.of(item, 0, message, whole) for item in STATS_ITEMS], flags
    values = _values(proper)
    earned = any(
        _right(reading, quantity)
        for reading in proper
        for quantity in VALUE_ITEMS.values()
        if len(reading.case.samples) >= MIN_TELLING_SAMPLES
    )
    if not earned:
        return [*values, ItemResult.of("stats_pure", 0, GATE), ItemResult.of("stats_errors", 0, GATE)], flags
    return [*values, _pure(proper), _errors(faulty)], flags


def _whole(proper: list[Reading], reached: bool, source: str, used_library: bool) -> str | None:
    """A reason why there is no answer at all."""
    if used_library and not any(reading.answered for reading in proper):
        return "calls-the-library"
    whole = unanswered(proper, reached)
    return "syntax-error" if whole == "no-function" and not _compiles(source) else whole


def _compiles(source: str) -> bool:
    """Whether it is Python once a notebook's magics are left out; parsed only, since compiling can take all memory."""
    if source.lstrip().startswith("%%") or len(source) > MAX_PARSED:
        return True
    lines = ["pass" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        ast.parse("\n".join(lines) + "\n", "cell")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# --- p50, p95, throughput ---------------------------------------------------------------------------------------------


def _values(proper: list[Reading]) -> list[ItemResult]:
    asked = _without_tuples_it_cannot_change(proper)
    found = _agreed({item: _diagnose(quantity, asked) for item, quantity in VALUE_ITEMS.items()})
    raised = frozenset(index for index, reading in enumerate(asked) if not reading.answered)
    # An exception in the line for p95 leaves p50 without an answer too: name the mistake that raises.
    causes = [diagnosis.ids[0] for diagnosis in found.values() if diagnosis and raised and diagnosis.raises == raised]
    cause = causes[0] if causes else None
    return [
        _value(item, quantity, asked, found[item], cause)
        for item, quantity in VALUE_ITEMS.items()
    ]  # fmt: skip


def _agreed(found: dict[str, list[Diagnosis]]) -> dict[str, Diagnosis | None]:
    """Of several mistakes that fit one item, the one that other items show as well."""
    shown = Counter(mistake for several in found.values() for mistake in {d.ids[0] for d in several})
    return {item: max(several, key=lambda d: shown[d.ids[0]], default=None) for item, several in found.items()}


def _value(
    item: str, quantity: str, readings: list[Reading], diagnosis: Diagnosis | None, cause: str | None
) -> ItemResult:
    shape = _shape_mistake(quantity, readings)
    if shape:
        return ItemResult.of(item, 0, sentences(shape, quantity), shape)
    wrong = [reading for reading in readings if reading.answered and not _right(reading, quantity)]
    raised = [reading for reading in readings if not reading.answered]
    if wrong:
        mistake = diagnosis.ids[0] if diagnosis else "unknown"
        return ItemResult.of(item, 0, wrong_message(quantity, diagnosis, readings, wrong, raised), mistake)
    if raised:
        return _partly_raised(item, quantity, readings, raised, cause)
    if item == "stats_throughput":
        count = _count(readings)
        if count:
            return count
    return ItemResult.of(item, 1, PRAISE[item])


def _partly_raised(
    item: str, quantity: str, readings: list[Reading], raised: list[Reading], cause: str | None
) -> ItemResult:
    """No wrong answer, but some inputs without one."""
    half = 2 * len(raised) < len(readings)
    mistake = cause or why_raised(raised)
    message = sentences(mistake, VALUE_ITEMS["stats_p95"] if cause else quantity)
    if half:
        message += " Where the function answered, this value is right: half of the points."
    return ItemResult.of(item, 0.5 if half else 0, message + raised_remark(raised, readings), mistake)


def _count(readings: list[Reading]) -> ItemResult | None:
    """``n`` where the rate is right: half of the points if it is wrong, None if it is right as well."""
    shape = _shape_mistake("n", readings)
    if not shape and all(_right(reading, "n") for reading in readings):
        return None
    several = [] if shape else _diagnose("n", readings)
    mistake = shape or (several[0].ids[0] if several else "wrong-count")
    message = f"{sentences(mistake, 'n')} The images per second are right: half of the points."
    return ItemResult.of("stats_throughput", 0.5, message, mistake)


def _right(reading: Reading, quantity: str) -> bool:
    value = reading.values.get(quantity)
    if not isinstance(value, int | float):
        return False
    return value == reading.truth[quantity] if quantity == "n" else close(value, reading.truth[quantity])


def _diagnose(quantity: str, readings: list[Reading]) -> list[Diagnosis]:
    values = [reading.values.get(quantity, RAISED) for reading in readings]
    numbers = [value if isinstance(value, int | float) else RAISED for value in values]
    return diagnose(quantity, [reading.case for reading in readings], numbers)


def _shape_mistake(quantity: str, readings: list[Reading]) -> str | None:
    """An answer without a number in this place, whatever the number should have been."""
    for reading in readings:
        value = reading.values.get(quantity)
        if reading.answered and isinstance(value, str):
            return value
    return None


def _without_tuples_it_cannot_change(readings: list[Reading]) -> list[Reading]:
    """A function that sorts its input in place fails on tuples for that one reason; ``stats_pure`` is where it pays."""
    if not any(reading.changed for reading in readings):
        return readings
    return [
        reading
        for reading in readings
        if reading.answered
        or reading.question.container != "tuple"
        or reading.error not in ("AttributeError", "TypeError")
    ]  # fmt: skip


# --- pure, errors -----------------------------------------------------------------------------------------------------


def _pure(proper: list[Reading]) -> ItemResult:
    if any(reading.changed for reading in proper):
        return ItemResult.of("stats_pure", 0, sentences("changes-its-input", "n"), "changes-its-input")
    if not all(reading.kept for reading in proper):
        return ItemResult.of("stats_pure", 0, sentences("input-not-shown", "n"), "input-not-shown")
    return ItemResult.of("stats_pure", 1, PRAISE["stats_pure"])


def _errors(faulty: list[Reading]) -> ItemResult:
    accepted, other = faults_of(faulty)
    if accepted:
        if accepted == {"batch not whole"} and not other:
            # Everything that makes the answer meaningless is refused; `batch_size < 1` is a defensible reading of the
            # rule, so the type of the batch size is a remark and costs nothing.
            return ItemResult.of("stats_errors", 1, f"{PRAISE['stats_errors']} {REMARK_NOT_WHOLE}")
        return _refusal("accepts-bad-input", accepted, 0)
    if any(reading.error is None for reading in faulty):
        return _refusal("stopped", other, 0)
    return (
        _refusal("wrong-error-type", other, 0.5) if other else ItemResult.of("stats_errors", 1, PRAISE["stats_errors"])
    )


def _refusal(mistake: str, faults: set[str], fraction: float) -> ItemResult:
    return refusal("stats_errors", mistake, sentences(mistake, "n"), faults, FAULTS, fraction)
