"""When requests arrive: seeded streams, and recorded ones.

All times are seconds (float64).  Arrivals are made block by block, so that a hundred million requests need no more
memory than a hundred thousand; the blocks are cut at fixed places, so that a run in pieces and a run in one piece see
the very same numbers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import positive, settle, whole

__all__ = [
    "BLOCK",
    "Arrivals",
    "Bursts",
    "Poisson",
    "Regular",
    "Trace",
    "arrival_times_s",
    "generator",
]

Floats = NDArray[np.float64]

BLOCK = 1 << 13
"""Requests made at once: few enough that a block with its lists stays in the processor's cache."""

ARRIVAL_STREAM, SERVICE_STREAM = 0, 1


def generator(seed: int, stream: int) -> np.random.Generator:
    """The random numbers of one purpose: arrivals and service times draw from streams of their own.

    So policies that are compared under one seed see the same arrivals (common random numbers).
    """
    return np.random.default_rng([whole(seed, "seed", 0), stream])


class Arrivals(Protocol):
    """A stream of requests with a long-run rate."""

    @property
    def rate_per_s(self) -> float:
        """Requests per second in the long run."""

    def blocks_s(self, requests: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Arrival times in order, at most about ``BLOCK`` at a time, ``requests`` in all."""
        ...


def arrival_times_s(arrivals: Arrivals, requests: int, seed: int = 0) -> Floats:
    """All arrival times in one array of shape (requests,), non-decreasing."""
    rng = generator(seed, ARRIVAL_STREAM)
    return np.concatenate(list(arrivals.blocks_s(whole(requests, "requests"), rng)))


def _sizes(requests: int, block: int) -> Iterator[int]:
    for first in range(0, requests, block):
        yield min(block, requests - first)


def _poisson_blocks(rate_per_s: float, events: int, block: int, rng: np.random.Generator) -> Iterator[Floats]:
    now = 0.0
    for count in _sizes(events, block):
        times = np.cumsum(rng.standard_exponential(count))
        times /= rate_per_s
        times += now
        now = float(times[-1])
        yield times


@dataclass(frozen=True)
class Poisson:
    """Independent requests: exponential gaps with mean ``1 / rate_per_s``."""

    rate_per_s: float

    def __post_init__(self) -> None:
        settle(self, rate_per_s=positive(self.rate_per_s, "rate (requests per second)"))

    def blocks_s(self, requests: int, rng: np.random.Generator) -> Iterator[Floats]:
        """As :meth:`Arrivals.blocks_s`."""
        return _poisson_blocks(self.rate_per_s, requests, BLOCK, rng)


@dataclass(frozen=True)
class Regular:
    """A metronome: request k arrives at ``k / rate_per_s``."""

    rate_per_s: float

    def __post_init__(self) -> None:
        settle(self, rate_per_s=positive(self.rate_per_s, "rate (requests per second)"))

    def blocks_s(self, requests: int, rng: np.random.Generator) -> Iterator[Floats]:  # noqa: ARG002
        """As :meth:`Arrivals.blocks_s`; nothing is drawn."""
        first = 0
        for count in _sizes(requests, BLOCK):
            yield np.arange(first, first + count) / self.rate_per_s
            first += count


@dataclass(frozen=True)
class Bursts:
    """``size`` requests at the same instant; the bursts are a Poisson stream with ``rate_per_s / size`` per second."""

    rate_per_s: float
    size: int

    def __post_init__(self) -> None:
        settle(self, rate_per_s=positive(self.rate_per_s, "rate (requests per second)"))
        settle(self, size=whole(self.size, "burst size"))

    def blocks_s(self, requests: int, rng: np.random.Generator) -> Iterator[Floats]:
        """As :meth:`Arrivals.blocks_s`; the last burst may be cut."""
        bursts = -(-requests // self.size)
        left = requests
        for times in _poisson_blocks(self.rate_per_s / self.size, bursts, max(1, BLOCK // self.size), rng):
            yield np.repeat(times, self.size)[:left]
            left -= len(times) * self.size


class Trace:
    """Arrivals as they were recorded: ``times_s``, shape (n,), finite and non-decreasing."""

    def __init__(self, times_s: ArrayLike) -> None:
        try:
            times = np.asarray(times_s, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("arrivals are not numbers: expected a one-dimensional array of seconds") from None
        if times.ndim != 1 or times.size == 0:
            raise InputError(f"arrivals have shape {times.shape}: expected one dimension and at least one request")
        if not np.isfinite(times).all():
            raise InputError("an arrival time is not finite: expected seconds, in order")
        back = np.flatnonzero(np.diff(times) < 0)
        if back.size:
            at = int(back[0]) + 1
            raise InputError(f"arrival {at} ({times[at]:g} s) is before arrival {at - 1}: expected times in order")
        self.times_s = times

    @property
    def rate_per_s(self) -> float:
        """Gaps per second between the first and the last arrival (infinite where all come at once)."""
        span = float(self.times_s[-1] - self.times_s[0])
        return (len(self.times_s) - 1) / span if span > 0 else math.inf

    def blocks_s(self, requests: int, rng: np.random.Generator) -> Iterator[Floats]:  # noqa: ARG002
        """As :meth:`Arrivals.blocks_s`; InputError for more requests than were recorded."""
        if requests > len(self.times_s):
            raise InputError(f"requests is {requests}: expected at most the {len(self.times_s)} recorded arrivals")
        for first in range(0, requests, BLOCK):
            yield self.times_s[first : min(first + BLOCK, requests)]
