"""Statistics against hand arithmetic, exact fractions, NumPy and SciPy."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from deep_learning_cases.errors import InputError
from deep_learning_cases.measuring import distributions, stats

timings = st.lists(st.floats(0.001, 1e9), min_size=1, max_size=400)


def test_batch_32_of_300_calls_in_3_seconds_is_3200_images_per_second():
    summary = stats.latency_summary([10_000.0] * 300, 32)
    assert summary == {"n": 300, "p50_us": 10_000.0, "p95_us": 10_000.0, "images_per_second": 3200.0}
    assert 32 * summary["n"] == 9600


def test_the_mean_of_three_p95_is_not_the_p95():
    rounds = [[p95] * 10 + [1.0] * 90 for p95 in (10.0, 20.0, 100.0)]
    each = [stats.percentile(samples, 0.95) for samples in rounds]
    assert each == [10.0, 20.0, 100.0]
    assert math.isclose(sum(each) / 3, 43.333, rel_tol=1e-4)
    # 300 samples: rank 285 of 270 ones, ten 10s, ten 20s and ten 100s is the fifth 20.
    assert stats.latency_summary([x for samples in rounds for x in samples], 1)["p95_us"] == 20.0
    heavy = [[10.0] * 6 + [1.0] * 94, [20.0] * 6 + [1.0] * 94, [100.0] * 100]
    assert [stats.percentile(samples, 0.95) for samples in heavy] == each
    assert stats.latency_summary([x for samples in heavy for x in samples], 1)["p95_us"] == 100.0


def test_ranks_worked_by_hand():
    assert stats.latency_summary([4, 1, 3, 2], 2) == {
        "n": 4,
        "p50_us": 2.5,
        "p95_us": 4.0,
        "images_per_second": 2 * 4 * 1_000_000 / 10,
    }
    assert stats.latency_summary(range(1, 21), 1)["p95_us"] == 19.0
    assert stats.latency_summary(range(1, 22), 1)["p95_us"] == 20.0
    assert stats.latency_summary([7.5], 1)["p50_us"] == stats.latency_summary([7.5], 1)["p95_us"] == 7.5
    numbers = range(1, 301)
    assert [stats.percentile(numbers, p) for p in (0.5, 0.95, 0.99)] == [150, 285, 297]
    linear = [stats.percentile(numbers, p, "linear") for p in (0.5, 0.95, 0.99)]
    assert linear == pytest.approx([150.5, 285.05, 297.01], abs=1e-12)


@given(timings, st.integers(1, 512))
def test_summary_equals_exact_arithmetic(samples, batch_size):
    before = list(samples)
    summary = stats.latency_summary(samples, batch_size)
    assert samples == before
    exact = [Fraction(x) for x in samples]
    assert summary["n"] == len(samples)
    assert summary["p50_us"] == pytest.approx(statistics.median(samples), rel=1e-12)
    assert summary["p95_us"] == sorted(samples)[-(-19 * len(samples) // 20) - 1]
    assert summary["images_per_second"] == pytest.approx(
        float(batch_size * len(samples) * 10**6 / sum(exact)), rel=1e-12
    )


@given(timings, st.integers(0, 100))
def test_nearest_rank_is_numpys_inverted_cdf(samples, percent):
    n = len(samples)
    # NumPy computes the rank in floats, which is wrong where the product is nearly whole (0.07 * 100); we are exact.
    assume(math.ceil(n * (percent / 100)) == -(-percent * n // 100))
    assert stats.percentile(samples, percent / 100) == np.percentile(samples, percent, method="inverted_cdf")


@given(timings, st.integers(1, 100))
def test_nearest_rank_is_the_exact_rank(samples, percent):
    expected = sorted(samples)[-(-percent * len(samples) // 100) - 1]
    assert stats.percentile(samples, percent / 100) == expected
    assert stats.percentile(samples, Fraction(percent, 100)) == expected
    assert stats.percentile(samples, np.float64(percent / 100)) == expected


@given(timings, st.floats(0, 1))
def test_linear_is_numpys_default(samples, p):
    expected = np.quantile(np.array(samples), p)
    span = max(samples) - min(samples)
    assert stats.percentile(samples, p, "linear") == pytest.approx(expected, rel=1e-9, abs=1e-6 * span + 1e-12)


@pytest.mark.parametrize("p", [0.9 + 0.05, 95 * 0.01, np.linspace(0, 1, 21)[19]])
@pytest.mark.parametrize("n", [60, 120, 220, 240])
def test_a_level_that_was_computed_in_floats_still_means_95_percent(p, n):
    assert stats.percentile(range(1, n + 1), p) == -(-19 * n // 20)


def test_three_nines_of_1000_samples_are_not_the_maximum():
    assert stats.percentile(range(1, 1001), 0.999) == 999


@pytest.mark.parametrize("container", [list, tuple, np.array, lambda x: np.array(x, dtype=np.float32), iter])
def test_any_container_of_numbers_will_do(container):
    assert stats.latency_summary(container([3.0, 1.0, 2.0]), 1)["p50_us"] == 2.0


def test_numpy_integers_are_numbers_and_a_batch_size():
    summary = stats.latency_summary(np.array([3, 1, 2], dtype=np.int64), np.int32(4))
    assert summary["images_per_second"] == 4 * 3 * 1_000_000 / 6
    assert type(summary["images_per_second"]) is float


BAD_SAMPLES = [
    [], (), np.array([]), None, 5, "12", ["1"], [1.0, math.nan], [math.inf], [-math.inf], [0], [0.0], [-1.0], [True],
    [None], [1 + 2j], [[1.0]], np.ones((2, 2)), [10**400], [1.0, 1.7e308, 1.7e308], [5e-324],
]  # fmt: skip


@pytest.mark.parametrize("samples", BAD_SAMPLES, ids=repr)
def test_bad_samples_are_refused_in_one_line(samples):
    with pytest.raises(ValueError) as caught:
        stats.latency_summary(samples, 1)
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("batch_size", [0, -1, 1.0, 1.5, True, None, "1", math.nan, np.float64(2)], ids=repr)
def test_bad_batch_sizes_are_refused(batch_size):
    with pytest.raises(InputError, match="batch_size"):
        stats.latency_summary([1.0], batch_size)


def test_a_batch_size_beyond_every_float_is_a_value_error_too():
    with pytest.raises(InputError, match=r"batch_size is 10{56}.*: expected a whole number from 1 to"):
        stats.latency_summary([1.0], 10**400)


@pytest.mark.parametrize("p", [-0.1, 1.1, 95, math.nan, None, "0.5", True], ids=repr)
def test_bad_levels_are_refused(p):
    with pytest.raises(InputError, match="p is"):
        stats.percentile([1.0], p)


def test_an_unknown_definition_is_refused():
    with pytest.raises(InputError, match="'nearest_rank' or 'linear'"):
        stats.percentile([1.0], 0.5, "nearest")


@pytest.mark.parametrize(("p", "ranks"), [(0.5, (133, 168)), (0.95, (277, 293))])
def test_interval_ranks_of_300_samples(p, ranks):
    interval = stats.percentile_interval(range(1001, 1301), p)
    assert (interval.low_rank, interval.high_rank) == ranks
    assert (interval.low, interval.high) == (1000 + ranks[0], 1000 + ranks[1])
    assert interval.reason is None


def test_p99_needs_368_samples():
    few = stats.percentile_interval(range(1, 301), 0.99)
    assert (few.low, few.high) == (None, None)
    assert few.reason == "too few samples: 300 for p99, at least 368 needed for 95 %"
    assert stats.percentile_interval(range(1, 368), 0.99).low is None
    assert stats.percentile_interval(range(1, 369), 0.99).high == 368


@given(st.integers(1, 300), st.integers(1, 99), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_interval_is_the_tightest_with_equal_tails(n, percent, confidence):
    p, tail = percent / 100, (1 - confidence) / 2
    interval = stats.percentile_interval(range(1, n + 1), p, confidence)
    below = scipy.stats.binom(n, p)
    if interval.low is None:
        assert below.cdf(0) > tail - 1e-9 or below.sf(n - 1) > tail - 1e-9
        return
    low, high = interval.low_rank, interval.high_rank
    assert below.cdf(low - 1) <= tail + 1e-9 < below.cdf(low) + 2e-9
    assert below.sf(high - 1) <= tail + 1e-9 < below.sf(high - 2) + 2e-9
    assert interval.coverage == pytest.approx(below.cdf(high - 1) - below.cdf(low - 1), abs=1e-9)
    assert interval.coverage >= confidence - 1e-9


def summed_from_zero(n, p, tail):
    """The rank by adding the binomial's probabilities one by one, each from its factorials."""
    total, reached = 0.0, 0.0
    for k in range(n + 1):
        choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(choices + k * math.log(p) + (n - k) * math.log1p(-p))
        if total > tail:
            return k, reached
        reached = total
    return n, reached


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 299, 300, 368, 1000, 3000])
def test_ranks_from_the_mode_are_those_summed_from_zero(n):
    for p in (1e-4, 0.01, 0.05, 0.3, 0.5, 0.7, 0.95, 0.99, 0.999):
        for tail in (0.2, 0.025, 0.005, 1e-8):
            rank, reached = distributions.tail_rank(n, p, tail)
            slow_rank, slow_reached = summed_from_zero(n, p, tail)
            assert (rank, reached) == (slow_rank, pytest.approx(slow_reached, rel=1e-9))


