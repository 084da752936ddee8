"""A real HTTP service around an engine: POST /predict with a PNG or JPEG, GET /healthz, GET /metrics.

    curl --data-binary @digit.png http://127.0.0.1:PORT/predict

An answer is ``{"class", "latency_ms": {"decode", "preprocess", "wait", "run", "total"}, "batch_size"}``, and with
``?logits=1`` also ``"logits"``; a refusal is ``{"error"}`` with a status from 400 on (docs/service.md has
the list).  Every request that is received gets one of them.
"""

import asyncio
import contextlib
import io
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.errors import DeepLearningCasesError, FileError, MeasurementError
from deep_learning_cases.models import data
from deep_learning_cases.serving import handlers, images
from deep_learning_cases.serving.connection import Lingering, Stream, Told, answer
from deep_learning_cases.serving.handlers import OpenRequests
from deep_learning_cases.serving.metrics import Metrics, resident_bytes
from deep_learning_cases.serving.predictor import Limits, Predictor

# After the handlers, which say in one line that Tornado is missing.
from tornado import httpserver, httputil, iostream, netutil, web  # isort: skip

__all__ = ["Limits", "Policy", "Service", "run_until_stopped", "running"]

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]

GRACE_S = 2.0
"""How long a stop waits for images that are still being sent, and for the last answers to be received."""

MAX_HEADER_BYTES = 16 * 1024
_TOO_MANY = answer(503, "too many connections are open: come back later", "Retry-After: 1")

ALL_SIZES = 64
"""Up to this largest batch every size is run once before the first request: each has its own first call."""


class _Server(httpserver.HTTPServer):
    """Tornado's server with a bound on open connections, on which every request gets an answer."""

    bound = Limits.connections
    metrics: Metrics
    lingering: Lingering

    def handle_stream(self, stream: iostream.IOStream, address: Any) -> None:
        if len(self._connections) < self.bound:
            sizes = {"max_buffer_size": stream.max_buffer_size, "read_chunk_size": stream.read_chunk_size}
            super().handle_stream(Stream(stream.socket, self.metrics.answered, self.lingering, **sizes), address)
            return
        self.metrics.answered(503)
        with contextlib.suppress(OSError):  # who has gone again needs no refusal
            stream.socket.send(_TOO_MANY)
            self.lingering.add(stream.socket.dup())
        stream.close()

    def start_request(self, server_conn: Any, request_conn: Any) -> httputil.HTTPMessageDelegate:
        return Told(super().start_request(server_conn, request_conn), server_conn.stream)


