"""What the tests of the service share: engines that do as they are told, images, and a client that may misbehave."""

import contextlib
import http.client
import io
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image

from deep_learning_cases import service


class Scripted:
    """An engine that waits at a gate before it answers, and remembers the size of every batch.

    The class it predicts is ten times the first pixel, so that every request has an answer of its own.
    """

    def __init__(self, open_gate: bool = True) -> None:
        self.sizes: list[int] = []
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(1_000_000 if open_gate else 0)
        self.failure: Exception | None = None

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.sizes.append(len(images))
        self.entered.release()
        assert self.gate.acquire(timeout=20)
        if self.failure is not None:
            raise self.failure
        logits = np.zeros((len(images), 10), np.float32)
        logits[np.arange(len(images)), np.rint(images[:, 0, 0, 0] * 10).astype(int) % 10] = 1
        return logits


def png(label: int = 0, side: int = 8) -> bytes:
    """A grey image whose predicted class is ``label``."""
    buffer = io.BytesIO()
    Image.new("L", (side, side), round(25.5 * label)).save(buffer, "PNG")
    return buffer.getvalue()


def bomb_png(side: int) -> bytes:
    """A well-formed PNG of a few bytes that claims ``side`` x ``side`` pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@contextlib.contextmanager
def running(
    engine: Any, max_batch: int = 4, max_wait_s: float = 0.0, queue_bound: int = 16, **limits: Any
) -> Iterator[Any]:
    policy = service.Policy(max_batch, max_wait_s, queue_bound)
    with service.running(engine, policy, service.Limits(**limits), warm_up=False) as started:
        yield started


def address(started: Any) -> tuple[str, int]:
    host, _, port = started.url.removeprefix("http://").rpartition(":")
    return host, int(port)


def ask(
    started: Any, method: str = "POST", path: str = "/predict", body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any, Any]:
    """(status, headers, JSON or text) of one request on a connection of its own."""
    connection = http.client.HTTPConnection(*address(started), timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    return response.status, response.headers, json.loads(text) if is_json else text


class Asking:
    """A request under way in a thread; ``result()`` waits for its answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._answer: tuple[int, Any, Any] | None = None
        self._thread = threading.Thread(target=self._run, args=arguments, kwargs=options, daemon=True)
        self._thread.start()

    def _run(self, *arguments: Any, **options: Any) -> None:
        self._answer = ask(*arguments, **options)

    def result(self) -> tuple[int, Any, Any]:
        self._thread.join(20)
        assert self._answer is not None, "no answer within 20 s"
        return self._answer


@contextlib.contextmanager
def raw(started: Any) -> Iterator[socket.socket]:
    """A bare connection, for what no HTTP library sends."""
    with socket.create_connection(address(started), timeout=20) as connection:
        yield connection


def received(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    chunks = []
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks)


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something holds; fails after a time that no working service needs."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.002)


def gauge(started: Any, name: str) -> float:
    _, _, text = ask(started, "GET", "/metrics")
    (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
    return float(line.split()[1])
