"""How far the percentiles of a load can be trusted.

Requests that wait behind each other share their luck: ten thousand of them may say no more than two hundred
independent ones would.  The order-statistic interval of :mod:`~deep_learning_cases.measuring.stats` is for independent
samples; on latencies of a queue it covers far too seldom (``python -m benchmarks.coverage load``).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.batching.streaming import BinnedMeans, standard_error
from deep_learning_cases.measuring.distributions import t_quantile

__all__ = ["CONFIDENCE", "Interval", "Latencies"]

CONFIDENCE = 0.95
NORMAL = 1.959964

BATCHES = 16
"""Long stretches whose means are held against the autocovariances; each should be longer than a queue's memory."""

LEAST = 150
LEAST_ABOVE = 20
"""An interval needs so many independent requests, and so many of them above the percentile.

With fewer, a run that happened to meet no long queue looks uncorrelated, and its interval is too short and too low.
Chosen with ``benchmarks.coverage``: the smallest with which no case has more wrong intervals than its 5 %.
"""


class Interval(NamedTuple):
    """Two of the values, between which the percentile of an endless run lies; or neither, and the reason."""

    low: float | None
    high: float | None
    reason: str | None


class Latencies:
    """Times of one kind, (n,) with n >= 1, in the order in which the requests were meant to start."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self.ordered: Floats = np.sort(values)
        self._mean_counts_as = _independent(float(values.var()), _error(values), len(values))

    def percentile(self, percent: int) -> float:
        """Nearest rank: the value of rank ceil(percent n / 100)."""
        return float(self.ordered[-(-percent * len(self.ordered) // 100) - 1])

    def interval(self, percent: int) -> Interval:
        """The 95 % interval of a percentile, for correlated values.

        The share of values at or below the percentile is the mean of a series of zeros and ones, whose standard error
        takes the correlation into account (:func:`_error`); the ends are the values at that share plus and minus 1.96
        of them.  It is never narrower than for independent values.
        """
        n, share = len(self._values), percent / 100
        found = _error((self._values <= self.percentile(percent)).astype(np.float64))
        error = None if found is None else max(found, math.sqrt(share * (1 - share) / n))
        alike = min(self._mean_counts_as, _independent(share * (1 - share), error, n))
        needed = max(LEAST, -(-100 * LEAST_ABOVE // (100 - percent)))
        if error is None or alike < needed:
            many = f"{n} request{'s' * (n != 1)}" + (f" count as about {alike:.0f} independent ones" if alike else "")
            return Interval(None, None, f"no interval: {many}, {needed} needed; send for longer")
        low = max(1, math.floor((share - NORMAL * error) * n))
        high = min(n, math.ceil((share + NORMAL * error) * n) + 1)
        return Interval(float(self.ordered[low - 1]), float(self.ordered[high - 1]), None)


def _error(values: Floats) -> float | None:
    """Standard error of the mean of a correlated series; None for one too short.

    The larger of two: from the autocovariances (:func:`standard_error`), which miss what comes too seldom to be seen
    twice; and from the means of 16 long stretches, which notice it, by Student's t (Law and Kelton, "Simulation
    Modeling and Analysis": batch means).
    """
    width = 1
    while len(values) // width >= BinnedMeans.MOST:
        width *= 2
    stretches = _means(values, width)
    error = standard_error(stretches)
    if error is None or len(stretches) < 2 * BATCHES:
        return None
    long = _means(stretches, len(stretches) // BATCHES)[:BATCHES]
    widened = t_quantile((1 + CONFIDENCE) / 2, BATCHES - 1) / NORMAL
    return max(error, float(long.std(ddof=1)) / math.sqrt(BATCHES) * widened)


def _means(values: Floats, width: int) -> NDArray[np.float64]:
    means: NDArray[np.float64] = values[: len(values) // width * width].reshape(-1, width).mean(axis=1)
    return means


def _independent(variance: float, error: float | None, n: int) -> float:
    """How many independent values have this error of their mean, at most ``n``; 0 where it is not known."""
    if error is None:
        return 0.0
    return min(float(n), variance / error**2) if error > 0 else float(n)
