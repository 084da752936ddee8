"""Numbers derived from a comparison's raw runs: percentiles, speed against the baseline, memory.  Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from deep_learning_cases.errors import InputError
from deep_learning_cases.measuring import stats

__all__ = ["memory_of", "merged_samples", "speed_of", "summary_of"]

CONFIDENCE = 0.95
LEVELS = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}

Runs = Sequence[Mapping[str, Any]]
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]


def merged_samples(runs: Runs, config: str, threads: int | str, batch_size: int | str) -> list[float]:
    """Every timing (microseconds per batch) of one cell, round after round; [] where nothing was measured."""
    found = [run for run in runs if run["config"] == config and str(run["threads"]) == str(threads)]
    return [sample for run in found for sample in run["samples_us"].get(str(batch_size), ())]


def summary_of(runs: Runs) -> Table:
    """``{config: {threads: {batch: row}}}``: percentiles by both definitions, mean, interval of the median, rate."""
    table: Table = {}
    for config, threads, batch in _cells(runs):
        samples = merged_samples(runs, config, threads, batch)
        table.setdefault(config, {}).setdefault(threads, {})[batch] = _row(samples, int(batch))
    return table


def _row(samples: list[float], batch_size: int) -> dict[str, Any]:
    interval = stats.percentile_interval(samples, 0.5, CONFIDENCE)
    low, high = interval.low, interval.high
    mean = sum(samples) / len(samples)
    if mean <= 0:
        raise InputError(
            f"{len(samples)} timings add up to 0 us: expected a clock that sees one pass; measure elsewhere"
        )
    return {
        "n": len(samples),
        "mean_us": mean,
        **{name: stats.percentile(samples, level, "linear") for name, level in LEVELS.items()},
        "nearest_rank": {name: stats.percentile(samples, level) for name, level in LEVELS.items()},
        "p50_interval_us": None if low is None else {"low": low, "high": high, "confidence": CONFIDENCE},
        "images_per_second": batch_size * 1e6 / mean,
    }


def speed_of(runs: Runs, baselines: Mapping[str, str | None]) -> Table:
    """``{config: {threads: {batch: comparison}}}`` by :func:`stats.compare`, one ratio of medians per round.

    Only rounds in which both were measured take part.
    """
    table: Table = {}
    for config, threads, batch in _cells(runs):
        baseline = baselines.get(config)
        if baseline is None:
            continue
        mine, theirs = (_by_round(runs, name, threads, batch) for name in (config, baseline))
        shared = sorted(set(mine) & set(theirs))
        if shared:
            row = stats.compare([mine[turn] for turn in shared], [theirs[turn] for turn in shared], CONFIDENCE)
            table.setdefault(config, {}).setdefault(threads, {})[batch] = {"baseline": baseline, **row}
    return table


def memory_of(runs: Runs) -> dict[str, dict[str, dict[str, Any]]]:
    """``{config: {threads: row}}``: the largest reading over the rounds, in bytes."""
    keys = ("rss_before_bytes", "rss_max_bytes", "peak_rss_bytes", "tracemalloc_peak_bytes")
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for run in runs:
        row = table.setdefault(run["config"], {}).setdefault(str(run["threads"]), {})
        row.update({key: max(row.get(key, 0), run[key]) for key in keys})
        row["peak_rss_source"] = run["peak_rss_source"]
    return table


def _cells(runs: Runs) -> list[tuple[str, str, str]]:
    cells = [(run["config"], str(run["threads"]), batch) for run in runs for batch in run["samples_us"]]
    return list(dict.fromkeys(cells))


def _by_round(runs: Runs, config: str, threads: str, batch: str) -> dict[int, list[float]]:
    return {
        run["round"]: list(run["samples_us"][batch])
        for run in runs
        if run["config"] == config and str(run["threads"]) == threads and batch in run["samples_us"]
    }
