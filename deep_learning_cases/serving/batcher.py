"""Dynamic batching for real: requests wait in one bounded queue, one thread runs the model on batches of them.

The rule is :class:`~deep_learning_cases.batching.queueing.Policy`, the same as the simulation's: a batch starts when
the thread is free and either the largest batch is full or the oldest ready request has waited long enough.  The thread
waits on a condition variable, not on a timer of the event loop, whose granularity is a millisecond.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.serving.reasons import reason

__all__ = ["Batcher", "Outcome", "Request", "delay_s"]

Images = NDArray[np.float32]


class Outcome(NamedTuple):
    """What became of a request that ran: logits float32 (10,), or why there are none; the clock's seconds."""

    logits: NDArray[np.float32] | None
    error: str | None
    batch_size: int
    started_s: float
    finished_s: float


class Request:
    """One admitted request.  ``context`` is the caller's own; ``decode_s`` and ``preprocess_s`` are for its use."""

    __slots__ = ("context", "decode_s", "image", "preprocess_s", "ready_s", "state")

    def __init__(self, context: Any) -> None:
        self.context = context
        self.image: Images | None = None
        self.ready_s = self.decode_s = self.preprocess_s = 0.0
        self.state = "admitted"  # then ready, running; or withdrawn


def delay_s(policy: Policy, ready: int, oldest_s: float, now_s: float, draining: bool = False) -> float | None:
    """Seconds until a free server starts its next batch: 0 or less is at once, None while nothing is ready.

    ``oldest_s`` is when the oldest of the ``ready`` requests became ready.  While ``draining`` no batch waits to fill:
    nobody else will come.
    """
    if ready == 0:
        return None
    if draining or ready >= policy.max_batch:
        return 0.0
    return oldest_s + policy.max_wait_s - now_s


class Batcher:
    """A bounded queue and the one thread that calls ``run(images (n, 1, 8, 8)) -> logits (n, 10)``.

    ``deliver`` gets ``[(request, outcome), ...]`` of every finished batch, in that thread.  All methods may be called
    from any thread.  At most ``policy.queue_bound`` admitted requests wait, those that are still being decoded counted
    and those in the running batch not.
    """

    def __init__(
        self,
        run: Callable[[Images], Images],
        policy: Policy,
        deliver: Callable[[Sequence[tuple[Request, Outcome]]], object],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._run, self._deliver, self._clock = run, deliver, clock
        self.policy = policy
        self._changed = threading.Condition()
        self._ready: deque[Request] = deque()
        self._waiting = 0
        self._running = 0
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="inference", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests admitted and not yet in a batch."""
        return self._waiting

    @property
    def running(self) -> int:
        """Requests in the batch that runs now."""
        return self._running

    def admit(self, context: Any = None) -> Request | None:
        """A place in the queue, or None where it is full or closed."""
        with self._changed:
            bound = self.policy.queue_bound
            if self._closed or (bound is not None and self._waiting >= bound):
                return None
            self._waiting += 1
            return Request(context)

    def ready(self, request: Request, image: Images) -> None:
        """The request's image, float32 (1, 8, 8), is decoded: from now on it waits for its batch."""
        with self._changed:
            if request.state != "admitted":
                return
            request.image, request.ready_s, request.state = image, self._clock(), "ready"
            self._ready.append(request)
            if len(self._ready) == 1 or len(self._ready) >= self.policy.max_batch:
                self._changed.notify()

    def withdraw(self, request: Request) -> bool:
        """Give the place back (bad image, timeout, client gone); False where its batch already runs or is done."""
        with self._changed:
            if request.state not in ("admitted", "ready"):
                return False
            if request.state == "ready":
                self._ready.remove(request)
            request.state = "withdrawn"
            self._waiting -= 1
            self._changed.notify()
            return True

    def close(self) -> None:
        """Admit nobody any more; what was admitted is still served, without waiting for batches to fill."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def join(self, timeout_s: float) -> bool:
        """Wait until everything admitted has been delivered, after :meth:`close`; False if that takes longer."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while batch := self._next_batch():
            started_s = self._clock()
            logits, error = self._answers(batch)
            finished_s = self._clock()
            with self._changed:
                self._running = 0
            rows = [None] * len(batch) if logits is None else list(logits)
            self._deliver(
                [
                    (request, Outcome(row, error, len(batch), started_s, finished_s))
                    for request, row in zip(batch, rows, strict=True)
                ]
            )

    def _next_batch(self) -> list[Request]:
        """Wait for the next batch and take it; empty when closed and everything admitted is done."""
        with self._changed:
            while not (self._closed and self._waiting == 0):
                oldest_s = self._ready[0].ready_s if self._ready else 0.0
                delay = delay_s(self.policy, len(self._ready), oldest_s, self._clock(), self._closed)
                if delay is not None and delay <= 0:
                    size = min(len(self._ready), self.policy.max_batch)
                    batch = [self._ready.popleft() for _ in range(size)]
                    for request in batch:
                        request.state = "running"
                    self._waiting -= size
                    self._running = size
                    return batch
                self._changed.wait(delay)
            return []

    def _answers(self, batch: list[Request]) -> tuple[Images | None, str | None]:
        """Logits (n, 10), copied since an engine may use its buffer again; or the reason why there are none."""
        try:
            images = np.stack([request.image for request in batch if request.image is not None])
            logits = np.array(self._run(images), dtype=np.float32)
        except Exception as error:  # whatever an engine raises must not end the only thread that answers
            return None, reason(error)
        if logits.ndim != 2 or len(logits) != len(batch):
            return None, f"the engine returned shape {logits.shape} for a batch of {len(batch)}"
        if not np.isfinite(logits).all():
            return None, "the engine returned a number that is not finite"
        return logits, None
