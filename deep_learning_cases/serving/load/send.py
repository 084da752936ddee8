"""A load on the service, and what became of every request.

Open loop: each request has an intended start, drawn beforehand, and is sent then, whatever happened to those before.
Its latency counts from the *intended* start, so that a stall of the service, or of the generator, shows in every
request that it delayed.  Closed loop: so many clients, each sends its next request when its last one was answered.  A
slow service then gets fewer requests just when it is slow, and the waiting that users would have had is in no number
("coordinated omission"; G. Tene, "How NOT to measure latency", 2013).
"""

import asyncio
import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deep_learning_cases import lazily
from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import positive, whole
from deep_learning_cases.serving import images
from deep_learning_cases.serving.load.answer import Reply
from deep_learning_cases.serving.load.client import Client, Target, event_loop, target
from deep_learning_cases.serving.load.starts import MAX_REQUESTS, MAX_SECONDS
from deep_learning_cases.serving.predictor import PARTS

__all__ = ["INTERRUPTED", "Fate", "LoadInterrupted", "make_bodies", "send"]

MAX_IN_FLIGHT = 500
"""While so many requests are unanswered the next one waits for one of them to end, and counts as late."""

INTERRUPTED = "interrupted"
"""The status of a request that waited for its answer when Ctrl-C ended the load."""

MAX_CONCURRENCY = 500
DISTINCT = 16
"""Different images that are sent in turn."""

LEAD_S = 0.05
PROGRESS_S = 0.5


@dataclass
class Fate:
    """What became of one request: seconds since the load began; ``status`` is HTTP's, or the word of a failure."""

    intended_s: float | None
    sent_s: float
    done_s: float
    status: str
    batch_size: int | None = None
    server_ms: dict[str, float] = field(default_factory=dict)


class LoadInterrupted(KeyboardInterrupt):
    """Ctrl-C while a load was being sent; ``fates`` holds what became of the requests that were sent until then."""

    def __init__(self, fates: list[Fate]) -> None:
        super().__init__()
        self.fates = fates


def make_bodies(width: int = 64, image_format: str = "png", seed: int = 0, count: int = DISTINCT) -> list[bytes]:
    """Encoded images to send, see :func:`images.photo`."""
    seed, count = whole(seed, "seed", 0), whole(count, "count")
    return [images.photo(width, image_format, seed + number) for number in range(count)]


def send(
    url: str,
    bodies: Sequence[bytes],
    *,
    starts_s: Floats | None = None,
    concurrency: int | None = None,
    seconds: float = MAX_SECONDS,
    timeout_s: float = 10.0,
    allow_remote: bool = False,
    progress: Callable[[int], object] | None = None,
) -> list[Fate]:
    """Send the load and return what became of every request, in the order of their starts; every one has an end.

    With ``starts_s`` alone an open loop.  With ``concurrency`` alone a closed loop for ``seconds``, at most a million
    requests.  With both, the closed loop that many load generators are: requests have intended starts, and a client
    that is still waiting sends its next one late.  ``progress`` is called twice a second with the requests that ended.

    InputError for nonsense, for a target that is not this machine, and where nobody listens.  LoadInterrupted for
    Ctrl-C once requests were being sent.
    """
    where = target(url, allow_remote)
    requests = [where.request(body) for body in bodies]
    if not requests or (starts_s is None and concurrency is None):
        raise InputError("there is nothing to send: expected images, and a rate or a concurrency; give them")
    concurrency = None if concurrency is None else whole(concurrency, "concurrency", 1, MAX_CONCURRENCY)
    timeout_s = positive(timeout_s, "timeout (seconds)")
    seconds = positive(seconds, "seconds", most=MAX_SECONDS)
    runs: list[Run] = []
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection would make a request late
    try:
        with asyncio.Runner(loop_factory=event_loop) as runner:
            return runner.run(_send(where, requests, starts_s, concurrency, seconds, timeout_s, progress, runs))
    except KeyboardInterrupt:
        if not runs:
            raise
        raise LoadInterrupted(runs[0].fates()) from None
    finally:
        if enabled:
            gc.enable()


