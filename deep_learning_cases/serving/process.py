"""The service in a process of its own, so that it shares no interpreter lock with whoever measures it.

A parent that starts one holds its standard input: when that closes, even because the parent was killed, it stops.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.errors import InputError, MeasurementError
from deep_learning_cases.ground.arguments import positive, settle, whole
from deep_learning_cases.ground.threads import blas_threads
from deep_learning_cases.measuring import fresh_process
from deep_learning_cases.models import engines
from deep_learning_cases.serving import server
from deep_learning_cases.serving.predictor import Limits

__all__ = ["Served", "Settings", "child", "serve", "serving"]

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Settings:
    """What is served and how; JSON values only."""

    model: str
    """Path of a file that the engine reads."""
    engine: str = "onnxruntime"
    threads: int = 1
    device: str = "cpu"
    max_batch: int = 32
    max_wait_s: float = 0.002
    queue_bound: int = 256
    request_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        policy = self.policy
        threads, bound = whole(self.threads, "threads", 1, 1024), whole(self.queue_bound, "queue bound")
        timeout_s = positive(self.request_timeout_s, "request_timeout_s")
        settle(self, threads=threads, max_batch=policy.max_batch, max_wait_s=policy.max_wait_s)
        settle(self, queue_bound=bound, request_timeout_s=timeout_s)

    @property
    def policy(self) -> Policy:
        """The policy of the queue."""
        return Policy(self.max_batch, self.max_wait_s, self.queue_bound)

    @property
    def limits(self) -> Limits:
        """Connections enough to fill the queue and two batches, and some for the other pages."""
        connections = max(Limits.connections, self.queue_bound + 2 * self.max_batch + 64)
        return Limits(request_timeout_s=self.request_timeout_s, connections=connections)


@dataclass(frozen=True)
class Served:
    """A service that runs: where, and as which process."""

    url: str
    pid: int


def serve(
    settings: Settings,
    host: str = "127.0.0.1",
    port: int = 0,
    announce: Callable[[str], object] = print,
    stop: Callable[[], object] | None = None,
) -> bool:
    """Load the model and serve it here until a signal or ``stop``; see :func:`service.run_until_stopped`."""
    policy, limits = settings.policy, settings.limits
    engine = engines.open_engine(settings.model, settings.engine, settings.threads, settings.device)
    with blas_threads(settings.threads):
        return server.run_until_stopped(engine.run, policy, limits, host=host, port=port, announce=announce, stop=stop)


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """The service in a fresh process on a free port of the loopback interface; stopped gracefully at the end."""
    command = [sys.executable, "-m", "deep_learning_cases.serving.process", json.dumps(asdict(settings))]
    with child(command, settings.threads) as served:
        yield served


@contextlib.contextmanager
def child(command: Sequence[str], threads: int = 1) -> Iterator[Served]:
    """Run a command that prints its URL as first line and ends when its standard input closes.

    MeasurementError where no URL comes within a minute, with the last line the command said.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=fresh_process.child_environment(threads),
    )
    try:
        yield Served(_url(process), process.pid)
    finally:
        _end(process)


def _url(process: "subprocess.Popen[str]") -> str:
    said: list[str] = []
    assert process.stdout is not None
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: said.append(process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    reader.join(START_TIMEOUT_S)
    url = said[0].strip() if said else ""
    if not url.startswith("http://"):
        process.kill()
        last = (process.stderr.read().strip().splitlines() or [f"nothing within {START_TIMEOUT_S:g} s"])[-1]
        raise MeasurementError(f"the service did not start ({last[:200]}): expected its URL; run dlcases serve to see")
    # What it may say later must not fill a pipe that nobody empties.
    for stream in (process.stdout, process.stderr):
        threading.Thread(target=_discard, args=(stream,), daemon=True).start()
    return url


def _discard(stream: Any) -> None:
    with contextlib.suppress(ValueError, OSError):
        for _line in stream:
            pass


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(argv: Sequence[str]) -> int:
    """``python -m deep_learning_cases.serving.process JSON``: serve until standard input closes."""
    try:
        settings = Settings(**json.loads(argv[0]))
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(f"the settings are not usable ({error}): expected one JSON object; see Settings") from error
    answered = serve(settings, announce=lambda url: print(url, flush=True), stop=sys.stdin.read)
    return 0 if answered else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
