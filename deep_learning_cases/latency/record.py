"""What a latency record holds: the raw timings of each batch size, and the numbers that follow from them.

p50 is the median (mean of the middle two for an even count), p95 the nearest rank, ceil(0.95 n)-th smallest.  p99 by
nearest rank needs at least 100 trials: with fewer it *is* the slowest trial, a maximum under another name, so it is
left out (``None``) and ``p99_note`` says so.  Every derived number can be computed again from ``samples_ms``, which is
how a record that was read back is judged.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from deep_learning_cases.errors import EvidenceError, MeasurementError
from deep_learning_cases.measuring import stats

__all__ = ["SCHEMA", "STAGES", "batch_rows", "check", "from_json", "row", "to_json"]

SCHEMA = "deep-learning-cases/latency/1"

STAGES = ("start_ms", "import_ms", "load_ms", "first_call_ms")
"""What a cold start is made of: interpreter with NumPy and this library, runtime, model, first call."""

_BATCH_TABLES = ("results", "probes", "distinct_inputs")
"""Keys under which a table has one entry for each batch size."""

_TOLERANCE = 1e-9
"""Relative; a JSON round trip keeps doubles exactly, so only the order of a sum may differ."""


def row(samples_ms: Sequence[float], warmups_ms: Sequence[float], batch_size: int) -> dict[str, Any]:
    """Everything the record says of one batch size; times in milliseconds per batch.

    ``first_call_ms`` is the very first call of this batch size: a warm-up, or the first sample where none were made.
    ``median_low_ms`` to ``median_high_ms`` is the 95 % interval of the median, None where the trials are too few.

    Raises MeasurementError for a timing of 0, which a clock too coarse for the call gives.
    """
    if not all(sample > 0 for sample in (*samples_ms, *warmups_ms)):
        raise MeasurementError(
            f"a call at batch {batch_size} took 0 ns by this clock: expected every call to be longer than a tick;"
            " measure a larger batch or use time.perf_counter_ns"
        )
    summary = stats.latency_summary([1000 * sample for sample in samples_ms], batch_size)
    mean_ms = math.fsum(samples_ms) / len(samples_ms)
    interval = stats.percentile_interval(samples_ms, 0.5)
    p99_ms, p99_note = _tail(samples_ms, Fraction(99, 100))
    return {
        "warmups": len(warmups_ms),
        "trials": len(samples_ms),
        "median_ms": summary["p50_us"] / 1000,
        "median_low_ms": interval.low,
        "median_high_ms": interval.high,
        "p95_ms": summary["p95_us"] / 1000,
        "p95_note": _tail(samples_ms, Fraction(95, 100))[1],
        "p99_ms": p99_ms,
        "p99_note": p99_note,
        "mean_ms": mean_ms,
        "min_ms": min(samples_ms),
        "max_ms": max(samples_ms),
        "first_call_ms": [*warmups_ms, *samples_ms][0],
        "ms_per_image": mean_ms / batch_size,
        "images_per_second": summary["images_per_second"],
        "samples_ms": list(samples_ms),
        "warmups_ms": list(warmups_ms),
    }


def _tail(samples_ms: Sequence[float], level: Fraction) -> tuple[float | None, str]:
    """A high percentile by nearest rank, None where that rank is the last; and how far it can be trusted."""
    n, share = len(samples_ms), float(level)
    rank, name = stats.nearest_rank(n, level), f"p{100 * share:g}"
    if rank == n:
        enough = math.ceil(1 / (1 - level))
        return None, (
            f"{n} trials: by nearest rank {name} would be the slowest trial, and the true {name} lies above it with"
            f" probability {share**n:.2f}; at least {enough} trials for a value, {_bound(share)} for an upper bound"
        )
    interval = stats.percentile_interval(samples_ms, share)
    trust = (
        f"no 95 % interval ({interval.reason})"
        if interval.low is None
        else f"95 % interval {interval.low:.6g} to {interval.high:.6g} ms"
    )
    return sorted(samples_ms)[rank - 1], f"nearest rank: number {rank} of {n}; {trust}"


def _bound(share: float) -> int:
    """Trials before the slowest one is above the percentile with 95 % confidence: 299 for p99."""
    return math.ceil(math.log(0.05) / math.log(share))


def to_json(record: dict[str, Any]) -> dict[str, Any]:
    """A copy with batch sizes as text, since JSON has no other keys."""
    return dict(_with_batches(record, str))


def from_json(record: dict[str, Any]) -> dict[str, Any]:
    """A copy with batch sizes as whole numbers again."""
    return dict(_with_batches(record, int))


def _with_batches(value: Any, kind: type) -> Any:
    if not isinstance(value, dict):
        return value
    copy = {}
    for key, child in value.items():
        if key in _BATCH_TABLES and isinstance(child, dict):
            copy[key] = {kind(batch): _with_batches(row, kind) for batch, row in child.items()}
        else:
            copy[key] = _with_batches(child, kind)
    return copy


def batch_rows(record: dict[str, Any]) -> list[tuple[str, Any, dict[str, Any]]]:
    """Every row of raw timings as (JSON pointer, batch size, row): the model's own, then each boundary's."""
    found = [(f"/results/{batch}", batch, values) for batch, values in record["results"].items()]
    for name, part in record.get("boundaries", {}).items():
        for batch, values in (part.get("results") or {}).items():
            found.append((f"/boundaries/{name}/results/{batch}", batch, values))
    return found


def check(record: dict[str, Any], file: str) -> None:
    """Raise EvidenceError for the first number of a record that does not follow from its raw timings."""
    for pointer, found, expected in _claims(record, file):
        if not _same(found, expected):
            raise EvidenceError(
                f"{file} at {pointer}: {str(found)[:80]!r} does not follow from the timings: expected"
                f" {str(expected)[:80]!r}; measure again"
            )


def _claims(record: dict[str, Any], file: str) -> Iterator[tuple[str, Any, Any]]:
    """Every derived number as (JSON pointer, what the record says, what follows from the rest of it)."""
    protocol = record["protocol"]
    yield "/protocol/batches", protocol["batches"], list(record["results"])
    yield "/protocol/distinct_inputs", list(protocol["distinct_inputs"]), list(record["results"])
    for batch, values in record["results"].items():
        for key in ("warmups", "trials"):
            yield f"/results/{batch}/{key}", values[key], protocol[key]
    for pointer, batch, values in batch_rows(record):
        try:
            expected = row(values["samples_ms"], values["warmups_ms"], batch)
        except MeasurementError as error:
            raise EvidenceError(f"{file} at {pointer}: {error}") from error
        for key, value in expected.items():
            yield f"{pointer}/{key}", values[key], value
    for batch, part in record.get("cold", {}).get("results", {}).items():
        for place, start in enumerate(part["starts"]):
            yield f"/cold/results/{batch}/starts/{place}/total_ms", start["total_ms"], math.fsum(map(start.get, STAGES))
        totals_ms = [start["total_ms"] for start in part["starts"]]
        yield f"/cold/results/{batch}/median_ms", part["median_ms"], stats.percentile(totals_ms, 0.5, "linear")


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, float | int) and isinstance(expected, float | int):
        return math.isclose(found, expected, rel_tol=_TOLERANCE)
    return bool(found == expected)