async def _send(
    where: Target,
    requests: Sequence[bytes],
    starts_s: Floats | None,
    concurrency: int | None,
    seconds: float,
    timeout_s: float,
    progress: Callable[[int], object] | None,
    runs: "list[Run]",
) -> list[Fate]:
    """Send the load; the run is put into ``runs``, so that it can be asked after an interrupt as well."""
    client = Client(where, timeout_s)
    loop = asyncio.get_running_loop()
    try:
        await client.connect(concurrency or 1)
        run = Run(client, requests, loop.time() + LEAD_S)
        runs.append(run)
        teller = None if progress is None else loop.create_task(run.tell(progress))
        if concurrency is None:
            assert starts_s is not None
            await run.open_loop(starts_s.tolist())
        else:
            await run.closed_loop(concurrency, None if starts_s is None else starts_s.tolist(), seconds)
        if teller is not None:
            teller.cancel()
        return run.fates()
    finally:
        client.close()


class Run:
    """One load being sent; the clock is the event loop's, monotonic."""

    def __init__(self, client: Client, requests: Sequence[bytes], begun_s: float) -> None:
        self._client, self._requests, self._begun_s = client, requests, begun_s
        self._clock = asyncio.get_running_loop().time
        self._ends: dict[int, tuple[float | None, float, float, Reply]] = {}

    async def open_loop(self, starts_s: Sequence[float]) -> None:
        """Start each request when it is due; wait only for what is due later, never for an answer."""
        room = asyncio.Semaphore(MAX_IN_FLIGHT)
        pending: set[asyncio.Task[None]] = set()

        def ended(task: asyncio.Task[None]) -> None:
            pending.discard(task)
            room.release()

        for number, start_s in enumerate(starts_s):
            await asyncio.sleep(max(0.0, self._begun_s + start_s - self._clock()))
            await room.acquire()
            task = asyncio.create_task(self._one(number, start_s))
            pending.add(task)
            task.add_done_callback(ended)
        if pending:
            await asyncio.wait(pending)

    async def closed_loop(self, clients: int, starts_s: Sequence[float] | None, seconds: float) -> None:
        """``clients`` tasks take the next request whenever their last one has ended."""
        due = iter(range(MAX_REQUESTS)) if starts_s is None else iter(range(len(starts_s)))

        async def work() -> None:
            await asyncio.sleep(self._begun_s - self._clock())
            for number in due:
                if self._clock() - self._begun_s >= seconds:
                    return
                start_s = None
                if starts_s is not None:
                    start_s = starts_s[number]
                    await asyncio.sleep(max(0.0, self._begun_s + start_s - self._clock()))
                await self._one(number, start_s)

        await asyncio.gather(*(work() for _ in range(clients)))

    async def tell(self, progress: Callable[[int], object]) -> None:
        """Call ``progress`` with the number of requests that have ended, until cancelled."""
        while True:
            await asyncio.sleep(PROGRESS_S)
            progress(len(self._ends))

    async def _one(self, number: int, start_s: float | None) -> None:
        sent_s = self._clock()
        reply = Reply(0, b"", INTERRUPTED)
        try:
            reply = await self._client.send(self._requests[number % len(self._requests)])
        finally:
            self._ends[number] = (start_s, sent_s - self._begun_s, self._clock() - self._begun_s, reply)

    def fates(self) -> list[Fate]:
        """Read the answers only now: parsing them while sending would make requests late."""
        return [_fate(*self._ends[number]) for number in sorted(self._ends)]


def _fate(start_s: float | None, sent_s: float, done_s: float, reply: Reply) -> Fate:
    fate = Fate(start_s, sent_s, done_s, str(reply.status) if reply.status else reply.failure)
    if reply.status == 200:
        try:
            answer = json.loads(reply.body)
            fate.server_ms = {part: float(answer["latency_ms"][part]) for part in PARTS}
            fate.batch_size = int(answer["batch_size"])
        except (ValueError, KeyError, TypeError):
            fate.status = "not an answer"
    return fate


if not TYPE_CHECKING:
    # Notebooks ask here for the latency of the whole service, which is the latency lab's.
    __getattr__ = lazily({name: f"latency.over_http:{name}" for name in ("SERVICE", "measure_service")})
