"""The fast loops do what the policy says: hand-worked cases, an event-by-event oracle, and what always holds."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deep_learning_cases.batching import (
    Constant,
    Exponential,
    Linear,
    Measured,
    Mix,
    Policy,
    arrival_times_s,
    simulate,
)
from deep_learning_cases.batching import arrivals as arrival_module
from deep_learning_cases.errors import InputError
from tests.library import queue_reference

# Halves and quarters: sums are exact, so that many things happen at the very same instant.
GRID = st.integers(0, 120).map(lambda quarters: quarters / 4)

POLICIES = st.builds(
    lambda size, wait, spare: Policy(size, wait, None if spare is None else size + spare),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]),
    st.none() | st.integers(0, 4),
)
TIMES = st.lists(GRID, min_size=1, max_size=60).map(sorted)
SERVICES = st.builds(Linear, st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.25]))


def fates(result):
    return [
        (float(result.start_s[i]), float(result.start_s[i] + result.service_s[i]), int(result.batch_size[i]))
        for i in np.flatnonzero(result.accepted)
    ]


def expected_fates(batches):
    return [(start, end, len(requests)) for start, end, requests in batches for _ in requests]


@pytest.mark.slow
@given(times=TIMES, service=SERVICES, policy=POLICIES)
@settings(max_examples=400, deadline=None)
@example(times=[0.0] * 9, service=Constant(1.0), policy=Policy(2, 0.0, 3))
@example(times=[0.0, 1.0, 1.0, 1.0], service=Constant(1.0), policy=Policy(1, 0.0, 1))
@example(times=[0.0, 0.5, 1.0, 1.0], service=Constant(1.0), policy=Policy(3, 1.0))
def test_equals_the_event_by_event_oracle_on_a_grid_full_of_ties(times, service, policy):
    result = simulate(times, service, policy)
    batches, refused = queue_reference.serve(
        times, service.mean_s, policy.max_batch, policy.max_wait_s, policy.queue_bound
    )
    assert set(np.flatnonzero(~result.accepted)) == refused
    # Batches of one go through Lindley's running maximum, whose sums are exact on this grid too.
    assert fates(result) == expected_fates(batches)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("block", [7, 1 << 13])
def test_equals_the_oracle_on_random_runs_cut_into_blocks(monkeypatch, seed, block):
    """Small blocks put every kind of cut between blocks to the test: in a batch, in a full queue, in an idle spell."""
    monkeypatch.setattr(arrival_module, "BLOCK", block)
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1.0, 400))
    size = int(rng.integers(1, 9))
    bound = None if seed % 3 == 0 else size + int(rng.integers(0, 6))
    policy = Policy(size, float(rng.choice([0.0, 0.7, 2.0, 10.0])), bound)
    service = Linear(float(rng.uniform(0.1, 3.0)), float(rng.uniform(0.0, 0.6)))
    result = simulate(times, service, policy)
    batches, refused = queue_reference.serve(times.tolist(), service.mean_s, size, policy.max_wait_s, bound)
    assert set(np.flatnonzero(~result.accepted)) == refused
    np.testing.assert_allclose(np.array(fates(result)), np.array(expected_fates(batches)), rtol=0, atol=1e-9)


@given(times=TIMES, service=SERVICES, policy=POLICIES)
@settings(max_examples=200, deadline=None)
def test_what_always_holds(times, service, policy):
    result = simulate(times, service, policy)
    served = np.flatnonzero(result.accepted)
    assert len(served) + result.refused == len(times)
    assert (result.batch[~result.accepted] == -1).all()
    assert np.isnan(result.start_s[~result.accepted]).all()
    if policy.queue_bound is None:
        assert result.refused == 0

    batch, start, size = result.batch[served], result.start_s[served], result.batch_size[served]
    assert (np.diff(batch) >= 0).all(), "first come, first served"
    assert batch[0] == 0
    assert (np.diff(batch) <= 1).all()
    assert (np.bincount(batch)[batch] == size).all()
    assert size.max() <= policy.max_batch

    assert (start >= result.arrivals_s[served]).all()
    firsts = np.flatnonzero(np.diff(batch, prepend=-1))
    starts, ends = start[firsts], (start + result.service_s[served])[firsts]
    assert (starts[1:] >= ends[:-1]).all(), "one server"

    parts = result.queueing_s[served] + result.fill_s[served]
    np.testing.assert_allclose(parts, result.wait_s[served], atol=1e-12)
    assert (result.queueing_s[served] >= 0).all()
    assert (result.fill_s[served] >= 0).all()
    assert (result.fill_s[served] <= policy.max_wait_s + 1e-12).all()


@given(times=TIMES, service=SERVICES, policy=POLICIES)
@settings(max_examples=200, deadline=None)
def test_no_free_server_while_a_full_batch_or_an_overdue_request_waits(times, service, policy):
    result = simulate(times, service, policy)
    served = np.flatnonzero(result.accepted)
    arrived, batch = result.arrivals_s[served], result.batch[served]
    free = -np.inf
    for number in range(batch[-1] + 1):
        members = np.flatnonzero(batch == number)
        oldest, start = arrived[members[0]], result.start_s[served][members[0]]
        filled = members[0] + policy.max_batch <= len(arrived)
        full = arrived[members[0] + policy.max_batch - 1] if filled else np.inf
        assert start == max(free, min(oldest + policy.max_wait_s, full))
        free = start + result.service_s[served][members[0]]


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 5)), min_size=1, max_size=80),
)
@settings(max_examples=150, deadline=None)
def test_batches_of_one_follow_lindleys_recursion(pairs):
    """W_{n+1} = max(0, W_n + S_n - T_n), in plain Python."""
    gaps, services = zip(*pairs, strict=True)

    class Scripted(Linear):
        def draw_s(self, rng, batch, count):  # noqa: ARG002
            return np.array(services[:count])

    result = simulate(np.cumsum(gaps), Scripted(1.0, 0.0), Policy(1))
    wait = 0.0
    for n, found in enumerate(result.wait_s):
        assert found == pytest.approx(wait, abs=1e-9)
        if n + 1 < len(gaps):
            wait = max(0.0, wait + services[n] - gaps[n + 1])


def test_a_policy_by_hand():
    """Batches of at most 2, wait at most 1 s, 2 s per batch: a full batch, a queue, a batch that times out."""
    result = simulate([0.0, 0.5, 0.75, 6.0], Constant(2.0), Policy(2, 1.0))
    assert result.start_s.tolist() == [0.5, 0.5, 2.5, 7.0]
    assert result.batch_size.tolist() == [2, 2, 1, 1]
    assert result.fill_s.tolist() == [0.5, 0.0, 0.0, 1.0]
    assert result.queueing_s.tolist() == [0.0, 0.0, 1.75, 0.0]
    assert result.time_in_system_s.tolist() == [2.5, 2.0, 3.75, 3.0]


def test_the_clock_of_the_wait_runs_while_the_server_is_busy():
    """The third request came at 1 s and its second of waiting is over at 2 s, when the server is still busy."""
    result = simulate([0.0, 0.0, 1.0], Constant(5.0), Policy(2, 1.0))
    assert result.start_s.tolist() == [0.0, 0.0, 5.0]


def test_refusals_by_hand():
    """Two may wait: of six at once, one is served, two wait, three go; then the queue is free for another two."""
    result = simulate([0.0] * 6 + [1.5, 1.6, 1.7], Constant(1.0), Policy(1, 0.0, 2))
    assert result.accepted.tolist() == [True, True, True, False, False, False, True, False, False]
    assert result.start_s[result.accepted].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert result.summary().refused == 5


def test_a_burst_that_fills_several_batches_starts_the_first_at_once():
    result = simulate([1.0] * 5, Constant(1.0), Policy(2, 10.0))
    assert result.start_s.tolist() == [1.0, 1.0, 2.0, 2.0, 11.0]


@pytest.mark.parametrize(
    "service",
    [Exponential(1.0), Mix((0.5, 3.0), (0.9, 0.1)), Measured({1: [1.0, 2.0, 4.0]})],
)
def test_vectorised_and_looped_batches_of_one_draw_the_same_times(service):
    """A bound that is never reached sends the same run through the loop instead of the running maximum."""
    times = arrival_times_s(arrival_module.Poisson(0.3), 20_000, seed=3)
    fast, slow = simulate(times, service, Policy(1), 5), simulate(times, service, Policy(1, 0.0, 10**6), 5)
    np.testing.assert_allclose(fast.service_s, slow.service_s, atol=1e-9)
    np.testing.assert_allclose(fast.wait_s, slow.wait_s, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "largest batch is 0: expected a whole number of at least 1"),
        ((True,), "largest batch is True"),
        ((2.0,), r"largest batch is 2\.0"),
        ((2, -1.0), "longest wait .* is -1.0: expected a finite number of at least 0"),
        ((2, float("inf")), "longest wait .* is inf"),
        ((4, 0.0, 3), "queue bound is 3: expected at least the largest batch, 4"),
    ],
)
def test_a_nonsense_policy_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        Policy(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "at least one request"),
        ([[1.0]], r"shape \(1, 1\)"),
        ([0.0, float("nan")], "not finite"),
        ([0.0, 2.0, 1.0], r"arrival 2 \(1 s\) is before arrival 1"),
        (["a"], "not numbers"),
    ],
)
def test_nonsense_arrivals_are_refused(times, message):
    with pytest.raises(InputError, match=message):
        simulate(times, Constant(1.0), Policy(1))
