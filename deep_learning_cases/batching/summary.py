"""A run of the queue in a few numbers, each with how far it can be trusted, in memory that does not grow with the run.

* Percentiles are nearest rank, exact where the waits are kept, else from a histogram with logarithmic bins whose answer
  is within 0.05 % of the exact one (:class:`LogHistogram`).
* The standard error accounts for correlation: requests that wait behind each other are not independent, and the usual
  s / sqrt(n) is too small by a factor of ten and more (:func:`standard_error`).
* The warm-up is simulated and not counted: a run starts with an empty queue, and its first requests wait too little.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.batching.queueing import Batches
from deep_learning_cases.batching.streaming import PERCENTS, BinnedMeans, LogHistogram, ranks, standard_error
from deep_learning_cases.errors import InputError

__all__ = ["Collector", "Summary", "warm_up_requests"]

MAX_WARM_UP = 1_000_000

MIN_WARMED_UP = 1000
"""A shorter run is worked by hand or recorded: nothing of it is dropped."""

FEW_INDEPENDENT = 100.0


def warm_up_requests(requests: int) -> int:
    """So many requests at the start are not counted: a tenth, at most a million; none of fewer than a thousand.

    A fixed share, not one chosen from the data, since looking for the flattest place biases the mean.  At load rho the
    empty start is forgotten after about 1 / (1 - sqrt(rho))^2 service times (M/M/1; Cohen 1982, "The Single Server
    Queue"): 90 at a load of 0.8, 40,000 at 0.99.
    """
    return min(requests // 10, MAX_WARM_UP) if requests >= MIN_WARMED_UP else 0


@dataclass(frozen=True)
class Summary:
    """What a run of the queue showed; times in seconds, over the requests that were let in after the warm-up.

    ``wait`` is from arrival to the start of the batch, ``time_in_system`` to its end.  ``utilisation`` is the busy
    share from the first counted batch's start to the last batch's end.  ``standard_error_s`` is that of the mean wait,
    and ``errors_s`` holds those of every mean and percentile (None where percentiles come from the histogram).
    ``offered`` and ``refused`` count the whole run.  ``independent`` is how many independent waits would give the same
    standard error; with few of them even that error is a guess.
    """

    mean_wait_s: float
    wait_p50_s: float
    wait_p95_s: float
    wait_p99_s: float
    mean_time_in_system_s: float
    time_in_system_p50_s: float
    time_in_system_p95_s: float
    time_in_system_p99_s: float
    utilisation: float
    mean_batch: float
    standard_error_s: float | None
    offered: int
    refused: int
    counted: int
    batches: int
    warm_up: int
    independent: float | None
    percentiles: str
    errors_s: dict[str, float | None] = field(default_factory=dict)

    KEYS = (
        "mean_wait_s", "wait_p50_s", "wait_p95_s", "wait_p99_s",
        "mean_time_in_system_s", "time_in_system_p50_s", "time_in_system_p95_s", "time_in_system_p99_s",
        "utilisation", "mean_batch", "standard_error_s",
    )  # fmt: skip

    @property
    def trusted(self) -> bool:
        """Whether the run is long enough for its own standard error to mean something."""
        return self.independent is not None and self.independent >= FEW_INDEPENDENT

    def as_dict(self) -> dict[str, Any]:
        """The numbers that ``dlcases batching --simulate --json`` prints."""
        return {key: getattr(self, key) for key in self.KEYS}


class _Times:
    """One kind of time: its sum, its correlation, its percentiles."""

    def __init__(self, exact: bool) -> None:
        self.total = self.squares = 0.0
        self.bins = BinnedMeans()
        self._kept: list[Floats] | None = [] if exact else None
        self._histogram = LogHistogram()
        self._sorted: dict[float, Floats] = {}

    def add(self, values: Floats) -> None:
        self.total += float(values.sum())
        self.squares += float(np.square(values).sum())
        self.bins.add(values)
        self._histogram.add(values)
        if self._kept is not None:
            self._kept.append(values)

    def percentiles(self) -> tuple[list[float], list[float | None]]:
        """The percentiles and their standard errors."""
        if self._kept is None:
            return self._histogram.percentiles(), [None] * len(PERCENTS)
        values = np.concatenate(self._kept)
        self._sorted.clear()
        found = [self._exact(values, rank) for rank in ranks(len(values))]
        return found, [self._error(values, percent, value) for percent, value in zip(PERCENTS, found, strict=True)]

    def _exact(self, values: Floats, rank: int) -> float:
        """The rank-th smallest: only the bin it lies in has to be sorted."""
        low, high, below = self._histogram.bin_of(rank)
        if low not in self._sorted:
            self._sorted[low] = np.sort(values[(values >= low) & (values < high)])
        return float(self._sorted[low][rank - 1 - below])

    def _error(self, values: Floats, percent: int, found: float) -> float | None:
        """Half the distance between the percentiles one standard error of the rank below and above.

        The rank's error is that of the share of values at or below the percentile, a mean like any other.
        """
        width = 1
        while len(values) // width >= BinnedMeans.MOST:
            width *= 2
        stretches = (values <= found)[: len(values) // width * width].reshape(-1, width)
        error = standard_error(np.count_nonzero(stretches, axis=1) / width)
        if error is None:
            return None
        ranks = (round((percent / 100 + sign * error) * len(values)) for sign in (-1, 1))
        low, high = (self._exact(values, min(max(rank, 1), len(values))) for rank in ranks)
        return (high - low) / 2


def _independent(variance: float, error: float | None, counted: int, scale_s: float) -> float | None:
    """How many independent waits have this error; all of them where they differ by no more than rounding does."""
    if error is None:
        return None
    return float(counted) if error <= 1e-9 * scale_s else variance / error**2


class Collector:
    """Takes the batches of a run as they come and sums them up."""

    def __init__(self, warm_up: int, exact: bool) -> None:
        self.warm_up, self.exact = warm_up, exact
        self._waits, self._totals = _Times(exact), _Times(exact)
        self._seen = self._counted = self._batches = self._in_batches = self._refused = 0
        self._busy_s, self._begin_s, self._end_s = 0.0, math.inf, -math.inf

    def add(self, batches: Batches) -> None:
        """The next batches of the run."""
        if batches.accepted is not None:
            self._refused += int(len(batches.accepted) - np.count_nonzero(batches.accepted))
        if not len(batches.sizes):
            return
        skip = min(max(self.warm_up - self._seen, 0), len(batches.arrivals_s))
        arrivals = batches.arrivals_s[skip:]
        self._waits.add(np.repeat(batches.starts_s, batches.sizes)[skip:] - arrivals)
        self._totals.add(np.repeat(batches.finishes_s, batches.sizes)[skip:] - arrivals)
        self._counted += len(arrivals)
        first = int(np.searchsorted(np.cumsum(batches.sizes) - batches.sizes, skip))
        self._seen += len(batches.arrivals_s)
        if first < len(batches.sizes):
            self._batches += len(batches.sizes) - first
            self._in_batches += int(batches.sizes[first:].sum())
            self._busy_s += float((batches.finishes_s[first:] - batches.starts_s[first:]).sum())
            self._begin_s = min(self._begin_s, float(batches.starts_s[first]))
            self._end_s = float(batches.finishes_s[-1])

    def summary(self) -> Summary:
        """Of everything added so far; InputError unless a batch begins after the warm-up."""
        counted = self._counted
        if not self._batches:
            raise InputError(
                f"no batch begins after the warm-up of {self.warm_up} requests: expected more; raise their number"
            )
        numbers: dict[str, float] = {}
        errors: dict[str, float | None] = {}
        for name, times in (("wait", self._waits), ("time_in_system", self._totals)):
            numbers[f"mean_{name}_s"] = times.total / counted
            errors[f"mean_{name}_s"] = standard_error(times.bins.means)
            found, uncertain = times.percentiles()
            keys = [f"{name}_p{percent}_s" for percent in PERCENTS]
            numbers |= zip(keys, found, strict=True)
            errors |= zip(keys, uncertain, strict=True)
        error = errors["mean_wait_s"]
        variance = max(self._waits.squares / counted - numbers["mean_wait_s"] ** 2, 0.0)
        return Summary(
            **numbers,
            utilisation=self._busy_s / (self._end_s - self._begin_s),
            mean_batch=self._in_batches / self._batches,
            standard_error_s=error,
            offered=self._seen + self._refused,
            refused=self._refused,
            counted=counted,
            batches=self._batches,
            warm_up=self._seen - counted,
            independent=_independent(variance, error, self._counted, numbers["mean_time_in_system_s"]),
            percentiles="exact" if self.exact else f"histogram, within {100 * LogHistogram.RELATIVE_ERROR:.2g} %",
            errors_s=errors,
        )
