"""A/A: measure a model against itself, so that every difference found is the machine's noise.

The comparison of ``stats`` promises to cry wolf in at most 5 % of such trials.  Here a reader counts how often it does
on a machine of their own, and sees how small a difference could be noticed there at all.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deep_learning_cases import bench
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.ground.progress import Progress
from deep_learning_cases.measuring import stats
from deep_learning_cases.measuring.bench_record import Benchmark

__all__ = ["lines", "measure", "reading"]

NAMES = ("first", "second")


def measure(
    folder: str | Path,
    *,
    trials: int = 20,
    rounds: int = 3,
    model: str = "fp32",
    confidence: float = 0.95,
    timeout_s: float = 120.0,
    progress: Progress | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Time ``model`` of an evidence folder under two names, ``trials`` times ``rounds`` rounds; writes nothing.

    ``settings`` go to :func:`bench.measure` (``repetitions``, ``batch_sizes``, ``threads``, ``models``, ``launch``,
    ...).  20 trials of 3 rounds are 120 processes, half a minute or so.  Returns what
    :func:`reading` says of it, and raises as ``bench.measure`` does.
    """
    trials, rounds = whole(trials, "trials", 1, 1000), whole(rounds, "rounds", 1, 1000)
    models = settings.pop("models", bench.DEFAULT_MODELS)
    if model not in models:
        raise InputError(f"there is no model {model!r}: expected one of {', '.join(models)}; choose one of them")
    record = bench.measure(
        folder,
        rounds=trials * rounds,
        models=dict.fromkeys(NAMES, models[model]),
        timeout_s=timeout_s,
        progress=progress,
        **settings,
    )
    return reading(record, rounds, confidence)


def reading(record: Benchmark, rounds: int, confidence: float = 0.95) -> dict[str, Any]:
    """What an A/A record shows, each ``rounds`` rounds of it being one trial.

    Returns ``file`` (None for a model that lies in no folder of the user's), ``trials``, ``rounds``, ``confidence`` and
    ``batches`` {batch size: {``false_alarms``, ``false_alarm_rate`` with its exact interval ``rate_low`` to
    ``rate_high``, ``ratio`` over all rounds with ``low`` and ``high``, ``process_sd_percent`` (how far medians of equal
    processes lie apart, standard deviation), ``detectable_percent`` (half the width that an interval of ``rounds``
    rounds typically has; None for one round)}}; ``low``, ``high`` and the last two are None where a single round was
    measured.
    """
    first, second = record["models"]
    rounds = whole(rounds, "rounds", 1, len(record["protocol"]["order"]))
    return {
        "file": record["models"][first]["file"],
        "trials": len(record["protocol"]["order"]) // rounds,
        "rounds": rounds,
        "confidence": confidence,
        "batches": {
            str(size): _batch(_series(record, first, size), _series(record, second, size), rounds, confidence)
            for size in record["protocol"]["batch_sizes"]
        },
    }


def lines(result: dict[str, Any]) -> list[str]:
    """A reading for a person, one line per sentence."""
    trials = "1 trial" if result["trials"] == 1 else f"{result['trials']} trials"
    what = result["file"] or "a network of the lab's shape with random weights"
    text = [f"A/A: {what} against itself, {trials} of {result['rounds']} rounds"]
    for size, batch in result["batches"].items():
        text.append(f"batch {size}: {_alarms(batch, result['trials'], 100 * result['confidence'])}")
        if batch["detectable_percent"] is not None:
            text.append(
                f"batch {size}: equal processes differ by {batch['process_sd_percent']:.1f} % (standard deviation);"
                f" with {result['rounds']} rounds less than about {batch['detectable_percent']:.1f} % is noise here"
            )
    return text


def _alarms(batch: dict[str, Any], trials: int, percent: float) -> str:
    if trials > 1:
        return (
            f"{batch['false_alarms']} false alarms in {trials} trials ({100 * batch['false_alarm_rate']:.0f} %,"
            f" {percent:g} % interval {100 * batch['rate_low']:.0f} to {100 * batch['rate_high']:.0f} %;"
            f" promised {100 - percent:.0f} %)"
        )
    told = "a false alarm" if batch["false_alarms"] else "not told apart, as it should be"
    interval = "" if batch["low"] is None else f" ({percent:g} % interval {batch['low']:.3f} to {batch['high']:.3f})"
    return f"time ratio to itself {batch['ratio']:.3f}{interval}: {told}"


def _series(record: Benchmark, name: str, size: int) -> list[list[float]]:
    runs = sorted((run for run in record["runs"] if run["model"] == name), key=lambda run: int(run["round"]))
    return [run["samples_us"][str(size)] for run in runs]


def _batch(
    first: Sequence[list[float]], second: Sequence[list[float]], rounds: int, confidence: float
) -> dict[str, Any]:
    starts = range(0, len(first) - rounds + 1, rounds)
    verdicts = [
        stats.compare(first[start : start + rounds], second[start : start + rounds], confidence)["verdict"]
        for start in starts
    ]
    alarms = sum(verdict != "inconclusive" for verdict in verdicts)
    low, high = stats.proportion_interval(alarms, len(verdicts), confidence)
    overall = stats.compare(first, second, confidence)
    deviation = _deviation([math.log(ratio) for ratio in overall["round_ratios"]])
    detectable = None
    if deviation is not None and rounds > 1:
        detectable = 100 * math.expm1(stats.t_quantile((1 + confidence) / 2, rounds - 1) * deviation / rounds**0.5)
    return {
        "false_alarms": alarms,
        "false_alarm_rate": alarms / len(verdicts),
        "rate_low": low,
        "rate_high": high,
        "ratio": overall["ratio"],
        "low": overall["low"],
        "high": overall["high"],
        # A log ratio carries the noise of two processes, hence the root of two.
        "process_sd_percent": None if deviation is None else 100 * deviation / math.sqrt(2),
        "detectable_percent": detectable,
    }


def _deviation(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
