"""Service times, measured files, the choice of a policy and its figure."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep_learning_cases import batching_plots
from deep_learning_cases.batching import (
    Constant,
    Exponential,
    Linear,
    Measured,
    Mix,
    Objective,
    Poisson,
    Policy,
    choose_policy,
    default_candidates,
    load,
    read_measured,
    simulate,
    summarise,
)
from deep_learning_cases.errors import EvidenceError, FileError, InputError

SERVICE = Linear(0.002, 0.00025)


def quick(rate, limit_s, candidates, service=SERVICE, **options):
    return choose_policy(rate, Objective(limit_s), service, candidates, **{"requests": 4000, "seeds": 4} | options)


@pytest.mark.parametrize(
    ("service", "mean", "largest"),
    [
        (Constant(0.5), 0.5, 0.5),
        (Linear(1.0, 0.25), 2.0, 2.0),
        (Exponential(0.5), 0.5, math.inf),
        (Mix((0.005, 0.025), (0.9, 0.1)), 0.007, 0.025),
        (Measured({4: [1.0, 2.0, 6.0]}), 3.0, 6.0),
    ],
)
def test_drawn_times_have_the_stated_mean(service, mean, largest):
    drawn = service.draw_s(np.random.default_rng(0), 4, 40_000)
    one = service.sampler(np.random.default_rng(0), 4)
    assert service.mean_s(4) == pytest.approx(mean)
    assert drawn.mean() == pytest.approx(mean, rel=0.03)
    assert drawn.min() > 0
    assert drawn.max() <= largest
    assert [one(4) for _ in range(5000)] == drawn[:5000].tolist(), "singly or as an array: the same stream"


def test_between_measured_sizes_the_same_quantile_of_both_is_interpolated():
    """At 3, half way from 2 to 4: each of the ranks of the longer list, half way between the two."""
    measured = Measured({2: [3.0, 1.0], 4: [10.0, 20.0, 30.0, 40.0]})
    assert measured.row_s(2).tolist() == [1.0, 3.0]
    assert measured.row_s(3).tolist() == [(1 + 10) / 2, (1 + 20) / 2, (3 + 30) / 2, (3 + 40) / 2]
    assert measured.row_s(1).tolist() == [1.0, 3.0], "below the smallest: as if padded to it"
    with pytest.raises(InputError, match="batch 5 is above 4, the largest measured"):
        measured.row_s(5)


@given(st.dictionaries(st.integers(1, 40), st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20), min_size=1))
def test_interpolated_times_stay_between_the_measured_ones(samples):
    measured = Measured(samples)
    smallest, largest = min(min(row) for row in samples.values()), max(max(row) for row in samples.values())
    for batch in range(1, measured.largest + 1):
        row = measured.row_s(batch)
        assert (np.diff(row) >= -1e-12 * largest).all()
        assert smallest * (1 - 1e-12) <= row[0]
        assert row[-1] <= largest * (1 + 1e-12)


def write(folder, content):
    path = folder / "measured.json"
    path.write_text(json.dumps(content))
    return path


def test_a_benchmark_file_gives_the_merged_rounds_of_every_model(tmp_path):
    runs = [
        {"model": "fp32", "samples_us": {"1": [10.0, 12.0], "32": [80.0]}},
        {"model": "int8", "samples_us": {"1": [20.0]}},
        {"model": "fp32", "samples_us": {"1": [11.0], "32": [90.0]}},
    ]
    models = read_measured(write(tmp_path, {"schema": "deep-learning-cases/benchmark/1", "runs": runs}))
    assert list(models) == ["fp32", "int8"]
    np.testing.assert_allclose(models["fp32"].samples_s[1], [10e-6, 11e-6, 12e-6])
    np.testing.assert_allclose(models["fp32"].samples_s[32], [80e-6, 90e-6])


@pytest.mark.parametrize(("unit", "seconds"), [("samples_us", 1e-6), ("samples_ms", 1e-3)])
def test_the_small_structure_gives_one_model(tmp_path, unit, seconds):
    path = write(tmp_path, {"results": {"1": {unit: [2.0, 1.0], "median_ms": 1.5}, "8": {unit: [4]}}, "extra": 1})
    (measured,) = read_measured(path).values()
    np.testing.assert_allclose(measured.samples_s[1], [seconds, 2 * seconds])
    assert measured.largest == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "holds no measured times"),
        ({"results": {}}, "/results is not a table"),
        ({"results": {"x": {"samples_us": [1.0]}}}, "has a batch 'x'"),
        ({"results": {"0": {"samples_us": [1.0]}}}, "has a batch '0'"),
        ({"results": {"1": {"median_ms": 1.0}}}, "/results/1 has neither samples_us nor samples_ms"),
        ({"results": {"1": {"samples_us": []}}}, "/results/1/samples_us is not a list of samples"),
        ({"results": {"1": {"samples_us": [1.0, -2.0]}}}, r"/results/1/samples_us/1 is -2\.0"),
        ({"results": {"1": {"samples_us": [True]}}}, "/results/1/samples_us/0 is True"),
        ({"runs": [{"samples_us": {}}]}, "/runs/0 has no model name"),
        ({"runs": [{"model": "fp32", "samples_us": {"1": "no"}}]}, "/runs/0/samples_us/1 is not a list"),
        ({"runs": []}, "holds no measured times"),
    ],
)
def test_a_damaged_file_is_named_by_the_place(tmp_path, content, message):
    with pytest.raises(EvidenceError, match=message) as caught:
        read_measured(write(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="cannot read"):
        read_measured(tmp_path / "none.json")


def test_the_cheapest_of_those_that_meet_the_objective_is_chosen():
    """At 1000/s one by one is hopeless; greedy is fast and always busy; waiting makes larger batches for less time."""
    policies = [Policy(1), Policy(32), Policy(32, 0.005), Policy(32, 0.1)]
    choice = quick(1000.0, 0.02, policies)
    assert [reading.verdict for reading in choice.readings] == ["misses", "meets", "meets", "misses"]
    assert choice.chosen is choice.closest is choice.readings[2]
    assert choice.chosen.cost < choice.readings[1].cost
    assert choice.chosen.low_s < choice.chosen.reached_s < choice.chosen.high_s <= 0.02
    assert choice.chosen.seeds_met == 4
    assert "batch 32, wait 5 ms: p95" in choice.reason
    assert "is within 20 ms" in choice.reason
    assert choice.readings[0].reached_s == math.inf
    assert choice == quick(1000.0, 0.02, policies), "the same seed, the same choice"


def test_none_meets_says_which_is_closest_and_why():
    choice = quick(1000.0, 0.003, [Policy(1), Policy(32), Policy(32, 0.005)])
    assert choice.chosen is None
    assert choice.closest.policy == Policy(32)
    assert "closest is batch 32, greedy: its p95 is" in choice.reason
    assert "above 3 ms" in choice.reason


def test_a_limit_inside_the_interval_is_not_called_met():
    reached = quick(1000.0, 1.0, [Policy(32)]).closest
    choice = quick(1000.0, (reached.low_s + reached.high_s) / 2, [Policy(32)])
    assert choice.chosen is None
    assert choice.closest.verdict == "unsure"
    assert "more requests may tell" in choice.reason


def test_hopeless_rates_say_that_every_queue_grows():
    choice = quick(1e6, 0.02, [Policy(1), Policy(32)])
    assert choice.chosen is None
    assert f"the lowest load is {load(1e6, SERVICE, Policy(32)):.2f}" in choice.reason
    assert json.loads(json.dumps(choice.as_dict(), allow_nan=False))["candidates"][0]["reached_s"] is None


def test_refusing_the_late_does_not_meet_an_objective():
    """Twice the capacity, a short queue: those let in are quick, but half are never answered."""
    choice = quick(2 * 444.0, 0.02, [Policy(1, 0.0, 4)])
    (reading,) = choice.readings
    assert reading.refused > 0.4
    assert reading.reached_s == math.inf
    assert reading.verdict == "misses"
    assert "it refuses" in choice.reason


def test_refusals_within_the_percentile_are_allowed():
    result = simulate([0.0] * 21, Constant(1.0), Policy(20, 0.0, 20))
    assert result.refused == 0
    few = simulate([0.0, 0.1, 0.1] + [float(k) for k in range(3, 103)], Constant(0.5), Policy(1, 0.0, 1))
    assert few.refused == 1
    assert Objective(1.0).reached_s(few) < 1
    assert Objective(1.0, 99).reached_s(few) < math.inf


def test_default_candidates_come_from_what_was_measured():
    policies = default_candidates(12, 0.02)
    assert {policy.max_batch for policy in policies} == {1, 2, 4, 8, 12}
    assert {policy.max_wait_s for policy in policies if policy.max_batch == 12} == {0.0, 0.0025, 0.005}
    assert sum(policy.max_batch == 1 for policy in policies) == 1
    assert {policy.queue_bound for policy in default_candidates(4, 1.0, 2)} == {2, 4}
    choice = choose_policy(100.0, Objective(0.02), Measured({1: [0.001], 2: [0.0015]}), requests=2000, seeds=2)
    assert len(choice.readings) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Objective(0.0), "limit of the objective .* is 0"),
        (lambda: Objective(1.0, 100), "percent of the objective is 100"),
        (lambda: quick(-1.0, 1.0, [Policy(1)]), "rate .* is -1"),
        (lambda: quick(1.0, 1.0, []), "candidates is empty"),
        (lambda: quick(1.0, 1.0, None), "no candidates"),
        (lambda: quick(1.0, 1.0, [Policy(1)], seeds=1), "seeds is 1: expected a whole number from 2 to 1000"),
        (lambda: quick(1.0, 1.0, [Policy(2)], Measured({1: [0.1]})), "batch 2 is above 1, the largest measured"),
        (lambda: Measured({}), "no measured samples"),
        (lambda: Measured({1: [0.0]}), "samples of batch 1"),
        (lambda: Mix((1.0,), (0.5,)), r"add up to 0\.5: expected 1"),
        (lambda: Mix((1.0, 2.0), (1.0,)), "2 times and 1 probabilities"),
        (lambda: Linear(0.0, 0.0), r"A \+ B .* is 0"),
        (lambda: Exponential(-1.0), "mean of the exponential service time is -1"),
        (lambda: Constant("1"), "constant service time is '1'"),
    ],
)
def test_nonsense_is_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_figure_has_a_knee_for_every_policy_and_tells_it_in_words():
    policies = [Policy(1), Policy(8), Policy(8, 0.005)]
    objective = Objective(0.02)
    found = batching_plots.curves(policies, SERVICE, objective, rate_per_s=200.0, requests=3000)
    for curve in found:
        assert curve.capacity_per_s == pytest.approx(curve.policy.max_batch / SERVICE.mean_s(curve.policy.max_batch))
        assert 200.0 in curve.rates_per_s
        assert list(curve.rates_per_s) == sorted(curve.rates_per_s)
        assert curve.reached_s[-1] > 2 * curve.reached_s[0], "the knee"
    picture = batching_plots.latency_against_rate(found, objective, 200.0)
    assert [axes.get_title() for axes in picture.figure.axes] == ["greedy", "longest wait 5 ms"]
    for axes in picture.figure.axes:
        assert axes.get_xlabel() == "arrivals per second"
    assert picture.figure.axes[0].get_ylabel() == "p95 of time in system, ms"
    assert "444 for batches up to 1, 2,000 for batches up to 8" in picture.alt_text
    assert "limit of 20 ms" in picture.alt_text
    assert picture.svg().startswith("<svg")
    with pytest.raises(InputError, match="no curves"):
        batching_plots.latency_against_rate([], objective)


def test_measured_samples_drive_the_same_queue_as_the_distribution_they_came_from():
    """Samples of an exponential: the mean wait is Pollaczek-Khinchine's for the samples' own moments."""
    samples = np.random.default_rng(0).exponential(1.0, 2000)
    summary = summarise(Poisson(0.7), Measured({1: samples}), Policy(1), 400_000, seed=1)
    expected = 0.7 * np.mean(samples**2) / (2 * (1 - 0.7 * np.mean(samples)))
    assert abs(summary.mean_wait_s - expected) < 3 * summary.standard_error_s
