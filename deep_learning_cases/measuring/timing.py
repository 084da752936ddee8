"""The trial loop: warm-ups, timings, cold start, and what the loop itself costs.

The clock is an argument everywhere (nanoseconds, whole numbers, never backwards), so that a test can script the times.
"""

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deep_learning_cases.errors import InputError, MeasurementError
from deep_learning_cases.ground.arguments import whole

__all__ = ["GARBAGE_COLLECTOR", "Timing", "clock_resolution_ns", "cold_start", "loop_overhead_us", "time_calls"]

Clock = Callable[[], int]

GARBAGE_COLLECTOR = "off while timing"
"""How :func:`time_calls` treats Python's cyclic collector, as the record states it."""


class Timing(NamedTuple):
    """Every timing of one series in microseconds per call, in the order taken; the warm-ups stand apart."""

    samples_us: list[float]
    warmups_us: list[float]


def time_calls(
    call: Callable[[Any], object],
    inputs: Sequence[Any],
    warmups: int,
    repetitions: int,
    clock: Clock = time.perf_counter_ns,
    synchronize: Callable[[], object] | None = None,
) -> Timing:
    """Time ``call(x)`` alone, ``warmups + repetitions`` times.

    Args:
        call: what is timed; its result is dropped.
        inputs: prepared beforehand; the calls take them in turn and start over at the end, so one input means a fixed
            input and as many inputs as calls mean a fresh one each time.
        warmups: calls before the timings, kept apart.
        repetitions: timings.
        clock: nanoseconds as an int.
        synchronize: waits until an accelerator has finished; called before the first timing and, inside the timer,
            after each call.

    Raises:
        InputError: no inputs, or counts that are not whole numbers (warmups >= 0, repetitions >= 1).
        MeasurementError: the clock ran backwards.  A clock too coarse to see a call gives 0, which stays in the record.
    """
    if not len(inputs):
        raise InputError("there are no inputs: expected at least one prepared batch; pass what the calls should get")
    warmups, repetitions = whole(warmups, "warmups", 0), whole(repetitions, "repetitions")
    in_turn = [inputs[index % len(inputs)] for index in range(warmups + repetitions)]
    timed = _then(call, synchronize)
    durations_ns: list[int] = []
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection would charge one call for the rubbish of all the others
    try:
        for x in in_turn:
            start = clock()
            timed(x)
            stop = clock()
            durations_ns.append(stop - start)
    finally:
        if was_enabled:
            gc.enable()
    microseconds = [_microseconds(duration) for duration in durations_ns]
    return Timing(microseconds[warmups:], microseconds[:warmups])


def cold_start(
    load: Callable[[], Callable[[Any], object]], first_input: Any, clock: Clock = time.perf_counter_ns
) -> tuple[Callable[[Any], object], float]:
    """Load and run once: returns what ``load()`` gave and the microseconds until its first answer.

    Importing the runtime is not part of it: import before, so that the number belongs to the model.
    """
    start = clock()
    call = load()
    call(first_input)
    return call, _microseconds(clock() - start)


def loop_overhead_us(clock: Clock = time.perf_counter_ns, repetitions: int = 1000) -> float:
    """Median timing of an empty call in the same loop: the microseconds that the loop adds to each sample."""
    samples = sorted(time_calls(_nothing, (None,), 0, repetitions, clock).samples_us)
    return (samples[(repetitions - 1) // 2] + samples[repetitions // 2]) / 2


def clock_resolution_ns(clock: Clock = time.perf_counter_ns, readings: int = 1000) -> int:
    """Smallest step between two readings in a row, in nanoseconds, as seen in ``readings``; 0 if it never moved."""
    smallest, last = 0, clock()
    for _ in range(whole(readings, "readings")):
        now = clock()
        if now > last and (smallest == 0 or now - last < smallest):
            smallest = now - last
        last = now
    return smallest


def _then(call: Callable[[Any], object], synchronize: Callable[[], object] | None) -> Callable[[Any], object]:
    """``call`` itself, or ``call`` that returns only when the accelerator has finished."""
    if synchronize is None:
        return call
    synchronize()

    def timed(x: Any) -> None:
        call(x)
        synchronize()

    return timed


def _microseconds(duration_ns: int) -> float:
    if duration_ns < 0:
        raise MeasurementError(
            f"the clock ran back by {-duration_ns} ns: expected one that never does; use time.perf_counter_ns"
        )
    return duration_ns / 1000


def _nothing(_: Any) -> None:
    """The empty call."""
