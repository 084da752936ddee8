"""One server that works in batches: which requests go together, when each batch starts and ends.

The state is the time the server becomes free and the requests that wait.  Nothing else happens between two batches, so
the loops below step from batch to batch instead of from event to event; one step costs about as much for 32 requests as
for one.  Batches of one need no loop at all: Lindley's recursion is a running maximum.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.batching.service_times import ServiceTime
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import positive, settle, whole

__all__ = ["Batches", "Policy", "run"]

Ints = NDArray[np.int64]
Service = Callable[[int], float]

NEVER = float("inf")


@dataclass(frozen=True)
class Policy:
    """When a batch starts, and who is let in.

    A batch starts at the first instant at which the server is free and either ``max_batch`` requests wait, or at least
    one waits and the oldest has waited ``max_wait_s``.  It takes the oldest requests, at most ``max_batch``.  So with
    ``max_wait_s`` 0 ("greedy") a free server takes whatever is queued, and with ``max_batch`` 1 the wait is irrelevant.
    The clock of the wait runs from a request's own arrival, also while the server is busy with an earlier batch.

    At most ``queue_bound`` requests wait (those in service not counted; None: no bound); an arrival that finds that
    many is refused and leaves for good.  A bound below ``max_batch`` could never fill a batch, and is no policy.

    Several things at one instant happen in this order: arrivals (in theirs; the one that fills a batch of a free server
    starts it at once), then the end of a batch, then the start of the next.  So a request that arrives in the very
    instant in which a partial batch starts still joins it, and one that arrives in the instant in which the server
    becomes free still finds the queue as it was.
    """

    max_batch: int = 1
    max_wait_s: float = 0.0
    queue_bound: int | None = None

    def __post_init__(self) -> None:
        bound = None if self.queue_bound is None else whole(self.queue_bound, "queue bound")
        max_wait_s = positive(self.max_wait_s, "longest wait (seconds)", zero=True)
        settle(self, max_batch=whole(self.max_batch, "largest batch"), max_wait_s=max_wait_s, queue_bound=bound)
        if bound is not None and bound < self.max_batch:
            raise InputError(
                f"queue bound is {self.queue_bound}: expected at least the largest batch, {self.max_batch}, "
                "since a shorter queue never fills one"
            )

    def __str__(self) -> str:
        wait = "greedy" if self.max_wait_s == 0 else f"wait {1e3 * self.max_wait_s:g} ms"
        bound = "" if self.queue_bound is None else f", queue {self.queue_bound}"
        return f"batch {self.max_batch}, {wait}{bound}"


class Batches(NamedTuple):
    """The next batches of a run, in order, and the requests in them.

    ``arrivals_s`` (n,) are the requests that were let in and are in these batches; batch k starts at ``starts_s[k]``,
    ends at ``finishes_s[k]``, holds ``sizes[k]`` of them, and the server was free from ``free_s[k]`` on.
    ``accepted`` (m,) tells for the next m requests offered whether each was let in; those let in may be in a later
    :class:`Batches`.  It is None for a policy without a bound.
    """

    arrivals_s: Floats
    starts_s: Floats
    finishes_s: Floats
    free_s: Floats
    sizes: Ints
    accepted: NDArray[np.bool_] | None


def run(
    blocks_s: Iterable[Floats], service_time: ServiceTime, policy: Policy, rng: np.random.Generator
) -> Iterator[Batches]:
    """Serve a stream of arrivals; yields the batches block by block and holds one block in memory (plus the queue).

    After the last arrival the queue is served to its end: a batch that can no longer fill starts when its oldest
    request has waited ``max_wait_s``.
    """
    if policy.max_batch == 1 and policy.queue_bound is None:
        return _lindley(blocks_s, service_time, rng)
    service = service_time.sampler(rng, policy.max_batch)
    if policy.queue_bound is None:
        return _unbounded(blocks_s, policy, service)
    return _bounded(blocks_s, policy, service)


def _lindley(blocks_s: Iterable[Floats], service_time: ServiceTime, rng: np.random.Generator) -> Iterator[Batches]:
    """Batches of one: finish_n = max(arrival_n, finish_{n-1}) + service_n (Lindley 1952), without a loop.

    With C_n = service_1 + ... + service_n this reads finish_n - C_n = max(arrival_n - C_{n-1}, finish_{n-1} - C_{n-1}):
    a running maximum.  C starts anew in each block, so that rounding does not grow with the run.
    """
    free = -NEVER
    for arrivals in blocks_s:
        work = np.cumsum(service_time.draw_s(rng, 1, len(arrivals)))
        before = np.concatenate(([0.0], work[:-1]))
        slack = arrivals - before
        slack[0] = max(slack[0], free)
        finishes = np.maximum.accumulate(slack) + work
        was_free = np.concatenate(([free], finishes[:-1]))
        starts = np.maximum(arrivals, was_free)
        free = float(finishes[-1])
        yield Batches(arrivals, starts, finishes, was_free, np.ones(len(arrivals), dtype=np.int64), None)


def _ahead(blocks_s: Iterable[Floats]) -> Iterator[tuple[Floats, bool]]:
    """Every block, and whether it is the last."""
    previous: Floats | None = None
    for block in blocks_s:
        if previous is not None:
            yield previous, False
        previous = block
    if previous is not None:
        yield previous, True


def _unbounded(blocks_s: Iterable[Floats], policy: Policy, service: Service) -> Iterator[Batches]:
    free = -NEVER
    times = np.empty(0)
    for block, last in _ahead(blocks_s):
        times = np.concatenate((times, block))
        queue = times.tolist()
        if last:
            queue += [NEVER] * policy.max_batch
        ends, finishes = _serve(queue, len(queue) - policy.max_batch, free, policy, service)
        if ends:
            yield _batches(times, ends, finishes, free, policy)
            times = times[ends[-1] :]
            free = finishes[-1]


def _batches(times: Floats, ends: list[int], finishes: list[float], free: float, policy: Policy) -> Batches:
    """The loop's lists as arrays; a batch's start follows from its oldest request and when the server became free."""
    bounds = np.asarray([0, *ends], dtype=np.int64)
    heads, ended = bounds[:-1], np.asarray(finishes, dtype=np.float64)
    was_free = np.concatenate(([free], ended[:-1]))
    fills = heads + (policy.max_batch - 1)
    full = np.where(fills < len(times), times[np.minimum(fills, len(times) - 1)], NEVER)
    starts = np.maximum(np.minimum(times[heads] + policy.max_wait_s, full), was_free)
    return Batches(times[: ends[-1]], starts, ended, was_free, np.diff(bounds), None)


def _serve(
    arrivals: list[float], heads: int, free: float, policy: Policy, service: Service
) -> tuple[list[int], list[float]]:
    """The innermost loop: batches whose oldest request is one of the first ``heads`` arrivals.

    For a ``max_batch`` of at least 2.  The ``max_batch - 1`` arrivals after the oldest must be known (infinite after
    the last), since they decide when the batch is full.  Returns for each batch the index after its last request, and
    its finish.
    """
    ends: list[int] = []
    finishes: list[float] = []
    largest, longest = policy.max_batch, policy.max_wait_s
    first = 0
    while first < heads:
        start = arrivals[first] + longest
        if start < free:
            start = free
        end = first + 1
        if arrivals[end] <= start:
            # Not alone.  Asking that first is cheap, and at a low load the answer is mostly no.
            end = first + largest
            full = arrivals[end - 1]
            if full <= start:
                start = full if full > free else free
            else:
                end = bisect_right(arrivals, start, first + 2, end - 1)
        free = start + service(end - first)
        ends.append(end)
        finishes.append(free)
        first = end
    return ends, finishes


def _bounded(blocks_s: Iterable[Floats], policy: Policy, service: Service) -> Iterator[Batches]:
    free = -NEVER
    offered: list[float] = []
    queue: list[float] = []
    for block, last in _ahead(blocks_s):
        offered += block.tolist()
        if last:
            offered += [NEVER] * policy.max_batch
        known = len(offered) - (policy.max_batch if last else 0)
        served = _serve_bounded(offered, known, queue, free, policy, service)
        if served.decided:
            finishes = np.asarray(served.finishes, dtype=np.float64)
            bounds = np.asarray([0, *served.ends], dtype=np.int64)
            yield Batches(
                np.asarray(queue[: bounds[-1]], dtype=np.float64),
                np.asarray(served.starts, dtype=np.float64),
                finishes,
                np.concatenate(([free], finishes))[:-1],
                np.diff(bounds),
                _outside(served.refused, served.decided),
            )
            del queue[: bounds[-1]]
            del offered[: served.decided]
            free = served.finishes[-1] if served.finishes else free


class _Served(NamedTuple):
    starts: list[float]
    ends: list[int]
    finishes: list[float]
    refused: list[int]
    """Runs of requests that were refused: first, after the last, first, after the last, and so on."""
    decided: int
    """So many of the requests offered were let in or refused."""


def _serve_bounded(
    offered: list[float], known: int, queue: list[float], free: float, policy: Policy, service: Service
) -> _Served:
    """As :func:`_serve`; while the server is busy the queue fills up to its bound and the rest is refused.

    A free server never refuses: it starts as soon as ``max_batch`` wait, and the bound is at least that.  Appends to
    ``queue`` who is let in, and stops where the next batch depends on arrivals that are not known yet.
    """
    starts: list[float] = []
    ends: list[int] = []
    finishes: list[float] = []
    refused: list[int] = []
    largest, longest, bound = policy.max_batch, policy.max_wait_s, policy.queue_bound
    assert bound is not None
    patience = longest if largest > 1 else 0.0
    first = begun = 0
    while begun < len(offered):
        if offered[begun] <= free:
            arrived = bisect_right(offered, free, begun)
            entering = min(arrived, begun + bound - len(queue) + first)
            queue += offered[begun:entering]
            if arrived > entering:
                refused += (entering, arrived)
            begun = arrived
            if begun == len(offered):
                break
        waiting = len(queue) - first
        if not waiting and begun + 1 < len(offered) and offered[begun + 1] > offered[begun] + patience:
            # Free, and nobody joins in time: the frequent case of a low load, kept cheap.
            start, end = offered[begun] + patience, first + 1
            queue.append(offered[begun])
            begun += 1
        elif waiting >= largest:
            start, end = free, first + largest
        else:
            missing = largest - waiting
            if begun + missing > len(offered) or (begun == known and not waiting):
                break
            due = (queue[first] if waiting else offered[begun]) + longest
            start = min(max(due, free), offered[begun + missing - 1])
            joining = bisect_right(offered, start, begun, begun + missing)
            queue += offered[begun:joining]
            begun, end = joining, len(queue)
        free = start + service(end - first)
        starts.append(start)
        ends.append(end)
        finishes.append(free)
        first = end
    return _Served(starts, ends, finishes, refused, begun)


def _outside(spans: list[int], length: int) -> NDArray[np.bool_]:
    """False inside the spans."""
    steps = np.zeros(length + 1, dtype=np.int64)
    np.add.at(steps, np.asarray(spans[::2], dtype=np.int64), 1)
    np.add.at(steps, np.asarray(spans[1::2], dtype=np.int64), -1)
    outside: NDArray[np.bool_] = np.cumsum(steps[:-1]) == 0
    return outside
