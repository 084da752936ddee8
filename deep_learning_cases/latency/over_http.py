"""The latency case with a whole service inside the timer: real HTTP, batch by batch, until the last answer."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Unpack, cast

import numpy as np

from deep_learning_cases.errors import MeasurementError
from deep_learning_cases.ground.arguments import distinct_sizes, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.latency import record
from deep_learning_cases.latency.engine import Network, Settings
from deep_learning_cases.serving import process, server
from deep_learning_cases.serving.load.client import Client, event_loop, target
from deep_learning_cases.serving.load.send import Fate, Run, make_bodies
from deep_learning_cases.serving.load.starts import MAX_SECONDS
from deep_learning_cases.serving.predictor import PARTS

__all__ = ["SERVICE", "measure_service"]

SERVICE = (
    "Service: from just before the first request of the batch is written to a connection to the last answer read."
    " Included: HTTP on the loopback interface between two processes, one image per request, decoding, resizing,"
    " waiting until the batch is full, and the forward pass. Excluded: starting the service, opening connections, and"
    " a real network."
)


def measure_service(
    batches: Sequence[int],
    width: int = 64,
    image_format: str = "png",
    *,
    warmups: int = 8,
    trials: int = 60,
    progress: Progress | None = None,
    **settings: Unpack[Settings],
) -> dict[str, Any]:
    """Time a real service over HTTP, batch size by batch size: so many requests at once, until the last answer.

    For each batch size a service is started whose largest batch it is, with a wait so long that a batch always fills.
    An engine by name runs in a process of its own; an engine object in a thread of this one, which costs it time.

    Returns ``boundary`` in words, ``image``, ``service`` (where it ran, and the medians of the parts that the service
    itself measured, in milliseconds) and ``results`` as in the record of :func:`cases.latency_case`.  MeasurementError
    where a request got no answer, or where a batch was not what was sent.
    """
    batches, warmups, trials = distinct_sizes(batches), whole(warmups, "warmups", 0), whole(trials, "trials")
    network = Network(**settings)
    bodies = make_bodies(width, image_format, network.seed, 8)
    results: dict[int, dict[str, Any]] = {}
    parts: dict[str, dict[str, float]] = {}
    with progress_steps(progress, len(batches)) as step:
        for done, size in enumerate(batches):
            step(done, f"service, batch {size}")
            policy = server.Policy(size, 5.0, size)
            if isinstance(network.engine, str):
                with network.file() as (path, _origin):
                    what = (str(path.resolve()), network.engine, network.threads, network.device)
                    with process.serving(process.Settings(*what, size, policy.max_wait_s, size)) as served:
                        rounds = _rounds(served.url, bodies, size, warmups + trials)
            else:
                with (
                    network.opened() as measured,
                    server.running(cast(server.Run, measured.run), policy) as started,
                ):
                    rounds = _rounds(started.url, bodies, size, warmups + trials)
            times_ms = [1e3 * (max(f.done_s for f in fates) - min(f.sent_s for f in fates)) for fates in rounds]
            results[size] = record.row(times_ms[warmups:], times_ms[:warmups], size)
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
            if isinstance(network.engine, str)
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
                run = Run(
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