def test_ranks_of_a_million_samples_are_scipys_and_cost_no_million_steps():
    for p in (0.5, 0.95, 0.99):
        rank, reached = distributions.tail_rank(10**6, p, 0.025)
        binomial = scipy.stats.binom(10**6, p)
        assert binomial.cdf(rank - 1) <= 0.025 < binomial.cdf(rank)
        assert reached == pytest.approx(binomial.cdf(rank - 1), rel=1e-7)


@pytest.mark.parametrize("p", [0, 1])
def test_an_extreme_has_no_two_sided_interval(p):
    with pytest.raises(InputError):
        stats.percentile_interval([1.0, 2.0], p)


@given(st.integers(1, 400), st.floats(0.5, 0.9999))
def test_t_quantile_is_scipys(degrees, probability):
    assert stats.t_quantile(probability, degrees) == pytest.approx(
        scipy.stats.t.ppf(probability, degrees), rel=1e-8, abs=1e-12
    )


@pytest.mark.parametrize(("probability", "degrees"), [(0.4, 3), (1.0, 3), (math.nan, 3), (0.9, 0), (0.9, 1.5)])
def test_t_quantile_refuses_what_it_cannot_do(probability, degrees):
    with pytest.raises(InputError):
        stats.t_quantile(probability, degrees)


