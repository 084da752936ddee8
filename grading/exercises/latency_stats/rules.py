"""What each known mistake would answer, as arithmetic on the raw samples.

An answer is built in three places, and a mistake sits in one of them: which samples are used (*view*), what is computed
from them (*rule*), and what is done to the number afterwards (*finish*).  ``None`` in front of a function says that it
is no mistake.  Several functions may share one id: they are the ways in which people make that mistake.

A function may raise, as the mistaken code would: an index past the end, a mean of nothing.
"""

# Tables of lambdas that keep a loop's value as a default, whose types are not inferred.
# mypy: disable-error-code="misc"

import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from grading.exercises.latency_stats.arithmetic import (
    SPLITS,
    Case,
    Finish,
    Rule,
    Samples,
    nearest_rank,
    sample_spread,
    spread,
)

__all__ = ["FINISHES", "RULES"]


def _at(place: Callable[[int], int], *, ordered: bool = True, clip: bool = False) -> Rule:
    """The sample at index ``place(n)``: Python's own indexing, in which -1 is the last and n is an error."""

    def rule(samples: Samples, _case: Case) -> float:
        index = place(len(samples))
        if clip:
            index = min(max(index, 0), len(samples) - 1)
        return (sorted(samples) if ordered else samples)[index]

    return rule


