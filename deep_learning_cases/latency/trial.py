"""What one fresh process does for the latency case: start cold, answer once, and tell what memory that took.

Every process answers one batch size, since a peak of memory never goes down again.
"""

import contextlib
import importlib
import os
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypedDict

from deep_learning_cases.errors import DeepLearningCasesError, one_line
from deep_learning_cases.ground import machine
from deep_learning_cases.latency import engine
from deep_learning_cases.measuring import trial
from deep_learning_cases.models import engines

__all__ = ["Answer", "Job", "main", "run_job", "watch_memory"]

Clock = Callable[[], int]

RESERVED_BYTES = 64 * 1024 * 1024
"""OpenBLAS alone reserves 33 MB for a matrix product and fills little of it."""


class Job(TypedDict):
    """What a process is asked for: one cold start, or one trial of a batch size under a limit of memory."""

    model: str
    engine: str
    threads: int
    device: str
    batch: int
    seed: int
    limit_bytes: int | None
    started_ns: int
    """What the clock said before the process was started: the monotonic clock is one for the whole system."""


class Answer(TypedDict):
    """What it tells; ``before_bytes`` is the peak before the model was loaded."""

    pid: int
    stages: dict[str, float] | None
    """In milliseconds; None under a limit, which changes what is timed."""
    fits: bool
    reason: str | None
    before_bytes: int
    peak_rss_bytes: int
    source: str


def run_job(
    job: Job, open_engine: Callable[..., Any] = engines.open_engine, clock: Clock = time.monotonic_ns
) -> Answer:
    """Do ``job`` in this process."""
    started_ns = clock()
    for module in trial.RUNTIMES.get(job["engine"], ()):
        with contextlib.suppress(ImportError):  # the engine names what is missing, and how to install it
            importlib.import_module(module)
    imported_ns = clock()
    before_bytes, source = machine.peak_rss()

    def load() -> Any:
        return open_engine(job["model"], job["engine"], job["threads"], job["device"])

    stages, reason = None, None
    if job["limit_bytes"] is None:
        stages = {
            "start_ms": (started_ns - job["started_ns"]) / 1e6,
            "import_ms": (imported_ns - started_ns) / 1e6,
        } | _first_calls(load, job["batch"], job["seed"], clock)
    else:
        reason = _too_much(load, job["batch"], job["seed"], job["limit_bytes"])
    peak_bytes, source = machine.peak_rss()
    return {
        "pid": os.getpid(),
        "stages": stages,
        "fits": reason is None,
        "reason": reason,
        "before_bytes": before_bytes,
        "peak_rss_bytes": peak_bytes,
        "source": source,
    }


def _first_calls(load: Callable[[], Any], batch_size: int, seed: int, clock: Clock) -> dict[str, float]:
    first, second = engine.draw_inputs(batch_size, 2, seed, fresh=True)
    times_ns = [clock()]
    running = load()
    times_ns.append(clock())
    for batch in (first, second):
        running.run(batch)
        times_ns.append(clock())
    names = ("load_ms", "first_call_ms", "second_call_ms")
    return {name: (times_ns[place + 1] - times_ns[place]) / 1e6 for place, name in enumerate(names)}


def _too_much(load: Callable[[], Any], batch_size: int, seed: int, limit_bytes: int) -> str | None:
    """Why the batch does not fit, None if it does.

    One image goes through first, so that what the runtime takes for itself is there before the limit is set.
    """
    try:
        running = load()
        running.run(engine.draw_inputs(1, 1, seed, fresh=False)[0])
        try:
            watch_memory(limit_bytes)
        except MemoryError as error:
            return str(error)
        for batch in engine.draw_inputs(batch_size, 2, seed, fresh=True):
            running.run(batch)
    except DeepLearningCasesError:
        raise
    except Exception as error:
        if not _out_of_memory(error):
            raise
        return f"an allocation failed ({one_line(error)})"
    peak_bytes, _ = machine.peak_rss()
    return f"the peak of {peak_bytes / 1e6:.1f} MB is over the limit" if peak_bytes > limit_bytes else None


def watch_memory(limit_bytes: int) -> bool:
    """Keep this process from growing far beyond ``limit_bytes`` resident; False where the system cannot see to that.

    A container counts resident memory and kills, the system's own limit counts address space and lets an allocation
    fail.  Runtimes reserve more than they fill, so the address space may grow by twice what is left under the limit
    and :data:`RESERVED_BYTES`: whoever then stays within it is judged by the peak, and a batch far too large raises
    MemoryError at once instead of taking the machine's memory.

    Raises MemoryError where nothing is left.
    """
    status = _kilobyte_lines("/proc/self/status")
    if "VmSize" not in status or "VmRSS" not in status:
        return False
    left_bytes = limit_bytes - status["VmRSS"]
    if left_bytes <= 0:
        raise MemoryError(f"{status['VmRSS'] / 1e6:.1f} MB are in use after one image")
    import resource

    spare_bytes = max(0, _kilobyte_lines("/proc/meminfo").get("MemAvailable", 0) - left_bytes) // 2
    growth_bytes = left_bytes + min(left_bytes + RESERVED_BYTES, spare_bytes)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status["VmSize"] + growth_bytes, hard))
    return True


def _kilobyte_lines(path: str) -> dict[str, int]:
    """The lines ``Name: 123 kB`` of a file under /proc, in bytes; nothing where there is no such file."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            fields = [line.split() for line in stream]
    except OSError:
        return {}
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in fields if len(words) == 3 and words[2] == "kB"}


def _out_of_memory(error: Exception) -> bool:
    """NumPy raises MemoryError; ONNX Runtime and PyTorch only say it in their message."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "alloc" in text or "out of memory" in text


def main() -> NoReturn:
    """Read one job, answer with one line."""
    trial.main(run_job)