@given(
    st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95, 0.99])
)
def test_proportion_interval_is_scipys_exact_one(trial, confidence):
    hits, n = trial
    expected = scipy.stats.binomtest(hits, n).proportion_ci(confidence, method="exact")
    assert stats.proportion_interval(hits, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_proportion_interval_refuses_impossible_counts(hits, n):
    with pytest.raises(InputError):
        distributions.proportion_interval(hits, n)


def test_comparison_is_the_t_interval_of_the_log_ratios():
    a = [[10.0, 11.0, 12.0], [20.0, 21.0, 22.0], [30.0, 30.0, 33.0]]
    b = [[22.0, 22.0, 22.0], [44.0, 40.0, 41.0], [60.0, 63.0, 66.0]]
    result = stats.compare(a, b)
    logs = np.log(np.array([11 / 22, 21 / 41, 30 / 63]))
    low, high = scipy.stats.t.interval(0.95, 2, loc=logs.mean(), scale=scipy.stats.sem(logs))
    assert result["verdict"] == "faster"
    assert result["ratio"] == pytest.approx(math.exp(logs.mean()))
    assert (result["low"], result["high"]) == pytest.approx((math.exp(low), math.exp(high)))
    assert result["round_ratios"] == pytest.approx([11 / 22, 21 / 41, 30 / 63])
    mirrored = stats.compare(b, a)
    assert mirrored["verdict"] == "slower"
    assert mirrored["low"] == pytest.approx(1 / result["high"])


def test_a_difference_that_one_round_contradicts_is_inconclusive():
    result = stats.compare([[10.0], [10.0], [13.0]], [[11.0], [11.0], [11.0]])
    assert result["verdict"] == "inconclusive"
    assert result["low"] < 1 < result["high"]
    assert "contains 1" in result["reason"]


def test_one_round_shows_no_noise_and_gives_no_verdict():
    result = stats.compare([[1.0] * 100], [[2.0] * 100])
    assert (result["verdict"], result["low"], result["high"]) == ("inconclusive", None, None)
    assert "one round" in result["reason"]


def test_equal_records_are_inconclusive():
    rounds = [[1.0, 2.0], [3.0, 4.0]]
    assert stats.compare(rounds, rounds)["verdict"] == "inconclusive"


@pytest.mark.parametrize(("statistic", "expected"), [("p50", 2.0), ("mean", 5.0), ("p95", 12.0)])
def test_what_stands_for_a_round_can_be_chosen(statistic, expected):
    a = [[1.0, 2.0, 12.0]] * 2
    assert stats.compare(a, [[1.0]] * 2, statistic=statistic)["ratio"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b", "more"),
    [
        ([], [], {}),
        ([[1.0]], [[1.0], [1.0]], {}),
        ([[]], [[1.0]], {}),
        ([[0.0]], [[1.0]], {}),
        ([[1.0]], [[1.0]], {"confidence": 1}),
        ([[1.0]], [[1.0]], {"statistic": "minimum"}),
    ],
)
def test_comparison_refuses_what_it_cannot_compare(a, b, more):
    with pytest.raises(InputError):
        stats.compare(a, b, **more)


def test_false_alarms_stay_near_the_promise_where_processes_differ():
    """Seeded: 2 % between processes, 1 % within, 3 rounds of 30; the full table is in benchmarks/false_alarm.py."""
    random = np.random.default_rng(1729)
    alarms = 0
    for _ in range(1000):
        rounds = np.exp(random.normal(0, 0.02, (2, 3, 1)) + random.normal(0, 0.01, (2, 3, 30)))
        alarms += stats.compare(rounds[0].tolist(), rounds[1].tolist())["verdict"] != "inconclusive"
    assert 30 <= alarms <= 70
