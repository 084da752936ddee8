"""What one measuring process does: load a model, call it for the first time, warm up, time, report.

``bench`` starts it as a fresh process with one job on standard input and takes one line of JSON from standard output.
Everything imported here is part of the peak memory that is measured: NumPy, the runtime and little else.
"""

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypedDict

from deep_learning_cases.errors import DeepLearningCasesError, EvidenceError, InputError
from deep_learning_cases.ground import machine
from deep_learning_cases.measuring import timing
from deep_learning_cases.models import data, engines

__all__ = ["Answer", "Job", "main", "run_job"]

RUNTIMES = {
    "onnxruntime": ("onnxruntime",),
    "numpy": ("deep_learning_cases.models.artefacts", "deep_learning_cases.models.numpy_network"),
    "pytorch": ("deep_learning_cases.models.artefacts", "deep_learning_cases.models.network", "torch"),
}
"""What an engine imports; done before the clock starts, so that the cold start belongs to the model."""

OVERHEAD_CALLS = 1000


class Job(TypedDict):
    """What a process is asked for; ``model`` and ``data`` are paths."""

    model: str
    data: str
    engine: str
    threads: int
    warmups: int
    repetitions: int
    batch_sizes: list[int]


class Answer(TypedDict):
    """What it tells; the timings by batch size, in microseconds per batch."""

    pid: int
    cold_start_us: float
    peak_rss_bytes: int
    peak_rss_source: str
    samples_us: dict[str, list[float]]
    warmups_us: dict[str, list[float]]
    loop_overhead_us: float


def run_job(
    job: Job,
    open_engine: Callable[..., Any] = engines.open_engine,
    clock: timing.Clock = time.perf_counter_ns,
) -> Answer:
    """Measure one model in this process.

    ``job`` holds ``model`` and ``data`` (paths), ``engine``, ``threads``, ``warmups``, ``repetitions`` and
    ``batch_sizes``.  The answer holds ``pid``, ``cold_start_us``, ``samples_us`` and ``warmups_us`` {batch size:
    microseconds per batch in the order taken}, ``loop_overhead_us``, ``peak_rss_bytes`` and ``peak_rss_source``.
    """
    images = data.normalise(data.read_data(job["data"])["test"].images)
    batches = {size: cut_batches(images, size) for size in job["batch_sizes"]}
    for module in RUNTIMES.get(job["engine"], ()):
        with contextlib.suppress(ImportError):  # the engine names what is missing, and how to install it
            importlib.import_module(module)

    def load() -> Callable[[Any], object]:
        run: Callable[[Any], object] = open_engine(job["model"], job["engine"], job["threads"]).run
        return run

    run, cold_start_us = timing.cold_start(load, batches[job["batch_sizes"][0]][0], clock)
    series = {
        str(size): timing.time_calls(run, inputs, job["warmups"], job["repetitions"], clock)
        for size, inputs in batches.items()
    }
    overhead_us = timing.loop_overhead_us(clock, OVERHEAD_CALLS)
    peak_bytes, source = machine.peak_rss()
    return {
        "pid": os.getpid(),
        "cold_start_us": cold_start_us,
        "peak_rss_bytes": peak_bytes,
        "peak_rss_source": source,
        "samples_us": {size: timings.samples_us for size, timings in series.items()},
        "warmups_us": {size: timings.warmups_us for size, timings in series.items()},
        "loop_overhead_us": overhead_us,
    }


def cut_batches(images: Any, batch_size: int) -> list[Any]:
    """Images (n, 1, 8, 8) in order as whole batches (batch_size, 1, 8, 8), as views; EvidenceError if too few."""
    batches = [images[start : start + batch_size] for start in range(0, len(images) - batch_size + 1, batch_size)]
    if not batches:
        raise EvidenceError(
            f"there are {len(images)} test images: expected at least {batch_size}; measure smaller batches"
        )
    return batches


def main(work: Callable[[Any], Mapping[str, Any]] = run_job) -> NoReturn:
    """Read one job, do ``work``, answer with one line, leave with 0; with 1 after a failure that has a name."""
    # Standard output carries the answer alone: whatever a library prints goes to standard error instead.
    answer = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    code = 0
    try:
        result: Mapping[str, Any] = work(json.loads(sys.stdin.readline()))
    except DeepLearningCasesError as error:
        result, code = {"error": type(error).__name__, "message": str(error)}, 1
    except (KeyError, TypeError, ValueError) as error:
        failure = InputError(f"the measuring process cannot use its job ({error}): start it through bench")
        result, code = {"error": type(failure).__name__, "message": str(failure)}, 1
    answer.write(json.dumps(result) + "\n")
    answer.close()
    sys.exit(code)
