"""Summaries: textbook values, honest standard errors, bounded memory that agrees with the exact answer."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deep_learning_cases.batching import (
    Bursts,
    Constant,
    Exponential,
    Linear,
    Mix,
    Poisson,
    Policy,
    Regular,
    Trace,
    arrival_times_s,
    simulate,
    summarise,
)
from deep_learning_cases.batching.streaming import BinnedMeans, LogHistogram, standard_error
from deep_learning_cases.batching.summary import warm_up_requests
from deep_learning_cases.errors import InputError

# (rate, service time, policy, {quantity: value}); M/M/1 and M/D/1 by formula, Pollaczek-Khinchine, and for batches the
# values of the embedded Markov chain at the ends of the batches.
KNOWN = {
    "M/M/1": (0.8, Exponential(1.0), Policy(1), {
        "mean_time_in_system_s": 5.0, "time_in_system_p95_s": 14.97866, "time_in_system_p99_s": 23.02585,
    }),
    "M/D/1": (0.8, Constant(1.0), Policy(1), {
        "mean_wait_s": 2.0, "wait_p50_s": 1.275940, "wait_p95_s": 6.620325, "wait_p99_s": 10.355887,
    }),
    "M/G/1": (100.0, Mix((0.005, 0.025), (0.9, 0.1)), Policy(1), {"mean_wait_s": 0.01416667}),
    "greedy 2": (1.6, Constant(1.0), Policy(2), {"mean_time_in_system_s": 2.3192646}),
    "greedy 4": (3.2, Constant(1.0), Policy(4), {"mean_time_in_system_s": 1.8795362}),
    "greedy 8": (6.0, Constant(1.0), Policy(8), {"mean_time_in_system_s": 1.5966686}),
    "greedy 32": (24.0, Constant(1.0), Policy(32), {"mean_time_in_system_s": 1.5064084}),
    "linear 1": (1000.0, Linear(0.0018, 0.0002), Policy(32), {"mean_time_in_system_s": 0.003545585}),
    "linear 2": (2000.0, Linear(0.0018, 0.0002), Policy(32), {"mean_time_in_system_s": 0.004784441}),
    "linear 3": (3000.0, Linear(0.0018, 0.0002), Policy(32), {"mean_time_in_system_s": 0.007156433}),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN)
def test_known_values_within_three_standard_errors(case):
    rate, service, policy, values = KNOWN[case]
    summary = summarise(Poisson(rate), service, policy, 1_000_000, seed=42)
    assert summary.trusted
    for name, value in values.items():
        error = summary.errors_s[name]
        assert abs(getattr(summary, name) - value) < 3 * error, name
        assert error < 0.03 * value, "an error so large would let anything pass"


def test_a_bounded_queue_refuses_what_erlang_says():
    """M/M/1 with room for K = 4 in the system: P(refused) = (1 - rho) rho^K / (1 - rho^(K + 1))."""
    summary = summarise(Poisson(0.9), Exponential(1.0), Policy(1, 0.0, 3), 400_000, seed=1)
    expected = 0.1 * 0.9**4 / (1 - 0.9**5)
    assert summary.offered == 400_000
    assert summary.refused / summary.offered == pytest.approx(expected, rel=0.03)
    assert summary.utilisation == pytest.approx(0.9 * (1 - expected), rel=0.01)


@pytest.mark.parametrize("policy", [Policy(1), Policy(8), Policy(8, 1.5), Policy(4, 0.5, 6)])
def test_littles_law(policy):
    """The time integral of the number in the system, counted event by event, is the sum of the times in it."""
    times = arrival_times_s(Poisson(0.9), 20_000, seed=2)
    result = simulate(times, Linear(0.8, 0.1), policy, seed=2)
    came = result.arrivals_s[result.accepted]
    went = (result.start_s + result.service_s)[result.accepted]
    moments = np.concatenate((came, went))
    order = np.argsort(moments, kind="stable")
    number = np.cumsum(np.repeat([1, -1], len(came))[order])
    area = float((number[:-1] * np.diff(moments[order])).sum())
    span = went.max() - came.min()
    mean_number, rate = area / span, len(came) / span
    assert mean_number == pytest.approx(rate * float(np.mean(went - came)), rel=1e-9)
    assert result.summary(warm_up=0).mean_time_in_system_s == pytest.approx(float(np.mean(went - came)), rel=1e-9)


@pytest.mark.slow
def test_the_standard_error_covers_as_it_says():
    """M/M/1 at a load of 0.8 over 200 seeds: the z-scores of the mean wait have a standard deviation of about 1.

    The plain s / sqrt(n) is tried beside it and is too small by a factor of about seven.
    """
    z, plain = [], []
    for seed in range(200):
        summary = summarise(Poisson(0.8), Exponential(1.0), Policy(1), 30_000, seed=seed)
        z.append((summary.mean_wait_s - 4.0) / summary.standard_error_s)
        plain.append(z[-1] * (summary.counted / summary.independent) ** 0.5)
    assert 0.85 < np.std(z) < 1.2
    assert np.mean(np.abs(z) < 1.96) > 0.89
    assert np.std(plain) > 4


def test_the_percentile_error_covers_as_it_says():
    """p95 of the time in the system of M/M/1 at a load of 0.5 is ln 20 / 0.5."""
    z = []
    for seed in range(100):
        summary = summarise(Poisson(0.5), Exponential(1.0), Policy(1), 20_000, seed=seed)
        z.append((summary.time_in_system_p95_s - np.log(20) / 0.5) / summary.errors_s["time_in_system_p95_s"])
    assert 0.75 < np.std(z) < 1.25
    assert abs(np.mean(z)) < 0.5


def test_the_standard_error_of_an_autoregressive_series():
    """x_t = 0.9 x_{t-1} + noise: the standard error of the mean is 10 / sqrt(n)."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        noise = rng.standard_normal(50_000)
        series = np.empty(50_000)
        value = 0.0
        for t, step in enumerate(noise.tolist()):
            value = 0.9 * value + step
            series[t] = value
        bins = BinnedMeans()
        bins.add(series)
        found.append(standard_error(bins.means))
    assert np.mean(found) == pytest.approx(10 / np.sqrt(50_000), rel=0.05)


