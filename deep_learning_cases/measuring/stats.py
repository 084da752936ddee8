"""Percentiles by named definition, their order-statistic intervals, and the comparison of two models.

Pure Python on purpose: the measuring kit and the student's notebook can both load it without SciPy.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import fraction, number, shown, whole
from deep_learning_cases.measuring.distributions import (
    proportion_interval,
    samples_needed,
    t_quantile,
    tail_rank,
)

__all__ = [
    "PercentileInterval",
    "compare",
    "latency_summary",
    "nearest_rank",
    "percentile",
    "percentile_interval",
    "proportion_interval",
    "t_quantile",
]

_STATISTICS = ("p50", "p95", "mean")


class PercentileInterval(NamedTuple):
    """A confidence interval of a percentile whose ends are two of the samples themselves.

    ``low`` and ``high`` are in the unit of the samples and are both ``None`` where no such interval exists; ``reason``
    then says why and is ``None`` otherwise.  ``low_rank`` and ``high_rank`` count from 1 in the sorted samples;
    ``coverage`` is the probability actually reached, at least the confidence asked for.
    """

    low: float | None
    high: float | None
    reason: str | None
    low_rank: int | None = None
    high_rank: int | None = None
    coverage: float | None = None


def latency_summary(samples_us: Iterable[float], batch_size: int) -> dict[str, Any]:
    """Four numbers about the timings of one model at one batch size.

    Args:
        samples_us: every raw timing in microseconds per batch, in any order (list, tuple, NumPy array); not changed.
        batch_size: images per call.

    Returns:
        ``n`` (timings), ``p50_us`` (median; the mean of the middle two for an even count), ``p95_us`` (nearest rank:
        the ceil(0.95 n)-th smallest) and ``images_per_second`` (batch_size * n * 1,000,000 / sum of the timings).

    Raises:
        InputError (a ValueError): no samples; a sample that is not a finite number greater than 0; a batch size that is
        not a positive integer.
    """
    size = whole(batch_size, "batch_size")
    ordered = sorted(_positive(samples_us))
    n = len(ordered)
    try:
        images_per_second = size * n * 1_000_000 / _sum(ordered)
    except OverflowError:  # an integer, unlike a float, may be larger than any float
        images_per_second = math.inf
    if not math.isfinite(images_per_second):
        raise InputError(
            f"the {n} samples are too small, or the batch size too large, to divide: expected microseconds per batch;"
            " check the unit"
        )
    return {
        "n": n,
        "p50_us": _median(ordered),
        "p95_us": ordered[nearest_rank(n, Fraction(19, 20)) - 1],
        "images_per_second": images_per_second,
    }


def percentile(samples: Iterable[float], p: float, method: str = "nearest_rank") -> float:
    """The ``p``-quantile (0 <= p <= 1) of ``samples`` by a named definition, in the unit of the samples.

    ``nearest_rank``: the ceil(p n)-th smallest (for p = 0 the smallest), Hyndman and Fan's type 1, NumPy's
    ``inverted_cdf``.  ``linear``: between the neighbours of rank 1 + (n - 1) p, type 7, NumPy's default.  Ranks are
    computed in exact fractions, so that 0.9 + 0.05 means 95 %.

    Source: Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996).

    Raises InputError: no samples, a sample that is not a finite number, p outside [0, 1], an unknown method.
    """
    ordered, level = sorted(_finite(samples)), _level(p)
    if method == "nearest_rank":
        return ordered[nearest_rank(len(ordered), level) - 1]
    if method != "linear":
        raise InputError(f"method is {method!r}: expected 'nearest_rank' or 'linear'; choose one of them")
    position = (len(ordered) - 1) * level
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + float(position - below) * (ordered[above] - ordered[below])


def nearest_rank(n: int, level: Fraction) -> int:
    """Rank ceil(level * n), counted from 1, of the nearest-rank definition; exact, as ``level`` is a fraction."""
    return max(1, math.ceil(level * n))


def percentile_interval(samples: Iterable[float], p: float, confidence: float = 0.95) -> PercentileInterval:
    """Distribution-free interval [X(l), X(u)] of the ``p``-quantile from order statistics.

    With B ~ Binomial(n, p) the interval covers with probability P(l <= B <= u - 1); l is the largest and u the smallest
    rank that leave at most (1 - confidence) / 2 on their side.  Where even the smallest or largest sample leaves more,
    there are too few samples and the result has no ends but the reason (300 samples give no interval for p99).

    Valid for independent samples; timings from one process hang together, so read it as the least uncertainty.

    Source: David and Nagaraja, Order Statistics, 3rd edition (2003), section 7.1.

    Raises InputError: no samples, a sample that is not a finite number, p or confidence not strictly between 0 and 1.
    """
    ordered, level, tail = sorted(_finite(samples)), _level(p), (1 - fraction(confidence, "confidence")) / 2
    if not 0 < level < 1:
        raise InputError(f"p is {p!r}: expected more than 0 and less than 1; an extreme has no two-sided interval")
    n, share = len(ordered), float(level)
    low_rank, below = tail_rank(n, share, tail)
    steps, above = tail_rank(n, 1 - share, tail)
    if low_rank == 0 or steps == 0:
        needed = samples_needed(max(share, 1 - share), tail)
        return PercentileInterval(
            None,
            None,
            f"too few samples: {n} for p{100 * share:g}, at least {needed} needed for {100 * confidence:g} %",
        )
    high_rank = n + 1 - steps
    return PercentileInterval(
        ordered[low_rank - 1], ordered[high_rank - 1], None, low_rank, high_rank, 1 - below - above
    )


def compare(
    rounds_a: Sequence[Iterable[float]],
    rounds_b: Sequence[Iterable[float]],
    confidence: float = 0.95,
    statistic: str = "p50",
) -> dict[str, Any]:
    """Is ``a`` faster or slower than ``b``?  One log ratio per round, then Student's t over the rounds.

    Timings of one process share its memory layout and moment, so a hundred of them are not a hundred observations of
    the difference: the round is.  Each round gives one number, log(statistic of a / statistic of b).

    Args:
        rounds_a: the timings of ``a``, one sequence per round, in any unit of time.
        rounds_b: the timings of ``b``, measured in the same rounds and the same unit.
        confidence: of the interval, between 0 and 1.
        statistic: what stands for a round: ``p50``, ``p95`` (nearest rank) or ``mean``.

    Returns:
        ``verdict`` ("faster": a takes less time than b with the whole interval under 1; "slower"; "inconclusive"),
        ``ratio`` (time of a / time of b, geometric mean over the rounds), ``low`` and ``high`` (its confidence
        interval; None where one round alone tells nothing of the noise), ``confidence``, ``statistic``, ``rounds``,
        ``round_ratios`` and ``reason`` (one sentence).

    Source: Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013 (repetition at the level that
    varies); Student, "The probable error of a mean", Biometrika 6 (1908).

    Raises InputError: no round, a different number of rounds, samples that are not finite and positive, an unknown
    statistic, a confidence outside (0, 1).
    """
    confidence = fraction(confidence, "confidence")
    if statistic not in _STATISTICS:
        raise InputError(f"statistic is {statistic!r}: expected one of {', '.join(_STATISTICS)}; choose one of them")
    if len(rounds_a) != len(rounds_b) or not len(rounds_a):
        raise InputError(
            f"{len(rounds_a)} and {len(rounds_b)} rounds: expected the same number, at least one;"
            " pair them round by round"
        )
    logs = [
        math.log(_of_round(a, statistic)) - math.log(_of_round(b, statistic))
        for a, b in zip(rounds_a, rounds_b, strict=True)
    ]
    count, mean = len(logs), math.fsum(logs) / len(logs)
    result: dict[str, Any] = {
        "verdict": "inconclusive",
        "ratio": math.exp(mean),
        "low": None,
        "high": None,
        "confidence": confidence,
        "statistic": statistic,
        "rounds": count,
        "round_ratios": [math.exp(value) for value in logs],
    }
    if count < 2:
        return result | {"reason": "one round does not show the noise between processes: measure at least 2, better 3"}
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (count - 1))
    half = t_quantile((1 + confidence) / 2, count - 1) * deviation / math.sqrt(count)
    low, high = _exp(mean - half), _exp(mean + half)
    verdict = "faster" if high < 1 else "slower" if low > 1 else "inconclusive"
    place = {"faster": "lies below 1", "slower": "lies above 1", "inconclusive": "contains 1"}[verdict]
    reason = f"time ratio {math.exp(mean):.3f}, {100 * confidence:g} % interval {low:.3f} to {high:.3f} {place}"
    return result | {"verdict": verdict, "low": low, "high": high, "reason": reason}


def _of_round(samples: Iterable[float], statistic: str) -> float:
    ordered = sorted(_positive(samples))
    if statistic == "mean":
        return _sum(ordered) / len(ordered)
    return _median(ordered) if statistic == "p50" else ordered[nearest_rank(len(ordered), Fraction(19, 20)) - 1]


def _median(ordered: list[float]) -> float:
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError as error:
        raise InputError(
            f"the sum of {len(values)} samples is too large: expected microseconds; check the unit"
        ) from error


def _positive(samples: Iterable[float]) -> list[float]:
    values = _finite(samples)
    for index, value in enumerate(values):
        if value <= 0:
            raise InputError(f"sample {index} is {value!r}: expected a finite number greater than 0; measure it again")
    return values


def _finite(samples: Iterable[float]) -> list[float]:
    """The samples as a new list of floats: the caller's own stay as they were."""
    try:
        values = list(samples)
    except TypeError as error:
        raise InputError(f"samples are {samples!r}: expected a sequence of numbers; pass the raw timings") from error
    if not values:
        raise InputError("there are no samples: expected at least one; pass the raw timings")
    return [_number(value, index) for index, value in enumerate(values)]


def _number(value: object, index: int) -> float:
    found = number(value)
    if not math.isfinite(found):
        raise InputError(f"sample {index} is {shown(value)}: expected a finite number greater than 0; measure it again")
    return found


def _level(p: float) -> Fraction:
    """``p`` as the fraction that was meant: a float stands for the nearest fraction with a denominator up to 1e9."""
    value: object = p
    if not 0 <= number(value) <= 1:
        raise InputError(f"p is {shown(value)}: expected a number from 0 to 1; write 0.95 for the 95th percentile")
    return Fraction(value) if isinstance(value, Rational) else Fraction(number(value)).limit_denominator(10**9)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
