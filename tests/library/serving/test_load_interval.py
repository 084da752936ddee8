"""The intervals of a load's percentiles: as wide as the requests' correlation makes them, or none and the reason."""

import numpy as np
import pytest

from deep_learning_cases import batching
from deep_learning_cases.measuring import stats
from deep_learning_cases.serving.load.interval import Latencies


def drawn(count: int, seed: int = 0):
    return np.random.default_rng(seed).exponential(10.0, count)


@pytest.mark.parametrize("percent", [50, 95])
def test_independent_values_have_about_the_order_statistic_interval(percent):
    values = drawn(20_000)
    found, known = Latencies(values).interval(percent), stats.percentile_interval(values, percent / 100)
    assert found.reason is None
    assert found.low <= known.low < known.high <= found.high
    assert found.high - found.low < 1.6 * (known.high - known.low)


@pytest.mark.parametrize("together", [10, 40])
def test_values_that_come_together_count_once(together):
    """Every value ``together`` times in a row: no more is known than from the values alone."""
    values = drawn(2000)
    once, often = Latencies(values).interval(95), Latencies(np.repeat(values, together)).interval(95)
    assert 0.6 < (often.high - often.low) / (once.high - once.low) < 1.7
    naive = stats.percentile_interval(np.repeat(values, together), 0.95)
    assert often.high - often.low > 0.6 * together**0.5 * (naive.high - naive.low)


def test_too_few_independent_requests_have_no_interval_and_the_reason():
    assert Latencies(np.array([3.0])).interval(50) == (
        None,
        None,
        "no interval: 1 request, 150 needed; send for longer",
    )
    few = Latencies(np.repeat(drawn(200), 50)).interval(95)
    assert few[:2] == (None, None)
    assert few.reason.startswith("no interval: 10000 requests count as about ")
    assert few.reason.endswith(" independent ones, 400 needed; send for longer")
    assert "2000 needed" in Latencies(drawn(1000)).interval(99).reason
    drifting = np.linspace(1, 2, 5000) + drawn(5000) / 1000
    assert Latencies(drifting).interval(50).low is None, "whatever grows all the time has been seen once"


def test_equal_values_have_an_interval_without_width():
    assert Latencies(np.zeros(500)).interval(95)[:2] == (0.0, 0.0)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 99, 300])
def test_percentiles_are_nearest_rank(count):
    values = drawn(count, seed=count)
    for percent in (50, 95, 99):
        assert Latencies(values).percentile(percent) == stats.percentile(values, percent / 100)


def test_intervals_of_a_queue_hold_the_long_run_percentile():
    """What ``benchmarks.coverage load`` measures with 300 runs, at one load; as if independent, half of them would."""
    service, policy = batching.Mix((0.003, 0.004), (0.6, 0.4)), batching.Policy(8, 0.005)
    rate = 0.8 * 8 / 0.0034
    endless = batching.summarise(batching.Poisson(rate), service, policy, 1_000_000, seed=99)
    found = []
    for seed in range(40):
        times_s = batching.arrival_times_s(batching.Poisson(rate), round(10 * rate), seed)
        waits = batching.simulate(times_s, service, policy, seed).wait_s
        found.append(Latencies(waits).interval(50))
    held = sum(one.low <= endless.wait_p50_s <= one.high for one in found if one.low is not None)
    assert held >= 34