class Service:
    """The HTTP service around ``run(images (n, 1, 8, 8)) -> logits (n, 10)``; to be made in a running event loop."""

    def __init__(self, run: Run, policy: Policy, limits: Limits | None = None, warm_up: bool = True) -> None:
        self._run, self._warm_up = run, warm_up
        self.limits = limits or Limits()
        self.predictor = Predictor(run, policy, self.limits)
        self._open = OpenRequests(self.limits.bodies_bytes)
        self._server: Any = None
        self.url = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Warm up, listen, and return the URL; port 0 takes a free one.  FileError where nobody can listen there."""
        if self._warm_up:
            await asyncio.to_thread(_warm_up, self._run, self.predictor.policy.max_batch)
        try:
            sockets = netutil.bind_sockets(port, address=host, backlog=1024)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FileError(
                f"cannot listen on {host} port {port} ({reason}): expected a free port of this machine; choose another"
            ) from error
        common = {"predictor": self.predictor}
        application = web.Application(
            [
                ("/predict", handlers.Predict, common | {"open_requests": self._open}),
                ("/healthz", handlers.Health, common),
                ("/metrics", handlers.MetricsPage, common),
            ],
            default_handler_class=handlers.Missing,
            default_handler_args=common,
            log_function=_log_nothing,
        )
        self._server = _Server(
            application,
            max_header_size=MAX_HEADER_BYTES,
            # The handlers bound the body themselves: Tornado's own bound answers 400 and hangs up.
            max_body_size=1 << 62,
            max_buffer_size=1 << 20,
            idle_connection_timeout=self.limits.idle_timeout_s,
            body_timeout=self.limits.body_timeout_s + GRACE_S,
        )
        self._server.bound, self._server.metrics = self.limits.connections, self.predictor.metrics
        self._server.lingering = Lingering()
        self._server.add_sockets(sockets)
        name, number = sockets[0].getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        return self.url

    async def stop(self) -> bool:
        """Refuse new images, answer the admitted ones, close every connection; False if some got no answer."""
        self.predictor.stop()
        if self._server is not None:
            self._server.stop()
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        while self._open.requests:
            longest_s = GRACE_S + (self.limits.request_timeout_s if self._open.admitted else 0.0)
            if loop.time() - begun_s > longest_s:
                break
            await asyncio.sleep(0.01)
        answered = not self._open.admitted
        if self._server is not None:
            await self._server.close_all_connections()
            await self._server.lingering.close()
        return await self.predictor.stopped(GRACE_S) and answered


def run_until_stopped(
    run: Run,
    policy: Policy,
    limits: Limits | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    announce: Callable[[str], object] = print,
    stop: Callable[[], object] | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT, or until ``stop()`` returns (it is called in a thread of its own).

    ``announce`` gets the URL once requests are taken.  A second signal ends at once.  Returns False if an admitted
    request got no answer.
    """

    async def main() -> bool:
        service, ended = Service(run, policy, limits), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _once, ended, loop)
        announce(await service.start(host, port))
        if stop is not None:
            _call_then(stop, loop, ended)
        await ended.wait()
        return await service.stop()

    return asyncio.run(main())


@contextlib.contextmanager
def running(
    run: Run, policy: Policy, limits: Limits | None = None, *, warm_up: bool = True, host: str = "127.0.0.1"
) -> Iterator[Service]:
    """A service in a thread of this process, on a free port; stopped gracefully at the end.

    Client and service then share one interpreter lock: for times that mean something use ``service_process``.
    """
    started = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        found["loop"], found["ended"] = asyncio.get_running_loop(), asyncio.Event()
        service = Service(run, policy, limits, warm_up)
        await service.start(host)
        found["service"] = service
        started.set()
        await found["ended"].wait()
        await service.stop()

    def serve() -> None:
        try:
            asyncio.run(main())
        except DeepLearningCasesError as error:
            found["error"] = error
        finally:
            started.set()

    thread = threading.Thread(target=serve, name="service", daemon=True)
    thread.start()
    started.wait()
    if "service" not in found:
        raise found.get("error", MeasurementError("the service did not start: expected it to listen; see above"))
    try:
        yield found["service"]
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            found["loop"].call_soon_threadsafe(found["ended"].set)
        thread.join()


def _once(ended: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """The first signal asks for a graceful stop and makes room for the second one to do what it always does."""
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(one)
    ended.set()


def _call_then(stop: Callable[[], object], loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    def wait() -> None:
        stop()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, name="stop", daemon=True).start()


def _warm_up(run: Run, max_batch: int) -> None:
    """First calls of what every request needs: Pillow's decoders, psutil, and the model at each batch size."""
    resident_bytes()
    pillow = images.import_pillow()
    for kind in ("PNG", "JPEG"):
        buffer = io.BytesIO()
        pillow.new("RGB", (8, 8)).save(buffer, kind)
        images.to_input(images.decode(buffer.getvalue()))
    sizes = range(1, max_batch + 1) if max_batch <= ALL_SIZES else (*_powers(max_batch), max_batch)
    for size in sizes:
        run(np.zeros((size, *data.IMAGE_SHAPE), np.float32))


def _powers(below: int) -> Iterator[int]:
    size = 1
    while size < below:
        yield size
        size *= 2


def _log_nothing(_handler: object) -> None:
    """The metrics count the answers; a line for each would cost more than the answer."""


logging.getLogger("tornado.general").addHandler(logging.NullHandler())
