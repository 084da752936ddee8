"""Evidence that is possible and yet odd: remarks for a person, without a point lost.

Whether times were measured or typed cannot be told from the times.  What can be seen is that measured times jitter, lie
on the clock's grid, differ from run to run, and take as long as they say.  Each flag names what was seen, so that
the talk with the student can start with a question.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grading.judging.flags import Flag

__all__ = ["NO_PROOF", "evidence_flags"]

NO_PROOF = (
    "possible, costs no points: neither hashes nor statistics can prove that times were measured or that they were not"
)

MIN_SAMPLES = 20
MIN_DISTINCT = 10
MAX_SERIES = 24
MAX_RUNS = 64
MAX_SAMPLES = 1000
"""Every two series are compared. A record of the lab has 18 of at most 100 samples; what is beyond is not looked at."""
NO_SPREAD = 1e-3
ALIKE = 0.5
CLOCK_STEP_US = 1e-3


@dataclass(frozen=True)
class _Series:
    """The samples of one run and batch size."""

    where: str
    name: str
    samples: tuple[float, ...]

    @property
    def distinct(self) -> int:
        return len(set(self.samples))


def evidence_flags(record: Mapping[str, Any]) -> list[Flag]:
    """All that is odd in a benchmark record; parts of another form than expected are passed over."""
    given = record.get("runs")
    runs = [run for run in given[:MAX_RUNS] if isinstance(run, dict)] if isinstance(given, list) else []
    series = list(itertools.islice(_series(runs), MAX_SERIES))
    flags = [
        *(flag for one in series for flag in _shape(one)),
        *_round_numbers(series),
        *_repeated(series),
        *_processes(runs),
        *_times(runs, record.get("created_at")),
        *_cold(runs),
    ]
    return [Flag(flag.id, f"{flag.reason} ({NO_PROOF})", flag.where) for flag in flags]


def _series(runs: Sequence[dict[str, Any]]) -> Iterator[_Series]:
    for index, run in enumerate(runs):
        samples_us = run.get("samples_us")
        for batch, samples in samples_us.items() if isinstance(samples_us, dict) else ():
            looked_at = samples[:MAX_SAMPLES] if _is_list(samples) else []
            if len(looked_at) >= MIN_SAMPLES and all(map(_is_time, looked_at)):
                name = f"round {_word(run.get('round')):.8}, {_word(run.get('model')):.20}, batch {batch:.8}"
                yield _Series(f"/runs/{index}/samples_us/{batch:.8}", name, tuple(looked_at))


def _shape(series: _Series) -> Iterator[Flag]:
    """One series by itself."""
    samples, name = series.samples, series.name
    if series.distinct == 1:
        yield Flag("identical-samples", f"{name}: all {len(samples)} samples are the same number", series.where)
        return
    if (max(samples) - min(samples)) / statistics.median(samples) < NO_SPREAD:
        yield Flag(
            "no-spread", f"{name}: the samples differ by less than a thousandth, measured ones jitter", series.where
        )
    if series.distinct >= MIN_DISTINCT and list(samples) in (sorted(samples), sorted(samples, reverse=True)):
        yield Flag("sorted-samples", f"{name}: the samples are in sorted order, measured ones come mixed", series.where)


def _round_numbers(series: Sequence[_Series]) -> Iterator[Flag]:
    """The grid on which the times lie: a coarse clock, a hand, or a random generator."""
    samples = [sample for one in series for sample in one.samples]
    if not samples:
        return
    whole = sum(float(sample).is_integer() for sample in samples) / len(samples)
    if whole > 0.9:
        reason = "almost all samples are whole microseconds: a clock that coarse is rare"
        yield Flag("round-numbers", reason, "/runs")
    finer = sum(abs(sample / CLOCK_STEP_US - round(sample / CLOCK_STEP_US)) > 1e-3 for sample in samples) / len(samples)
    if finer > 0.1:
        reason = "samples lie between the nanoseconds of the clock that the helper reads: they were computed with"
        yield Flag("finer-than-the-clock", reason, "/runs")


def _repeated(series: Sequence[_Series]) -> Iterator[Flag]:
    """Two series that should have been measured apart and share what jitter would not."""
    rich = [one for one in series if one.distinct >= MIN_DISTINCT]
    for first, second in itertools.combinations(rich, 2):
        if len(first.samples) != len(second.samples):
            continue
        pairs = list(zip(first.samples, second.samples, strict=True))
        both = f"{first.name} and {second.name}"
        if sum(a == b for a, b in pairs) >= ALIKE * len(pairs):
            yield Flag("repeated-samples", f"{both} have the same samples in the same places", second.where)
        elif sorted(first.samples) == sorted(second.samples):
            yield Flag("repeated-samples", f"{both} have the same samples in another order", second.where)
        elif _constant([a / b for a, b in pairs]):
            yield Flag("scaled-samples", f"{both}: one is a multiple of the other, sample by sample", second.where)
        elif _constant([a - b for a, b in pairs], statistics.median(first.samples)):
            yield Flag("shifted-samples", f"{both} differ by the same time, sample by sample", second.where)


def _constant(values: Sequence[float], scale: float | None = None) -> bool:
    scale = abs(statistics.median(values)) if scale is None else scale
    return max(values) - min(values) <= 1e-4 * scale


def _processes(runs: Sequence[dict[str, Any]]) -> Iterator[Flag]:
    pids = [run["pid"] for run in runs if isinstance(run.get("pid"), int)]
    if len(set(pids)) < len(pids):
        yield Flag("same-process", "runs share a process id, though each has a process of its own", "/runs")
    peaks = [run["peak_rss_bytes"] for run in runs if isinstance(run.get("peak_rss_bytes"), int)]
    if len(peaks) > 2 and len(set(peaks)) == 1:
        reason = "all runs have the same peak memory to the byte, which differs from process to process"
        yield Flag("identical-memory", reason, "/runs")


def _times(runs: Sequence[dict[str, Any]], created_at: Any) -> Iterator[Flag]:
    """Starting times in the order of the runs, far enough apart for what is said to have happened in between."""
    starts = [_instant(run.get("started_at")) for run in runs]
    ends = [*starts, _instant(created_at)][1:]
    for index, (run, start, end) in enumerate(zip(runs, starts, ends, strict=True)):
        if start is None or end is None:
            continue
        where = f"/runs/{index}/started_at"
        seconds = (end - start).total_seconds()
        if seconds < 0:
            yield Flag("impossible-order", f"run {index + 1} starts after what follows it in the record", where)
        elif seconds + 1 < _busy_seconds(run):
            reason = f"run {index + 1} says that its calls took longer than the time until the next one started"
            yield Flag("impossible-time", reason, where)


def _busy_seconds(run: Mapping[str, Any]) -> float:
    """The time the samples of a run took together; a second of slack is for records that keep whole seconds."""
    samples_us = run.get("samples_us")
    lists = samples_us.values() if isinstance(samples_us, dict) else ()
    times = [float(sample) for samples in lists if _is_list(samples) for sample in samples if _is_time(sample)]
    return sum(times) / 1e6


def _cold(runs: Sequence[dict[str, Any]]) -> Iterator[Flag]:
    for index, run in enumerate(runs):
        samples_us = run.get("samples_us")
        first = next(iter(samples_us.values()), None) if isinstance(samples_us, dict) else None
        times = [sample for sample in first if _is_time(sample)] if isinstance(first, list) else []
        cold = run.get("cold_start_us")
        if times and _is_time(cold) and cold < statistics.median(times):
            reason = f"run {index + 1}: loading and the first call together took less time than a warm call"
            yield Flag("cold-start-faster", reason, f"/runs/{index}/cold_start_us")


def _instant(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _word(value: Any) -> str:
    """A number or a name as text; a whole structure in its place is not written out."""
    return str(value) if isinstance(value, int | str | None) else "?"


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_time(value: Any) -> bool:
    """A positive number that float arithmetic can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15 and math.isfinite(value)
