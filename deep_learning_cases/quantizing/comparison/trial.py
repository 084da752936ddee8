"""What one process of a comparison does: load one version, call it, warm up, time it on fresh inputs, watch memory."""

import contextlib
import gc
import importlib
import os
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypedDict

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, MeasurementError, MissingDependencyError
from deep_learning_cases.ground import machine
from deep_learning_cases.measuring import timing, trial
from deep_learning_cases.quantizing import runners, torch_eager
from deep_learning_cases.quantizing.variants import VARIANTS

__all__ = ["COMMAND_CODE", "TRACED_CALLS", "Answer", "Job", "main", "measure_series", "run_job"]

COMMAND_CODE = "from deep_learning_cases.quantizing.comparison.trial import main; main()"

TRACED_CALLS = 20
"""Passes under tracemalloc, after all timings: tracing slows every allocation of Python."""


def main() -> NoReturn:
    """One job on standard input, one line of JSON on standard output; see :func:`run_job`."""
    trial.main(run_job)


class Job(TypedDict):
    """What a process is asked for."""

    config: str
    folder: str
    subject: str
    input_shape: list[int]
    backend: str | None
    threads: int
    warmups: int
    iterations: int
    batch_sizes: list[int]
    seed: int
    pin: bool


class Answer(TypedDict):
    """What it tells: timings by batch size in microseconds per batch, the cold start with the first pass, memory."""

    pid: int
    pinned_cpus: list[int] | None
    backend_ran: str | None
    cold_start_us: float
    samples_us: dict[str, list[float]]
    warmups_us: dict[str, list[float]]
    rss_before_bytes: int
    rss_max_bytes: int
    tracemalloc_peak_bytes: int
    peak_rss_bytes: int
    peak_rss_source: str


def run_job(job: Job, clock: timing.Clock = time.perf_counter_ns) -> Answer:
    """Measure one version in this process."""
    pinned = _pin(job["threads"]) if job["pin"] else None
    _import_runtime(job["config"])
    rng = np.random.default_rng([job["seed"], *map(ord, job["config"])])
    shape = tuple(job["input_shape"])
    resident = _resident()
    with contextlib.ExitStack() as stack:
        before: list[int] = []
        opened: list[runners.Runner] = []

        def load() -> Callable[[Any], object]:
            runner = stack.enter_context(
                runners.opened(
                    job["config"], Path(job["folder"]), job["subject"], shape, job["backend"], job["threads"]
                )
            )
            opened.append(runner)
            before.append(resident())
            return lambda x: _finished(runner, runner.prepare(x))

        _, cold_start_us = timing.cold_start(load, _draw(rng, job["batch_sizes"][0], shape), clock)
        (runner,) = opened
        loaded = resident()
        series = {
            str(size): measure_series(
                runner, partial(_draw, rng, size, shape), job["warmups"], job["iterations"], resident, clock
            )
            for size in job["batch_sizes"]
        }
        traced = _traced(runner, [_draw(rng, max(job["batch_sizes"]), shape) for _ in range(TRACED_CALLS)])
        engine = runner.engine()
    high_water, source = machine.peak_rss()
    return {
        "pid": os.getpid(),
        "pinned_cpus": pinned,
        "backend_ran": engine,
        "cold_start_us": cold_start_us,
        "samples_us": {size: samples for size, (samples, _, _) in series.items()},
        "warmups_us": {size: warmups for size, (_, warmups, _) in series.items()},
        "rss_before_bytes": before[0],
        "rss_max_bytes": max(before[0], loaded, *(largest for _, _, largest in series.values())),
        "tracemalloc_peak_bytes": traced,
        "peak_rss_bytes": high_water,
        "peak_rss_source": source,
    }


def measure_series(
    runner: runners.Runner,
    draw: Callable[[], NDArray[np.float32]],
    warmups: int,
    iterations: int,
    resident: Callable[[], int],
    clock: timing.Clock = time.perf_counter_ns,
) -> tuple[list[float], list[float], int]:
    """Microseconds of the measured passes, of the warm-ups, and the largest resident size after any of them.

    Every pass gets an input drawn just before, outside the timer, as is the reading of memory after it.  The garbage
    collector rests meanwhile.  MeasurementError if the clock runs backwards.
    """
    run, synchronize = runner.run, runner.synchronize or _nothing
    took_us: list[float] = []
    largest = 0
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(warmups + iterations):
            x = runner.prepare(draw())
            synchronize()
            start = clock()
            run(x)
            synchronize()
            stop = clock()
            if stop < start:
                raise MeasurementError(f"the clock ran back by {start - stop} ns: expected one that never does")
            took_us.append((stop - start) / 1000)
            largest = max(largest, resident())
    finally:
        if was_enabled:
            gc.enable()
    return took_us[warmups:], took_us[:warmups], largest


def _finished(runner: runners.Runner, x: Any) -> Any:
    result = runner.run(x)
    if runner.synchronize is not None:
        runner.synchronize()
    return result


def _draw(rng: np.random.Generator, size: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return rng.random((size, *shape), dtype=np.float32)


def _traced(runner: runners.Runner, inputs: list[NDArray[np.float32]]) -> int:
    """Peak bytes that Python and NumPy allocated during these passes, inputs not counted."""
    prepared = [runner.prepare(x) for x in inputs]
    tracemalloc.start()
    try:
        for x in prepared:
            runner.run(x)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident() -> Callable[[], int]:
    try:
        import psutil
    except ImportError as error:
        raise MissingDependencyError(
            "psutil is not installed: the memory readings need it; pip install psutil"
        ) from error
    process = psutil.Process()
    return lambda: int(process.memory_info().rss)


def _pin(threads: int) -> list[int]:
    if not hasattr(os, "sched_setaffinity"):
        raise InputError("--pin: this system cannot bind a process to processors; measure without it")
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < threads:
        raise InputError(f"--pin with {threads} threads: only {len(usable)} processors are usable; use fewer threads")
    os.sched_setaffinity(0, usable[:threads])
    return usable[:threads]


def _import_runtime(config: str) -> None:
    """Imports are no part of the cold start: it belongs to the model."""
    if VARIANTS[config].framework == "onnxruntime":
        with contextlib.suppress(ImportError):
            import onnxruntime  # noqa: F401
        return
    with contextlib.suppress(ImportError):
        import torch

        if VARIANTS[config].device == "cuda":
            torch.cuda.init()
        if VARIANTS[config].technique in torch_eager.TECHNIQUES:
            importlib.import_module("torch.ao.quantization")


def _nothing() -> None:
    """There is no accelerator to wait for."""
