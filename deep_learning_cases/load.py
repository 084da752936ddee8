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
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from deep_learning_cases import images, latency_engine, latency_record, service, service_process
from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.errors import InputError, MeasurementError
from deep_learning_cases.ground.arguments import positive, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.load_client import Client, Reply, Target, event_loop, target
from deep_learning_cases.load_starts import MAX_REQUESTS, MAX_SECONDS
from deep_learning_cases.predictor import PARTS

__all__ = ["INTERRUPTED", "SERVICE", "Fate", "LoadInterrupted", "make_bodies", "measure_service", "send"]

MAX_IN_FLIGHT = 500
"""While so many requests are unanswered the next one waits for one of them to end, and counts as late."""

INTERRUPTED = "interrupted"
"""The status of a request that waited for its answer when Ctrl-C ended the load."""

MAX_CONCURRENCY = 500
DISTINCT = 16
"""Different images that are sent in turn."""

LEAD_S = 0.05
PROGRESS_S = 0.5

SERVICE = (
    "Service: from just before the first request of the batch is written to a connection to the last answer read."
    " Included: HTTP on the loopback interface between two processes, one image per request, decoding, resizing,"
    " waiting until the batch is full, and the forward pass. Excluded: starting the service, opening connections, and"
    " a real network."
)


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
    if concurrency is not None and whole(concurrency, "concurrency") > MAX_CONCURRENCY:
        raise InputError(f"concurrency is {concurrency}: expected at most {MAX_CONCURRENCY}; change it")
    positive(timeout_s, "timeout (seconds)")
    if not 0 < positive(seconds, "seconds") <= MAX_SECONDS:
        raise InputError(f"seconds is {seconds:g}: expected at most {MAX_SECONDS:g}; make several runs")
    runs: list[_Run] = []
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
    runs: "list[_Run]",
) -> list[Fate]:
    """Send the load; the run is put into ``runs``, so that it can be asked after an interrupt as well."""
    client = Client(where, timeout_s)
    loop = asyncio.get_running_loop()
    try:
        await client.connect(concurrency or 1)
        run = _Run(client, requests, loop.time() + LEAD_S)
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


class _Run:
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


def measure_service(
    batches: Sequence[int],
    width: int = 64,
    image_format: str = "png",
    *,
    warmups: int = 8,
    trials: int = 60,
    engine: Any = "numpy",
    model: str | Path | None = None,
    seed: int = 1729,
    threads: int = 1,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Time a real service over HTTP, batch size by batch size: so many requests at once, until the last answer.

    For each batch size a service is started whose largest batch it is, with a wait so long that a batch always fills.
    An engine by name runs in a process of its own; an engine object in a thread of this one, which costs it time.

    Returns ``boundary`` in words, ``image``, ``service`` (where it ran, and the medians of the parts that the service
    itself measured, in milliseconds) and ``results`` as in the record of :func:`cases.latency_case`.  MeasurementError
    where a request got no answer, or where a batch was not what was sent.
    """
    bodies = make_bodies(width, image_format, seed, 8)
    results: dict[int, dict[str, Any]] = {}
    parts: dict[str, dict[str, float]] = {}
    with progress_steps(progress, len(batches)) as step:
        for done, size in enumerate(batches):
            step(done, f"service, batch {size}")
            policy = service.Policy(size, 5.0, size)
            if isinstance(engine, str):
                with latency_engine.model_file(engine, model, seed) as (path, _origin):
                    settings = service_process.Settings(
                        str(path.resolve()), engine, threads, device, size, policy.max_wait_s, size
                    )
                    with service_process.serving(settings) as served:
                        rounds = _rounds(served.url, bodies, size, warmups + trials)
            else:
                with (
                    latency_engine.opened(engine, model, seed, threads, device) as measured,
                    service.running(cast(service.Run, measured.run), policy) as started,
                ):
                    rounds = _rounds(started.url, bodies, size, warmups + trials)
            times_ms = [1e3 * (max(f.done_s for f in fates) - min(f.sent_s for f in fates)) for fates in rounds]
            results[size] = latency_record.row(times_ms[warmups:], times_ms[:warmups], size)
            kept = [fate for fates in rounds[warmups:] for fate in fates]
            parts[str(size)] = {part: float(np.median([fate.server_ms[part] for fate in kept])) for part in PARTS}
        step(len(batches), "")
    return {
        "boundary": SERVICE,
        "image": {
            "format": image_format,
            "width_px": width,
            "height_px": width,
            "mode": "RGB",
            "mean_bytes": round(sum(map(len, bodies)) / len(bodies)),
            "distinct_images": len(bodies),
        },
        "service": {
            "server": "Tornado, one process"
            if isinstance(engine, str)
            else "Tornado, a thread of the measuring process",
            "client": "asyncio, this process",
            "median_parts_ms": parts,
        },
        "results": results,
    }


def _rounds(url: str, bodies: Sequence[bytes], size: int, rounds: int) -> list[list[Fate]]:
    """``rounds`` times ``size`` requests at once, each time until all are answered."""
    where = target(url)
    requests = [where.request(body) for body in bodies]

    async def main() -> list[list[Fate]]:
        client = Client(where, 30.0)
        try:
            await client.connect(size)
            found = []
            for number in range(rounds):
                run = _Run(
                    client, requests[number % len(requests) :] + requests[: number % len(requests)], time.monotonic()
                )
                await run.closed_loop(size, [0.0] * size, MAX_SECONDS)
                found.append(run.fates())
            return found
        finally:
            client.close()

    with asyncio.Runner(loop_factory=event_loop) as runner:
        found = runner.run(main())
    for fate in (fate for fates in found for fate in fates):
        if fate.status != "200" or fate.batch_size != size:
            raise MeasurementError(
                f"a request of a batch of {size} ended with {fate.status} in a batch of {fate.batch_size}:"
                " expected an answer from a full batch; measure again on a quieter machine"
            )
    return found
