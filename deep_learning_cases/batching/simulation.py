"""Runs of the queue: what became of each request, or a summary of any number of them in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep_learning_cases.batching.arrivals import ARRIVAL_STREAM, SERVICE_STREAM, Arrivals, Floats, Trace, generator
from deep_learning_cases.batching.queueing import Batches, Ints, Policy, run
from deep_learning_cases.batching.service_times import ServiceTime
from deep_learning_cases.batching.summary import Collector, Summary, warm_up_requests
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import whole

__all__ = ["EXACT_REQUESTS", "Result", "load", "simulate", "stream", "summarise"]

Number = TypeVar("Number", np.float64, np.int64)

EXACT_REQUESTS = 4_000_000
"""Up to here a summary keeps every wait (16 bytes a request, and as much again while it sorts); above, a histogram."""


@dataclass(frozen=True)
class Result:
    """What happened to each request: arrays of shape (n,) in the order of arrival, seconds: 57 bytes a request, and
    up to 40 for the raw record that the summary is made from.

    A request's wait is ``queueing_s`` (the server was busy) and then ``fill_s`` (the server was free and waited for the
    batch to fill).  ``batch`` numbers the batches in the order they ran, ``batch_size`` is how many shared it.  For a
    request that was refused the times are NaN, ``batch`` is -1 and ``batch_size`` 0.
    """

    arrivals_s: Floats
    accepted: NDArray[np.bool_]
    start_s: Floats
    queueing_s: Floats
    fill_s: Floats
    service_s: Floats
    batch: Ints
    batch_size: Ints
    batches: tuple[Batches, ...]
    """The raw record of the run, which :meth:`summary` is computed from."""

    @property
    def wait_s(self) -> Floats:
        """From arrival to the start of the batch."""
        return self.start_s - self.arrivals_s

    @property
    def time_in_system_s(self) -> Floats:
        """From arrival to the end of the batch."""
        return self.start_s + self.service_s - self.arrivals_s

    @property
    def refused(self) -> int:
        """Requests that found the queue full."""
        return int(len(self.accepted) - np.count_nonzero(self.accepted))

    def summary(self, warm_up: int | None = None) -> Summary:
        """Exact percentiles and means; ``warm_up`` requests at the start are not counted (None: a tenth)."""
        served = len(self.arrivals_s) - self.refused
        skip = _checked_warm_up(warm_up, served)
        collector = Collector(skip, exact=True)
        for batches in self.batches:
            collector.add(batches)
        return collector.summary()


def simulate(arrivals_s: ArrayLike, service_time: ServiceTime, policy: Policy, seed: int = 0) -> Result:
    """Serve the requests that arrive at ``arrivals_s``, shape (n,), non-decreasing seconds; every request's fate.

    The same seed gives the same result; ``seed`` draws the service times only, so make random arrivals with
    ``arrival_times_s(Poisson(rate), n, seed)``.  After the last arrival the queue is served to its end.  Raises
    InputError for arrivals that are not such times.
    """
    trace = Trace(arrivals_s)
    rng = generator(seed, SERVICE_STREAM)
    record = tuple(run(trace.blocks_s(len(trace.times_s), rng), service_time, policy, rng))
    accepted = np.ones(len(trace.times_s), dtype=bool)
    if policy.queue_bound is not None:
        accepted = np.concatenate([batches.accepted for batches in record if batches.accepted is not None])
    sizes = np.concatenate([batches.sizes for batches in record])

    def each(name: str) -> Floats:
        per_batch: Floats = np.concatenate([getattr(batches, name) for batches in record])
        return np.repeat(per_batch, sizes)

    arrived = trace.times_s[accepted]
    start = each("starts_s")
    queueing = np.clip(each("free_s"), arrived, start) - arrived
    return Result(
        arrivals_s=trace.times_s,
        accepted=accepted,
        start_s=_spread(start, accepted, np.nan),
        queueing_s=_spread(queueing, accepted, np.nan),
        fill_s=_spread(start - arrived - queueing, accepted, np.nan),
        service_s=_spread(each("finishes_s") - start, accepted, np.nan),
        batch=_spread(np.repeat(np.arange(len(sizes)), sizes), accepted, -1),
        batch_size=_spread(np.repeat(sizes, sizes), accepted, 0),
        batches=record,
    )


def _spread(column: NDArray[Number], accepted: NDArray[np.bool_], missing: float) -> NDArray[Number]:
    """``column``, one entry per accepted request, over all requests."""
    full: NDArray[Number] = np.full(len(accepted), missing, dtype=column.dtype)
    full[accepted] = column
    return full


def summarise(
    arrivals: Arrivals,
    service_time: ServiceTime,
    policy: Policy,
    requests: int,
    seed: int = 0,
    *,
    warm_up: int | None = None,
    exact: bool | None = None,
) -> Summary:
    """The summary of a run of ``requests`` requests, made and forgotten block by block.

    Without ``exact`` the memory does not grow with the run: a few MB for a hundred million requests.  ``exact`` (None:
    up to ``EXACT_REQUESTS``) keeps every wait for exact percentiles.  Same seed, same numbers as :func:`simulate` on
    ``arrival_times_s``.
    ``warm_up`` requests at the start are not counted (None: a tenth, at most a million).
    """
    requests = whole(requests, "requests")
    skip = _checked_warm_up(warm_up, requests)
    collector = Collector(skip, exact=requests <= EXACT_REQUESTS if exact is None else exact)
    for batches in stream(arrivals, service_time, policy, requests, seed):
        collector.add(batches)
    return collector.summary()


def stream(
    arrivals: Arrivals, service_time: ServiceTime, policy: Policy, requests: int, seed: int = 0
) -> Iterator[Batches]:
    """The raw batches of a run, block by block."""
    blocks = arrivals.blocks_s(whole(requests, "requests"), generator(seed, ARRIVAL_STREAM))
    return run(blocks, service_time, policy, generator(seed, SERVICE_STREAM))


def load(rate_per_s: float, service_time: ServiceTime, policy: Policy) -> float:
    """Work that arrives per second of server time when every batch is full; at 1 or more the queue grows for ever."""
    return rate_per_s * service_time.mean_s(policy.max_batch) / policy.max_batch


def _checked_warm_up(warm_up: int | None, requests: int) -> int:
    skip = warm_up_requests(requests) if warm_up is None else whole(warm_up, "warm-up", 0)
    if skip >= requests:
        raise InputError(f"warm-up is {skip} of {requests} requests: expected fewer, so that something is counted")
    return skip
