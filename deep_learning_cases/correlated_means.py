"""The mean of a long series whose neighbours are alike: how far it can be trusted, in memory that does not grow.

Requests that wait behind each other are not independent, and the usual s / sqrt(n) is too small by a factor of ten and
more.
"""

import math

import numpy as np

from deep_learning_cases.arrivals import Floats

__all__ = ["BinnedMeans", "standard_error"]


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