def _middle_two_unsorted(samples: Samples, _case: Case) -> float:
    n = len(samples)
    return (samples[(n - 1) // 2] + samples[n // 2]) / 2


def _as_text(rule: Rule) -> Rule:
    """``rule`` on samples in the order of their digits, in which ten comes before nine."""
    return lambda samples, case: rule(sorted(samples, key=str), case)


def _numpy(percent: float, method: Any) -> Rule:
    return lambda samples, _case: float(np.percentile(samples, percent, method=method))


def _quantiles(n: int, method: Any) -> Rule:
    return lambda samples, _case: statistics.quantiles(samples, n=n, method=method)[n * 19 // 20 - 1]


def _per_round(rule: Rule, join: Callable[[list[float]], float]) -> list[Rule]:
    def of(split: Callable[[Samples], list[Samples]]) -> Rule:
        return lambda samples, case: join([rule(part, case) for part in split(samples)])

    return [of(split) for split in SPLITS]


# --- rules: what is computed ------------------------------------------------------------------------------------------


def _mean(samples: Samples, _case: Case) -> float:
    return statistics.fmean(samples)


def _normal(z: float, spread: Callable[[Samples], float]) -> Rule:
    return lambda samples, _case: statistics.fmean(samples) + z * spread(samples)


_P50: tuple[tuple[str | None, Rule], ...] = (
    (None, lambda samples, _: statistics.median(samples)),
    ("mean-for-median", _mean),
    ("lower-median", _at(lambda n: (n - 1) // 2)),
    ("upper-median", _at(lambda n: n // 2)),
    ("not-sorted", _middle_two_unsorted),
    ("not-sorted", _at(lambda n: n // 2, ordered=False)),
    ("not-sorted", _at(lambda n: (n - 1) // 2, ordered=False)),
    ("sorted-as-text", _as_text(_middle_two_unsorted)),
    ("sorted-as-text", _as_text(_at(lambda n: n // 2, ordered=False))),
    *(("averaged-round-percentiles", rule) for rule in _per_round(lambda s, _: statistics.median(s), statistics.fmean)),
    *(
        ("averaged-round-percentiles", rule)
        for rule in _per_round(lambda s, _: statistics.median(s), statistics.median)
    ),
    *(("rank-used-as-index", _at(lambda n: math.ceil(n / 2), clip=clip)) for clip in (False, True)),
    *(("rank-used-as-index", _at(lambda n: n // 2 + 1, clip=clip)) for clip in (False, True)),
    *(("floor-rank", _at(lambda n: n // 2 - 1, clip=clip)) for clip in (False, True)),
    *(("rounded-rank", _at(lambda n: round(n / 2), clip=clip)) for clip in (False, True)),
    *(("rounded-rank", _at(lambda n: round(n / 2) - 1, clip=clip)) for clip in (False, True)),
    ("middle-of-the-range", lambda samples, _: (min(samples) + max(samples)) / 2),
    ("one-call-for-all", lambda samples, _: min(samples)),
    ("one-call-for-all", lambda samples, _: max(samples)),
    ("swapped-percentiles", lambda samples, _: nearest_rank(samples, 95)),
    ("percent-or-fraction", _numpy(0.5, "linear")),
    ("percent-or-fraction", _numpy(0.5, "inverted_cdf")),
)

_Z95 = (1.64, 1.6449, 1.645, statistics.NormalDist().inv_cdf(0.95), 1.65, 1.96, 2.0, 3.0)
_ROUND_P95: tuple[Rule, ...] = (
    lambda samples, _: nearest_rank(samples, 95),
    _numpy(95, "linear"),
    _at(lambda n: int(0.95 * n), clip=True),
    _at(lambda n: math.ceil(0.95 * n), clip=True),
)

_P95: tuple[tuple[str | None, Rule], ...] = (
    (None, lambda samples, _: nearest_rank(samples, 95)),
    *(("rank-used-as-index", _at(lambda n: math.ceil(0.95 * n), clip=clip)) for clip in (False, True)),
    ("rank-used-as-index", _at(lambda n: int(0.95 * n))),
    *(("floor-rank", _at(lambda n: int(0.95 * n) - 1, clip=clip)) for clip in (False, True)),
    *(("rounded-rank", _at(lambda n: round(0.95 * n) - 1, clip=clip)) for clip in (False, True)),
    *(("rounded-rank", _at(lambda n: int(0.95 * n + 0.5) - 1, clip=clip)) for clip in (False, True)),
    *(("rounded-rank", _at(lambda n: round(0.95 * n), clip=clip)) for clip in (False, True)),
    ("rounded-rank", _numpy(95, "closest_observation")),
    ("rank-from-n-minus-one", _at(lambda n: int(0.95 * (n - 1)))),
    ("rounded-rank", _numpy(95, "nearest")),
    ("rounded-rank", _at(lambda n: round(0.95 * (n - 1)))),
    *(("rank-one-too-low", _at(lambda n: math.ceil(0.95 * n) - 2, clip=clip)) for clip in (False, True)),
    *(
        ("interpolated-percentile", _numpy(95, method))
        for method in ("linear", "weibull", "hazen", "median_unbiased", "normal_unbiased", "midpoint")
    ),
    ("interpolated-percentile", _numpy(95, "interpolated_inverted_cdf")),
    ("interpolated-percentile", _numpy(95, "averaged_inverted_cdf")),
    *(("interpolated-percentile", _quantiles(n, method)) for n in (20, 100) for method in ("exclusive", "inclusive")),
    ("maximum-for-p95", lambda samples, _: max(samples)),
    ("one-call-for-all", lambda samples, _: min(samples)),
    ("sorted-descending", _at(lambda n: n - math.ceil(0.95 * n))),
    ("sorted-descending", _at(lambda n: n - 1 - int(0.95 * n))),
    ("sorted-descending", _at(lambda n: n - 1 - math.ceil(0.95 * n), clip=True)),
    *(("not-sorted", _at(lambda n: math.ceil(0.95 * n) - 1, ordered=False)),),
    *(("not-sorted", _at(lambda n: math.ceil(0.95 * n), ordered=False, clip=clip)) for clip in (False, True)),
    *(("not-sorted", _at(lambda n: int(0.95 * n), ordered=False)),),
    *(("not-sorted", _at(lambda n: int(0.95 * n) - 1, ordered=False, clip=clip)) for clip in (False, True)),
    ("sorted-as-text", _as_text(_at(lambda n: math.ceil(0.95 * n) - 1, ordered=False))),
    ("sorted-as-text", _as_text(_at(lambda n: int(0.95 * n), ordered=False))),
    *(
        ("averaged-round-percentiles", rule)
        for join in (statistics.fmean, statistics.median, max)
        for of_round in _ROUND_P95
        for rule in _per_round(of_round, join)
    ),
    *(("normal-approximation", _normal(z, sd)) for z in _Z95 for sd in (spread, sample_spread)),
    ("fraction-of-the-maximum", lambda samples, _: 0.95 * max(samples)),
    ("fraction-of-the-maximum", lambda samples, _: min(samples) + 0.95 * (max(samples) - min(samples))),
    ("mean-for-p95", _mean),
    ("swapped-percentiles", lambda samples, _: statistics.median(samples)),
    *(("another-percentile", lambda s, _, p=p: nearest_rank(s, p)) for p in (75, 80, 90, 98, 99)),
    *(("another-percentile", _numpy(p, "linear")) for p in (5, 75, 80, 90, 98, 99, 99.9)),
    ("percent-or-fraction", _numpy(0.95, "linear")),
    ("percent-or-fraction", _numpy(0.95, "inverted_cdf")),
)


def _rate(time_us: Callable[[Samples, Case], float]) -> Rule:
    return lambda samples, case: case.batch_size * 1_000_000 / time_us(samples, case)


def _images(images: Callable[[Samples, Case], float]) -> Rule:
    """``images`` over the time of the samples used."""
    return lambda samples, case: images(samples, case) * 1_000_000 / math.fsum(samples)


def _capped(cap: Callable[[Samples], Samples]) -> Rule:
    return _images(lambda samples, case: case.batch_size * len(samples) * math.fsum(samples) / math.fsum(cap(samples)))


def _to_percentiles(low: float, high: float) -> Callable[[Samples], Samples]:
    return lambda samples: np.clip(samples, *np.percentile(samples, (low, high))).tolist()


def _to_the_next_kept(share: float) -> Callable[[Samples], Samples]:
    """As SciPy's ``winsorize``: a share of the samples at either end becomes the nearest of the others."""

    def cap(samples: Samples) -> Samples:
        n, ordered = int(share * len(samples)), sorted(samples)
        return [*[ordered[n]] * n, *ordered[n : len(ordered) - n], *[ordered[-n - 1]] * n]

    return cap


_RATE: tuple[tuple[str | None, Rule], ...] = (
    (None, _images(lambda samples, case: case.batch_size * len(samples))),
    (None, _images(lambda _, case: case.batch_size * len(case.samples))),
    ("calls-named-images", _images(lambda samples, _: len(samples))),
    ("throughput-from-median", _rate(lambda samples, _: statistics.median(samples))),
    ("throughput-from-median", _rate(lambda _, case: case.own["p50_us"])),
    ("throughput-from-median", lambda s, case: statistics.median([case.batch_size * 1_000_000 / x for x in s])),
    ("throughput-from-p95", _rate(lambda samples, _: nearest_rank(samples, 95))),
    ("throughput-from-p95", _rate(lambda _, case: case.own["p95_us"])),
    ("mean-of-rates", lambda s, case: statistics.fmean([case.batch_size * 1_000_000 / x for x in s])),
    *(
        ("mean-of-rates", rule)
        for rule in _per_round(_images(lambda part, case: case.batch_size * len(part)), statistics.fmean)
    ),
    *(("caps-slow-samples", _capped(_to_percentiles(100 - high, high))) for high in (99, 95, 90)),
    *(("caps-slow-samples", _capped(_to_percentiles(0, high))) for high in (99, 95)),
    *(("caps-slow-samples", _capped(_to_the_next_kept(share))) for share in (0.05, 0.1)),
    ("one-call-for-all", _rate(lambda samples, _: min(samples))),
    ("one-call-for-all", _rate(lambda samples, _: max(samples))),
    ("one-call-for-all", _rate(lambda samples, _: samples[0])),
    ("one-call-for-all", _rate(lambda samples, _: samples[-1])),
    ("batch-size-counted-twice", _images(lambda samples, case: case.batch_size**2 * len(samples))),
    ("batch-size-as-divisor", _images(lambda samples, case: len(samples) / case.batch_size)),
    ("calls-forgotten", _images(lambda _, case: case.batch_size)),
    ("rate-upside-down", lambda s, case: math.fsum(s) / (case.batch_size * len(s))),
    ("rate-upside-down", lambda s, _: math.fsum(s) / len(s)),
    ("time-forgotten", lambda s, case: case.batch_size * len(s)),
    *(("hard-coded", _images(lambda _, case, k=k: case.batch_size * k)) for k in (100, 300)),
    *(("hard-coded", _images(lambda s, _, k=k: k * len(s))) for k in (32, 8)),
)

_N: tuple[tuple[str | None, Rule], ...] = (
    (None, lambda samples, _: len(samples)),
    ("n-counts-images", lambda samples, case: len(samples) * case.batch_size),
    ("n-is-batch-size", lambda _, case: case.batch_size),
    ("hard-coded", lambda _, __: 100),
    ("hard-coded", lambda _, __: 300),
    ("last-index-for-count", lambda samples, _: len(samples) - 1),
)

RULES: dict[str, tuple[tuple[str | None, Rule], ...]] = {
    "n": _N,
    "p50_us": _P50,
    "p95_us": _P95,
    "images_per_second": _RATE,
}

# --- finishes: what is done to the number -----------------------------------------------------------------------------


def _scale(factor: float, number: float, _case: Case) -> float:
    return number * factor


def _scale_and_round(factor: float, digits: int, number: float, _case: Case) -> float:
    return round(number * factor, digits)


def _round_to(digits: int, number: float, _case: Case) -> float:
    return round(number, digits)


_ROUNDINGS: tuple[tuple[str | None, Finish], ...] = (
    *(("rounds-times", partial(_round_to, digits)) for digits in (3, 2, 1, 0)),
    ("rounds-times", lambda number, _: math.floor(number)),
    ("rounds-times", lambda number, _: math.ceil(number)),
)
_AS_IS: tuple[tuple[str | None, Finish], ...] = ((None, lambda number, _: number),)
_TIME: tuple[tuple[str | None, Finish], ...] = (
    *_AS_IS,
    *(("wrong-unit", partial(_scale, factor)) for factor in (1e-3, 1e-6, 1e3, 1e6, 1 / 60e6)),
    *(("wrong-unit", partial(_scale_and_round, factor, k)) for factor in (1e-3, 1e-6) for k in (1, 2, 3, 4, 6)),
    ("time-per-image", lambda number, case: number / case.batch_size),
    *_ROUNDINGS,
)

FINISHES: dict[str, tuple[tuple[str | None, Finish], ...]] = {
    "n": _AS_IS,
    "p50_us": _TIME,
    "p95_us": _TIME,
    "images_per_second": (
        *_AS_IS,
        *(("wrong-unit", partial(_scale, factor)) for factor in (1e-3, 1e-6, 1e3, 1e6, 1e-9, 1e-12, 60, 3600)),
        *_ROUNDINGS,
    ),
}
