"""The trial loop under a scripted clock: exact samples, discards, order, and what stands between two readings."""

import gc

import pytest

from deep_learning_cases.errors import InputError, MeasurementError
from deep_learning_cases.measuring import timing


class Scripted:
    """A clock that only moves when told to, and a call that moves it."""

    def __init__(self, durations_ns, between_ns=7):
        self.now, self.between_ns, self.durations_ns = 0, between_ns, iter(durations_ns)
        self.seen, self.events = [], []

    def clock(self):
        self.events.append("clock")
        self.now += self.between_ns
        return self.now

    def call(self, x):
        self.seen.append(x)
        self.events.append("call")
        self.now += next(self.durations_ns)
        return object()

    def synchronize(self):
        self.events.append("wait")
        self.now += 1000


def test_every_sample_is_kept_in_order_and_the_warmups_stand_apart():
    script = Scripted([9000, 8000, 1000, 5000, 2000], between_ns=0)
    result = timing.time_calls(script.call, ["a"], 2, 3, script.clock)
    assert result.warmups_us == [9.0, 8.0]
    assert result.samples_us == [1.0, 5.0, 2.0]


def test_inputs_are_taken_in_turn_and_start_over():
    script = Scripted([1] * 5)
    timing.time_calls(script.call, ["a", "b", "c"], 1, 4, script.clock)
    assert script.seen == ["a", "b", "c", "a", "b"]


def test_nothing_but_the_call_stands_between_two_readings():
    script = Scripted([1] * 3)
    timing.time_calls(script.call, ["a"], 1, 2, script.clock)
    assert script.events == ["clock", "call", "clock"] * 3


def test_an_accelerator_is_waited_for_inside_the_timer():
    script = Scripted([500, 500], between_ns=0)
    result = timing.time_calls(script.call, ["a"], 0, 2, script.clock, script.synchronize)
    assert script.events == ["wait", *["clock", "call", "wait", "clock"] * 2]
    assert result.samples_us == [1.5, 1.5]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_off_while_timing_and_as_before_afterwards(enabled):
    states = []
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        timing.time_calls(lambda _: states.append(gc.isenabled()), [0], 1, 2)
        assert states == [False] * 3
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_the_collector_comes_back_after_a_call_that_fails():
    def fail(_):
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        timing.time_calls(fail, [0], 0, 1)
    assert gc.isenabled()


def test_a_clock_that_runs_back_is_refused():
    readings = iter([10, 5])
    with pytest.raises(MeasurementError, match="ran back by 5 ns"):
        timing.time_calls(lambda _: None, [0], 0, 1, lambda: next(readings))


@pytest.mark.parametrize(
    ("inputs", "warmups", "repetitions"), [([], 0, 1), ([0], -1, 1), ([0], 0, 0), ([0], True, 1), ([0], 0, 2.0)]
)
def test_bad_arguments_are_refused(inputs, warmups, repetitions):
    with pytest.raises(InputError, match="expected"):
        timing.time_calls(lambda _: None, inputs, warmups, repetitions)


def test_the_cold_start_is_loading_and_the_first_call():
    script = Scripted([3000], between_ns=0)

    def load():
        script.now += 20_000
        return script.call

    call, cold_start_us = timing.cold_start(load, "first", script.clock)
    assert (cold_start_us, script.seen) == (23.0, ["first"])
    assert call == script.call


def test_overhead_is_the_median_timing_of_an_empty_call():
    steps = iter([0, 50, 100, 160, 200, 290])
    assert timing.loop_overhead_us(lambda: next(steps), 3) == 0.06
    assert timing.loop_overhead_us(lambda: 5, 4) == 0.0


def test_resolution_is_the_smallest_step_seen():
    readings = iter([0, 0, 100, 100, 130, 400])
    assert timing.clock_resolution_ns(lambda: next(readings), 5) == 30
    assert timing.clock_resolution_ns(lambda: 7, 5) == 0
