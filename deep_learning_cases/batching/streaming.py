"""A series of any length in memory that does not grow: its percentiles, and its mean with how far it can be trusted.

Requests that wait behind each other are not independent, and the usual s / sqrt(n) is too small by a factor of ten and
more.
"""

import math

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.arrivals import Floats

__all__ = ["PERCENTS", "BinnedMeans", "LogHistogram", "ranks", "standard_error"]

PERCENTS = (50, 95, 99)


def ranks(count: int) -> list[int]:
    """Nearest rank: ceil(p n / 100), counted from 1, in integers."""
    return [-(-percent * count // 100) for percent in PERCENTS]


class LogHistogram:
    """Percentiles of any number of values from counts in bins of about equal relative width.

    Every factor of two is cut into 1024 bins of equal width, as in Tene's HdrHistogram; the bin of a number is then the
    leading bits of its floating-point form, and no logarithm is needed.  The middle of a bin is within
    ``RELATIVE_ERROR`` of everything in it.  The rank is exact.  Values below 2^-30 s (0.9 ns) count as zero, values
    from 2^30 s (34 years) on as 2^30 s.  Takes 490 kB.
    """

    RELATIVE_ERROR = 1 / 2048
    LOWEST = 2.0**-30
    _SHIFT = 52 - 10
    _BELOW = (1023 - 30 << 10) - 1
    _LAST = (60 << 10) + 1

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(self._LAST + 1, dtype=np.int64)

    def add(self, values: Floats) -> None:
        """``values`` (n,), at least 0."""
        bins = np.ascontiguousarray(values).view(np.int64) >> self._SHIFT
        bins -= self._BELOW
        np.clip(bins, 0, self._LAST, out=bins)
        self.counts += np.bincount(bins, minlength=self._LAST + 1)

    def percentiles(self) -> list[float]:
        """The middle of each percentile's bin."""
        found = (self.bin_of(rank) for rank in ranks(int(self.counts.sum())))
        return [
            0.0 if low == 0 else self._edge(self._LAST) if high == math.inf else (low + high) / 2
            for low, high, _ in found
        ]

    def bin_of(self, rank: int) -> tuple[float, float, int]:
        """Lower and upper edge of the bin with the rank-th smallest value, and how many values are in bins below."""
        cumulative = np.cumsum(self.counts)
        place = int(np.searchsorted(cumulative, rank))
        below = int(cumulative[place] - self.counts[place])
        low = 0.0 if place == 0 else self._edge(place)
        return low, math.inf if place == self._LAST else self._edge(place + 1), below

    def _edge(self, place: int) -> float:
        bits = np.array([place + self._BELOW << self._SHIFT], dtype=np.int64)
        return float(bits.view(np.float64)[0])


class BinnedMeans:
    """Means of consecutive stretches of a series of any length, at most ``MOST`` of them.

    When there are too many, neighbours are merged and stretches become twice as long.  The values after the last whole
    stretch are held back.
    """

    MOST = 4096

    def __init__(self) -> None:
        self.width = 1
        self.means: Floats = np.empty(0)
        self._rest: Floats = np.empty(0)

    def add(self, values: Floats) -> None:
        """Take in the next values of the series, seconds in order."""
        values = np.concatenate((self._rest, values))
        whole = len(values) // self.width * self.width
        means = values[:whole].reshape(-1, self.width).mean(axis=1)
        self._rest = values[whole:]
        self.means = np.concatenate((self.means, means))
        while len(self.means) >= self.MOST:
            even = len(self.means) // 2 * 2
            odd = self.means[even:]
            self.means = self.means[:even].reshape(-1, 2).mean(axis=1)
            # A stretch without a partner is half a new one; its mean stands for its values until the rest arrives.
            self._rest = np.concatenate((np.repeat(odd, self.width), self._rest))
            self.width *= 2


def standard_error(means: Floats) -> float | None:
    """Standard error of the mean of a stationary, positively correlated series, from the means of its stretches.

    The variance of a mean is the sum of all autocovariances over n.  Estimated ones are noise at long lags, so they are
    summed in pairs as long as the pairs are positive, each no larger than the one before (Geyer 1992, "Practical Markov
    chain Monte Carlo", initial monotone sequence).  Unlike plain batch means this needs no stretch longer than the
    correlation, whose length is not known beforehand; unlike the regenerative method it needs no moments at which the
    queue is empty, which a batch server under load hardly has.  Each estimated autocovariance is too small by the
    variance of the mean itself; that is put right in the denominator.

    The estimate is itself uncertain: summing L lags of n stretches leaves about n / (2 L + 1) degrees of freedom
    (Madras and Sokal 1988), so it is widened by the standard deviation of Student's t with so many.  Without that, a
    run that is short for its load would fail a three-sigma check too often.  Never below the value for independent
    stretches.
    None for fewer than 8 stretches.
    """
    count = len(means)
    if count < 8:
        return None
    centred = means - means.mean()
    spectrum = np.fft.rfft(centred, 2 * count)
    covariances = np.fft.irfft(spectrum * spectrum.conj(), 2 * count)[:count] / count
    pairs = covariances[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    down = np.flatnonzero(pairs <= 0)
    used = max(1, int(down[0]) if down.size else len(pairs))
    total = 2 * float(np.minimum.accumulate(pairs[:used]).sum()) - float(covariances[0])
    degrees = max(count / (4 * used - 1), 3.0)
    variance = total / max(count + 1 - 4 * used, count // 4) * degrees / (degrees - 2)
    return math.sqrt(max(variance, float(covariances[0]) / (count - 1), 0.0))
