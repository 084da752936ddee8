"""Which samples a mistaken function uses: the first of the three places in which a mistake can sit."""

# Tables of lambdas that keep a loop's value as a default, whose types are not inferred.
# mypy: disable-error-code="misc"

import math
import statistics
from collections.abc import Callable

import numpy as np

from grading.exercises.latency_stats.arithmetic import Samples, View, hundreds, sample_spread, spread, thirds

__all__ = ["VIEWS"]


def _below(limit: Callable[[Samples], float]) -> View:
    def view(samples: Samples) -> Samples:
        bound = limit(samples)
        return [sample for sample in samples if sample <= bound]

    return view


def _between(limits: Callable[[Samples], tuple[float, float]]) -> View:
    def view(samples: Samples) -> Samples:
        low, high = limits(samples)
        return [sample for sample in samples if low <= sample <= high]

    return view


def _times(factor: float, middle: Callable[[Samples], float]) -> View:
    return _below(lambda samples: factor * middle(samples))


def _sigmas(width: float, spread: Callable[[Samples], float]) -> View:
    def limits(samples: Samples) -> tuple[float, float]:
        mean, sigma = statistics.fmean(samples), spread(samples) if len(samples) > 1 else 0.0
        return mean - width * sigma, mean + width * sigma

    return _between(limits)


def _fences(width: float, quartiles: Callable[[Samples], tuple[float, float]]) -> View:
    def limits(samples: Samples) -> tuple[float, float]:
        low, high = quartiles(samples)
        return low - width * (high - low), high + width * (high - low)

    return _between(limits)


def _numpy_quartiles(samples: Samples) -> tuple[float, float]:
    return float(np.percentile(samples, 25)), float(np.percentile(samples, 75))


def _stdlib_quartiles(samples: Samples) -> tuple[float, float]:
    low, _, high = statistics.quantiles(samples, n=4)
    return low, high


def _rounded(digits: int) -> View:
    return lambda samples: [round(sample, digits) for sample in samples]


def _cut(cut: Callable[[list[float], int], Samples]) -> View:
    """The sorted samples, cut: the order is lost, which no rule but an unsorted one notices."""
    return lambda samples: cut(sorted(samples), len(samples))


VIEWS: tuple[tuple[str | None, View], ...] = (
    (None, lambda samples: samples),
    ("drops-ties", lambda samples: list(dict.fromkeys(samples))),
    ("drops-ties", lambda samples: sorted(set(samples))),
    *(("drops-slow-samples", _times(k, statistics.median)) for k in (1.5, 2, 3, 4, 5, 10, 20)),
    *(("drops-slow-samples", _times(k, statistics.fmean)) for k in (1.5, 2, 3, 4, 5, 10)),
    *(("drops-slow-samples", _sigmas(k, spread)) for k in (1, 2, 2.5, 3)),
    *(("drops-slow-samples", _sigmas(k, sample_spread)) for k in (1, 2, 2.5, 3)),
    *(("drops-slow-samples", _fences(k, _numpy_quartiles)) for k in (1.5, 3)),
    *(("drops-slow-samples", _fences(k, _stdlib_quartiles)) for k in (1.5, 3)),
    *(("drops-slow-samples", _cut(lambda s, n, k=k: s[: n - k])) for k in (1, 2, 3, 5, 10)),
    *(("drops-slow-samples", _cut(lambda s, n, k=k: s[: int(n * k)])) for k in (0.9, 0.95, 0.98, 0.99)),
    *(("drops-slow-samples", _cut(lambda s, n, k=k: s[: math.ceil(n * k)])) for k in (0.9, 0.95, 0.98, 0.99)),
    *(
        ("drops-slow-samples", _cut(lambda s, n, k=k: s[int(n * k) : n - int(n * k)]))
        for k in (0.01, 0.02, 0.05, 0.1, 0.25)
    ),
    *(("drops-slow-samples", _below(lambda s, p=p: float(np.percentile(s, p)))) for p in (90, 95, 98, 99)),
    ("drops-slow-samples", _cut(lambda s, n: s[1 : n - 1])),
    ("part-of-the-samples", lambda samples: samples[: max(1, len(samples) // 3)]),
    ("part-of-the-samples", lambda samples: samples[len(samples) // 3 : 2 * (len(samples) // 3)]),
    ("part-of-the-samples", lambda samples: samples[2 * (len(samples) // 3) :]),
    ("part-of-the-samples", lambda samples: samples[-(len(samples) // 3) :]),
    ("part-of-the-samples", lambda samples: samples[-max(1, len(samples) // 3) :]),
    ("part-of-the-samples", lambda samples: samples[: max(1, len(samples) // 2)]),
    ("part-of-the-samples", lambda samples: samples[len(samples) // 2 :]),
    ("part-of-the-samples", lambda samples: samples[::2]),
    ("part-of-the-samples", lambda samples: samples[::3]),
    ("part-of-the-samples", lambda samples: samples[100:200]),
    ("part-of-the-samples", lambda samples: samples[:-1]),
    *(("part-of-the-samples", lambda samples, k=k: samples[:k]) for k in (10, 20, 30, 50, 100, 200)),
    *(("part-of-the-samples", lambda samples, k=k: samples[-k:]) for k in (10, 20, 30, 50, 100, 200)),
    *(("part-of-the-samples", lambda samples, k=k: samples[k:]) for k in (1, 2, 3, 5, 10, 20, 30)),
    *(("part-of-the-samples", lambda samples, k=k: samples[len(samples) // k :]) for k in (10, 20)),
    ("replaces-samples-by-means", lambda samples: [statistics.fmean(part) for part in thirds(samples)]),
    ("replaces-samples-by-means", lambda samples: [statistics.fmean(part) for part in hundreds(samples)]),
    *(("rounds-times", _rounded(digits)) for digits in (0, 1, 2, 3)),
    ("rounds-times", lambda samples: [math.floor(sample) for sample in samples]),
)
