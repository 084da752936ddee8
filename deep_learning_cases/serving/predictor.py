"""From the bytes of an image to an answer: admission, decoding, batching, timeout.  Knows nothing of HTTP.

The event loop admits and answers, a few threads decode, one more decodes what is large, one runs the model.  A decoded
image goes from its decoder straight to the batching queue, and a finished batch comes back to the event loop in one
call.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground import machine
from deep_learning_cases.ground.arguments import positive, whole
from deep_learning_cases.serving import images
from deep_learning_cases.serving.batcher import Batcher, Outcome, Request
from deep_learning_cases.serving.image_files import Plain
from deep_learning_cases.serving.metrics import Metrics, resident_bytes

__all__ = ["GONE", "PARTS", "Answer", "Limits", "Prediction", "Predictor", "Refusal"]

PARTS = ("decode", "preprocess", "wait", "run", "total")
"""What an answer's latency is split into.

``total`` runs from the whole body received to the answer handed to the connection.  ``wait`` is all waiting up to the
start of the batch: for a decoding thread, and for the batch to fill and the model to be free.  What ``total`` has
beyond the sum of the four parts is the way back from the model's thread to the event loop.
"""

LARGE_WORK = 2_000_000
"""Pixels times scans above which an image is decoded in the one thread for such, so that the others stay free."""

MOST_LARGE = 8
"""So many large images may be decoded or wait for it; one more is refused, and the queue has room for the others."""

GONE = 499
"""The status that counts clients that left before their answer, as nginx counts them; nobody is there to receive it."""


@dataclass(frozen=True)
class Limits:
    """What one client, or all of them, may cost.  Sizes in bytes, times in seconds."""

    body_bytes: int = 8 << 20
    bodies_bytes: int = 128 << 20
    """Of all bodies that are being received at one time."""
    pixels: int = images.MAX_PIXELS
    connections: int = 600
    """Open at one time.  Where HTTP costs more than the model does, an overload piles up unread in the connections,
    which the queue's bound does not see, and refusing costs as much as serving: this bound then limits the latency.
    With those that are being refused it stays below the 1024 descriptors that many systems give a process."""
    request_timeout_s: float = 10.0
    body_timeout_s: float = 10.0
    idle_timeout_s: float = 30.0
    decode_threads: int = 2

    def __post_init__(self) -> None:
        for name in ("body_bytes", "bodies_bytes", "pixels", "connections", "decode_threads"):
            whole(getattr(self, name), name)
        for name in ("request_timeout_s", "body_timeout_s", "idle_timeout_s"):
            positive(getattr(self, name), name)


class Refusal(Exception):
    """A request that gets no prediction: the HTTP status, one line, and when to come again."""

    def __init__(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s


class Answer(NamedTuple):
    """The prediction of one image; ``latency_s`` has the keys of :data:`PARTS`."""

    label: int
    logits: list[float]
    latency_s: dict[str, float]
    batch_size: int


class Prediction:
    """One admitted image on its way to an answer."""

    def __init__(self, predictor: "Predictor", future: "asyncio.Future[Answer]", received_s: float) -> None:
        self._predictor, self._future, self.received_s = predictor, future, received_s
        self.request: Request | None = None

    async def answer(self) -> Answer:
        """Wait for it; Refusal with status 400 (no image), 499 (:meth:`leave`), 500 (model) or 504 (too late)."""
        limit_s = self._predictor.limits.request_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._future
        except TimeoutError:
            raise Refusal(504, f"no answer within {limit_s:g} s: the service is too busy; try again later", 1) from None
        finally:
            self._predictor.release(self)

    def leave(self) -> None:
        """The client has gone: give its place to somebody else."""
        self.fail(Refusal(GONE, "the client closed the connection"))

    def fail(self, refusal: Refusal) -> None:
        """End without an answer, unless there is one already."""
        if not self._future.done():
            self._future.set_exception(refusal)

    def succeed(self, answer: Answer) -> None:
        """End with an answer, unless the wait for it is already over."""
        if not self._future.done():
            self._future.set_result(answer)


class Predictor:
    """Runs ``run(images (n, 1, 8, 8)) -> logits (n, 10)`` on batches of what :meth:`begin` admits.

    To be made inside a running event loop, whose thread calls everything here.  The policy needs a queue bound.
    """

    def __init__(
        self,
        run: Callable[[NDArray[np.float32]], NDArray[np.float32]],
        policy: Policy,
        limits: Limits,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if policy.queue_bound is None:
            raise InputError("the service's queue has no bound: expected one, so that overload is refused; set it")
        self.limits, self.metrics, self.policy = limits, Metrics(PARTS), policy
        self.stopping = False
        self._clock, self._batch_s = clock, 0.0
        self._loop = asyncio.get_running_loop()
        self._decoders = ThreadPoolExecutor(min(limits.decode_threads, machine.usable_cores()), "decode")
        self._large_decoder = ThreadPoolExecutor(1, "decode-large")
        self._large = threading.BoundedSemaphore(max(1, min(MOST_LARGE, policy.queue_bound // 2)))
        self._batcher = Batcher(run, policy, self._from_thread, clock)

    def begin(self, body: bytes) -> Prediction:
        """Admit an image; Refusal 503 where the queue is full or the service stops."""
        prediction = Prediction(self, self._loop.create_future(), self._clock())
        prediction.request = self._batcher.admit(prediction)
        if prediction.request is None:
            raise self._unavailable()
        self._decoders.submit(self._decode, prediction.request, body)
        return prediction

    def release(self, prediction: Prediction) -> None:
        """Give back the place of a prediction whose batch has not started."""
        if prediction.request is not None:
            self._batcher.withdraw(prediction.request)

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What is so right now, for the metrics page: name -> (help text, value)."""
        return {
            "dlcases_queue_length": ("Requests admitted and not yet in a batch.", self._batcher.waiting),
            "dlcases_queue_bound": ("Requests that may wait; more are refused.", self.policy.queue_bound or 0),
            "dlcases_batch_running": ("Requests in the batch that runs now.", self._batcher.running),
            "process_resident_memory_bytes": ("Resident memory of the service.", resident_bytes()),
        }

    def stop(self) -> None:
        """Admit nobody any more; whoever was admitted is answered."""
        self.stopping = True
        self._batcher.close()

    async def stopped(self, timeout_s: float) -> bool:
        """After :meth:`stop`: wait until the model's thread has ended; False if that takes longer."""
        ended = await asyncio.to_thread(self._batcher.join, timeout_s)
        for decoders in (self._decoders, self._large_decoder):
            decoders.shutdown(wait=False, cancel_futures=True)
        return ended

    def _unavailable(self) -> Refusal:
        if self.stopping:
            return Refusal(503, "the service is stopping: it takes no new images; try another one", 1)
        batches = math.ceil(self._batcher.waiting / self.policy.max_batch)
        seconds = max(1, math.ceil(batches * self._batch_s))
        return Refusal(503, f"the queue is full, {self.policy.queue_bound} images wait; come back later", seconds)

    def _decode(self, request: Request, body: bytes) -> None:
        """In a decoding thread: from the body to the queue, to the thread for large images, or to a refusal."""
        if request.state != "admitted":  # withdrawn while it waited for this thread
            return
        begun_s = self._clock()
        with self._refusing(request):
            found = images.examine(body, self.limits.pixels)
            if found.work <= LARGE_WORK:
                self._decode_pixels(request, found, begun_s)
                return
            if not self._large.acquire(blocking=False):
                raise Refusal(503, "too many large images are being decoded: come back later, or send a smaller one", 1)
            try:
                self._large_decoder.submit(self._decode_large, request, found, self._clock() - begun_s)
            except RuntimeError:  # the service has stopped
                self._large.release()

    def _decode_large(self, request: Request, found: Plain, examined_s: float) -> None:
        """In the thread for large images: one after the other, whoever sent them."""
        try:
            with self._refusing(request):
                if request.state == "admitted":
                    self._decode_pixels(request, found, self._clock() - examined_s)
        finally:
            self._large.release()

    def _decode_pixels(self, request: Request, found: Plain, begun_s: float) -> None:
        image = images.decode_plain(found)
        decoded_s = self._clock()
        pixels = images.to_input(image)
        request.decode_s, request.preprocess_s = decoded_s - begun_s, self._clock() - decoded_s
        self._batcher.ready(request, pixels)

    @contextlib.contextmanager
    def _refusing(self, request: Request) -> Iterator[None]:
        """What goes wrong with an image ends its own request, in the event loop."""
        try:
            yield
        except Refusal as refusal:
            self._in_loop(request.context.fail, refusal)
        except InputError as error:
            self._in_loop(request.context.fail, Refusal(400, str(error)))
        except Exception as error:  # memory, or a defect of the decoder: this request's failure, not the service's
            self._in_loop(request.context.fail, Refusal(500, f"the image cannot be read ({type(error).__name__})"))

    def _from_thread(self, finished: Sequence[tuple[Request, Outcome]]) -> None:
        self._in_loop(self._resolve, finished)

    def _in_loop(self, call: Callable[[Any], object], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, value)
        except RuntimeError:  # the loop has been closed: nobody waits any more
            return

    def _resolve(self, finished: Sequence[tuple[Request, Outcome]]) -> None:
        """In the event loop: the answers of one batch."""
        first = finished[0][1]
        self._batch_s = first.finished_s - first.started_s
        self.metrics.batch(first.batch_size)
        for request, outcome in finished:
            prediction: Prediction = request.context
            if outcome.logits is None:
                prediction.fail(Refusal(500, f"the model failed: {outcome.error}"))
            else:
                prediction.succeed(self._answer(prediction.received_s, request, outcome, outcome.logits))

    def _answer(self, received_s: float, request: Request, outcome: Outcome, logits: NDArray[np.float32]) -> Answer:
        parts = {
            "decode": request.decode_s,
            "preprocess": request.preprocess_s,
            "wait": outcome.started_s - received_s - request.decode_s - request.preprocess_s,
            "run": outcome.finished_s - outcome.started_s,
            "total": self._clock() - received_s,
        }
        return Answer(int(logits.argmax()), logits.tolist(), parts, outcome.batch_size)
