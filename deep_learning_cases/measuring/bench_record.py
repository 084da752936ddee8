"""What ``benchmark.json`` holds, and what is derived from it; the measuring itself is in ``bench``."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict, cast

from deep_learning_cases.errors import EvidenceError, InputError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import is_number, number
from deep_learning_cases.measuring.trial import Job

__all__ = [
    "BOUNDARY", "INPUT", "SCHEMA", "SUMMARY_FIELDS", "UNIT", "Benchmark", "ModelRecord", "Run", "SummaryRow",
    "check_record", "merged_samples", "problem_of", "summary_of",
]  # fmt: skip

LatencyStats = Callable[[list[float], int], Mapping[str, Any]]

SCHEMA = "deep-learning-cases/benchmark/1"
UNIT = "microseconds per batch"
BOUNDARY = (
    "From just before engine.run(batch) to its return, in one process with one inference thread. Included: the forward"
    " pass and the call into the runtime. Excluded: starting Python, importing, loading the model (with the first call"
    " it is cold_start_us), reading and normalising images, choosing a class from the logits, and any queue or network."
    " So this is not the response time of a service."
)
INPUT = "test images in order, a different batch each call until they start over; float32, 0 to 1, (batch, 1, 8, 8)"
SUMMARY_FIELDS = ("n", "p50_us", "p95_us", "images_per_second")


class ModelRecord(files.FileRecord):
    """A model's file, and what ran it."""

    engine: str
    precision: str


class Run(TypedDict):
    """One process's answer (:class:`trial.Answer`), and when it was asked."""

    round: int
    position: int
    model: str
    pid: int
    started_at: str
    load_average: list[float] | float | None
    cold_start_us: float
    peak_rss_bytes: int
    peak_rss_source: str
    samples_us: dict[str, list[float]]
    warmups_us: NotRequired[dict[str, list[float]]]
    loop_overhead_us: NotRequired[float]


class SummaryRow(TypedDict):
    """The four numbers of one model and batch size."""

    n: int
    p50_us: float
    p95_us: float
    images_per_second: float


Summary = dict[str, dict[str, SummaryRow]]
"""By model and batch size; empty until somebody's ``latency_stats`` fills it."""


class Benchmark(TypedDict):
    """``benchmark.json``, once it was measured here or checked by its schema."""

    schema: str
    created_at: str
    boundary: str
    unit: str
    protocol: dict[str, Any]
    environment: dict[str, Any]
    data: files.FileRecord
    models: dict[str, ModelRecord]
    runs: list[Run]
    summary: Summary


def merged_samples(record: Benchmark, model: str, batch_size: int | str) -> list[float]:
    """All raw timings of one model at one batch size, round after round, in microseconds per batch; a new list.

    InputError if the record has no such model or batch size.
    """
    runs = [run for run in record["runs"] if run["model"] == model and str(batch_size) in run["samples_us"]]
    if not runs:
        raise InputError(
            f"the record has no timings of model {model!r} at batch size {batch_size}: expected one of"
            f" {', '.join(record['models'])} at {', '.join(map(str, record['protocol']['batch_sizes']))}; choose one"
        )
    return [sample for run in sorted(runs, key=_round_of) for sample in run["samples_us"][str(batch_size)]]


def summary_of(record: Benchmark, latency_stats: LatencyStats) -> Summary:
    """``{model: {batch size: four numbers}}`` from the merged raw timings; each call gets a list of its own."""
    return {
        name: {
            str(size): _four_numbers(latency_stats(merged_samples(record, name, size), size), f"{name}, batch {size}")
            for size in record["protocol"]["batch_sizes"]
        }
        for name in record["models"]
    }


def problem_of(answer: Mapping[str, Any], job: Job) -> str | None:
    """What is wrong with a process's answer, None if nothing is."""
    for key in ("pid", "peak_rss_bytes"):
        if not isinstance(answer.get(key), int) or not is_number(answer[key], 1):
            return f"{key} {str(answer.get(key))[:40]!r}: expected a positive whole number"
    for key, least in (("cold_start_us", math.ulp(0.0)), ("loop_overhead_us", 0.0)):
        if not is_number(answer.get(key), least):
            return f"{key} {str(answer.get(key))[:40]!r}: expected a finite number, not negative"
    if not isinstance(answer.get("peak_rss_source"), str):
        return "no peak_rss_source: expected where the memory figure comes from"
    for key, count in (("samples_us", job["repetitions"]), ("warmups_us", job["warmups"])):
        series = answer.get(key)
        if not isinstance(series, dict) or list(series) != [str(size) for size in job["batch_sizes"]]:
            return f"{key} without the batch sizes {job['batch_sizes']}: expected one list for each"
        for size, values in series.items():
            if not isinstance(values, list) or len(values) != count:
                return f"{key} for batch {size} with another count: expected {count} timings"
            if not all(is_number(value, math.ulp(0.0)) for value in values):
                return f"{key} for batch {size} with something else: expected finite numbers greater than 0"
    return None


def check_record(record: Any, path: str) -> None:
    """Refuse what is not a benchmark record; the whole schema where its validator is installed (the kit has none)."""
    try:
        from deep_learning_cases.ground import schemas

        # A spoilt summary is no reason to measure again: it is about to be replaced.
        bare = record | {"summary": {}} if isinstance(record, dict) else record
        schemas.validate(bare, "benchmark", path)
    except ImportError:
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            raise EvidenceError(f"{path} is not a benchmark record: expected schema {SCHEMA}; measure again") from None


def _four_numbers(answer: object, where: str) -> SummaryRow:
    """The four fields of a ``latency_stats`` answer as plain Python numbers; extra keys are left out."""
    if not isinstance(answer, Mapping):
        raise InputError(
            f"latency_stats returned {type(answer).__name__} for {where}: expected a dictionary with"
            f" {', '.join(SUMMARY_FIELDS)}; return one"
        )
    numbers: Any = {}
    for field in SUMMARY_FIELDS:
        value = answer.get(field)
        found = number(value)
        if not 0 < found < math.inf or (field == "n" and found != int(found)):
            raise InputError(
                f"latency_stats gave {field} = {str(value)[:40]} for {where}: expected a finite number greater than 0;"
                " compute it from samples_us and batch_size"
            )
        numbers[field] = int(found) if field == "n" else found
    return cast(SummaryRow, numbers)


def _round_of(run: Run) -> int:
    return int(run["round"])
