"""A slow and plain simulation of the same policy, event by event, as an oracle for the fast loops."""

import heapq
import itertools
from collections.abc import Callable, Sequence

ARRIVAL, END, TIMER = range(3)


def serve(
    arrivals_s: Sequence[float],
    service: Callable[[int], float],
    max_batch: int,
    max_wait_s: float,
    queue_bound: int | None,
) -> tuple[list[tuple[float, float, list[int]]], set[int]]:
    """Batches (start, end, requests in it) in order, and the requests refused."""
    order = itertools.count()
    events: list[tuple[float, int, int, int]] = []
    for request, time in enumerate(arrivals_s):
        heapq.heappush(events, (time, ARRIVAL, next(order), request))
    queue: list[int] = []
    batches: list[tuple[float, float, list[int]]] = []
    refused: set[int] = set()
    busy = False

    def start(now: float) -> None:
        nonlocal busy
        taken = queue[:max_batch]
        del queue[:max_batch]
        end = now + service(len(taken))
        batches.append((now, end, taken))
        busy = True
        heapq.heappush(events, (end, END, next(order), -1))

    while events:
        now, kind, _, request = heapq.heappop(events)
        if kind == ARRIVAL:
            if queue_bound is not None and len(queue) >= queue_bound:
                refused.add(request)
            else:
                queue.append(request)
                heapq.heappush(events, (now + max_wait_s, TIMER, next(order), -1))
                if not busy and len(queue) >= max_batch:
                    start(now)
            continue
        if kind == END:
            busy = False
        if not busy and queue and (len(queue) >= max_batch or now >= arrivals_s[queue[0]] + max_wait_s):
            start(now)
    return batches, refused