def test_independent_values_have_the_plain_standard_error_and_few_have_none():
    means = np.random.default_rng(1).standard_normal(4000)
    assert standard_error(means) == pytest.approx(1 / np.sqrt(4000), rel=0.15)
    assert standard_error(np.ones(100)) == 0
    assert standard_error(np.arange(7.0)) is None


@pytest.mark.parametrize("policy", [Policy(1), Policy(8), Policy(8, 2.0), Policy(8, 0.5, 20)])
def test_the_histogram_agrees_with_the_exact_percentiles_of_a_million(policy):
    run = (Poisson(0.8 if policy.max_batch == 1 else 3.0), Exponential(1.0), policy, 1_000_000, 9)
    exact, streamed = summarise(*run, exact=True), summarise(*run, exact=False)
    for name in exact.KEYS:
        tolerance = LogHistogram.RELATIVE_ERROR * 1.001 if "_p" in name else 1e-9
        assert getattr(streamed, name) == pytest.approx(getattr(exact, name), rel=tolerance, abs=1e-9), name
    assert (streamed.counted, streamed.batches, streamed.refused) == (exact.counted, exact.batches, exact.refused)
    assert exact.percentiles == "exact"
    assert "0.049 %" in streamed.percentiles


@given(st.lists(st.floats(0, 1e8), min_size=1, max_size=300))
@settings(max_examples=200, deadline=None)
def test_the_histograms_percentiles_are_as_near_as_stated(values):
    histogram = LogHistogram()
    histogram.add(np.array(values))
    exact = np.sort(values)[[-(-percent * len(values) // 100) - 1 for percent in (50, 95, 99)]]
    for found, true in zip(histogram.percentiles(), exact, strict=True):
        if true < LogHistogram.LOWEST:
            assert found == 0
        else:
            assert found == pytest.approx(true, rel=LogHistogram.RELATIVE_ERROR * 1.0001)


@pytest.mark.slow
def test_the_memory_of_a_streamed_summary_does_not_grow_with_the_run():
    def peak(requests):
        tracemalloc.start()
        summarise(Poisson(6.0), Constant(1.0), Policy(8), requests, exact=False)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    small, large = peak(300_000), peak(1_200_000)
    assert large < 1.3 * small, "four times the requests"
    assert large < 40e6


@given(st.lists(st.integers(0, 9000), max_size=8))
@settings(max_examples=40, deadline=None)
@example([9000, 0, 9000, 1])
def test_stretches_do_not_depend_on_how_the_series_came(lengths):
    whole, parts = BinnedMeans(), BinnedMeans()
    series = np.random.default_rng(sum(lengths)).uniform(-5, 5, sum(lengths))
    whole.add(series)
    for piece in np.split(series, np.cumsum(lengths)):
        parts.add(piece)
    assert (whole.width, len(whole.means)) == (parts.width, len(parts.means))
    np.testing.assert_allclose(whole.means, parts.means, atol=1e-12)
    width = whole.width
    expected = series[: len(series) // width * width].reshape(-1, width).mean(axis=1)
    np.testing.assert_allclose(whole.means, expected, atol=1e-9)


def test_a_summary_is_that_of_the_requests_of_the_same_seed():
    times = arrival_times_s(Poisson(3.0), 100_007, seed=4)  # not a multiple of 100: ranks have to be rounded up
    result = simulate(times, Exponential(1.0), Policy(8, 0.5), seed=4)
    summary = summarise(Poisson(3.0), Exponential(1.0), Policy(8, 0.5), 100_007, seed=4)
    assert result.summary() == summary
    counted = result.wait_s[summary.warm_up :]
    assert summary.mean_wait_s == pytest.approx(counted.mean(), rel=1e-12)
    assert summary.wait_p95_s == np.sort(counted)[-(-95 * len(counted) // 100) - 1]
    assert summary == summarise(Poisson(3.0), Exponential(1.0), Policy(8, 0.5), 100_007, seed=4)
    assert summary != summarise(Poisson(3.0), Exponential(1.0), Policy(8, 0.5), 100_007, seed=5)


def test_the_warm_up_takes_the_empty_start_out():
    """Runs of 1000 requests at a load of 0.95 start empty: counted whole, the mean wait is far too small on average."""
    assert [warm_up_requests(n) for n in (999, 1000, 10**6, 10**8)] == [0, 100, 10**5, 10**6]
    whole, warmed = [], []
    for seed in range(200):
        times = arrival_times_s(Poisson(0.95), 20_000, seed)
        result = simulate(times, Exponential(1.0), Policy(1), seed)
        whole.append(result.wait_s[:2000].mean())
        warmed.append(result.wait_s[18_000:].mean())
    assert np.mean(whole) < 15 < np.mean(warmed)


@pytest.mark.parametrize(
    ("process", "gap_spread"),
    [(Poisson(50.0), 1.0), (Regular(50.0), 0.0), (Bursts(50.0, 10), np.sqrt(19.0))],
)
def test_arrival_processes_keep_their_rate(process, gap_spread):
    """The squared variation of the gaps of Poisson bursts of size k is 2 k - 1."""
    times = arrival_times_s(process, 300_000, seed=0)
    assert len(times) == 300_000
    assert (np.diff(times) >= 0).all()
    assert process.rate_per_s == 50
    assert 300_000 / times[-1] == pytest.approx(50, rel=0.03)
    gaps = np.diff(times)
    assert gaps.std() / gaps.mean() == pytest.approx(gap_spread, rel=0.03, abs=1e-6)


def test_waits_that_differ_by_rounding_only_are_not_called_a_short_run():
    summary = summarise(Regular(100.0), Linear(0.002, 0.00025), Policy(16, 0.005), 20_000)
    assert summary.mean_wait_s == pytest.approx(0.005)
    assert summary.trusted


def test_a_recorded_trace_can_be_summed_up():
    trace = Trace(np.arange(5.0))
    summary = summarise(trace, Constant(2.0), Policy(1), 5)
    assert trace.rate_per_s == 1
    assert summary.mean_wait_s == 2
    assert summary.standard_error_s is None
    assert summary.utilisation == 1
    with pytest.raises(InputError, match="at most the 5 recorded"):
        summarise(trace, Constant(2.0), Policy(1), 6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: summarise(Poisson(1.0), Constant(1.0), Policy(1), 0), "requests is 0"),
        (lambda: summarise(Poisson(1.0), Constant(1.0), Policy(1), 10, warm_up=10), "warm-up is 10 of 10"),
        (
            lambda: summarise(Poisson(1.0), Constant(1.0), Policy(50, 100.0), 40, warm_up=1),
            "no batch begins after the warm-up",
        ),
        (lambda: summarise(Poisson(1.0), Constant(1.0), Policy(1), 10, seed=-1), "seed is -1"),
        (lambda: Poisson(0.0), "rate .* is 0"),
        (lambda: Regular(float("nan")), "rate .* is nan"),
        (lambda: Bursts(1.0, 0), "burst size is 0"),
    ],
)
def test_nonsense_is_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
