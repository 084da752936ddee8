"""``latency_case()``: how long does a small network take on this processor?  One call, one record to keep.

    from deep_learning_cases import latency_case
    result = latency_case(artifact="latency.json")
    result["results"][32]["p95_ms"]

Everything is measured in the calling process, so the numbers are about the processor and the load it has right now.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError, InputError, MeasurementError
from deep_learning_cases.ground import files, machine, out_folder, schemas
from deep_learning_cases.ground.arguments import distinct_sizes, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.ground.threads import blas_threads
from deep_learning_cases.latency import engine as latency_engine
from deep_learning_cases.latency import record as latency_record
from deep_learning_cases.measuring import timing
from deep_learning_cases.models import data

__all__ = [
    "BOUNDARY",
    "MAX_BATCH",
    "LatencyCase",
    "check_batches",
    "check_protocol",
    "latency_case",
    "load_latency_case",
    "save",
]

MAX_BATCH = 1 << 20
MAX_CALLS = 100_000
MAX_FILE_BYTES = 64 * 1024 * 1024

BOUNDARY = (
    "Model only: from just before engine.run(batch) to its return with the logits in main memory. Included: the forward"
    " pass and the call into the engine. Excluded: importing, loading the model, reading, decoding, resizing and"
    " normalising images, choosing a class, and any queue or network; so this is not a service's response time."
)


class LatencyCase(dict[str, Any]):
    """A latency record; in a notebook it shows itself as a table and a figure.

    A plain dictionary otherwise: ``result["results"]`` maps the batch size (an int) to its row.
    """

    def _repr_html_(self) -> str:
        from deep_learning_cases.latency import view

        return view.html(self)


def latency_case(
    batches: Iterable[int] = (1, 32),
    *,
    warmups: int = 8,
    trials: int = 60,
    engine: Any = "numpy",
    model: str | Path | None = None,
    seed: int = 1729,
    threads: int = 1,
    inputs: str = "fresh",
    device: str = "cpu",
    artifact: str | Path | None = None,
    clock: timing.Clock = time.perf_counter_ns,
    progress: Progress | None = None,
) -> LatencyCase:
    """Time the forward pass of a small convolutional network, batch size by batch size.

    Args:
        batches: images per call, each at most once.
        warmups: calls before the trials of each batch size; kept apart as ``warmups_ms``.
        trials: timings of each batch size; all are kept.
        engine: "numpy", "onnxruntime" or "pytorch", or an object with ``run(batch)`` (see ``latency_engine.opened``).
        model: an evidence folder or a model file; seeded, untrained weights if None (as slow as trained ones).
        seed: of those weights and of the inputs.
        threads: of inference.
        inputs: "fresh" gives every call another batch, "fixed" always the same; drawn outside the timer.
        device: "cpu", or "cuda" with PyTorch; the copies to the device and back then count.
        artifact: where the record is saved as JSON, whole or not at all.
        clock: nanoseconds as an int.
        progress: called as ``progress(done, total, name)``; a bar on a terminal if None.

    Returns:
        ``results`` {batch size: {``warmups``, ``trials``, ``median_ms`` and its interval, ``p95_ms``, ``p99_ms`` or
        None with the reason in ``p99_note``, ``mean_ms``, ``min_ms``, ``max_ms``, ``first_call_ms``, ``ms_per_image``,
        ``images_per_second``, ``samples_ms``, ``warmups_ms``}}, all times per batch; beside it ``hardware``,
        ``software``, ``threads``, ``input_shape``, ``precision``, ``boundary``, ``execution``, ``created_at`` and
        ``schema``.  Definitions: :mod:`deep_learning_cases.latency.record`.

    Raises:
        InputError: an argument that makes no sense.
        FileError, ModelError, MissingDependencyError: no such model, not a model for the engine, no such engine here.
        MeasurementError: a batch that does not fit in memory, or a clock that runs back or is too coarse.
    """
    sizes = check_batches(batches)
    warmups, trials, seed, threads = check_protocol(warmups, trials, seed, threads, inputs)
    _check_place(artifact)
    rows: dict[int, dict[str, Any]] = {}
    distinct: dict[int, int] = {}
    with (
        blas_threads(threads) as blas,
        latency_engine.Network(engine, model, seed, threads, device).opened() as measured,
        progress_steps(progress, len(sizes)) as step,
    ):
        for done, size in enumerate(sizes):
            step(done, f"batch {size}")
            try:
                prepared = latency_engine.draw_inputs(size, warmups + trials, seed, inputs == "fresh")
                timings = timing.time_calls(measured.run, prepared, warmups, trials, clock, measured.synchronize)
            except MemoryError as error:
                raise MeasurementError(
                    f"batch {size} does not fit in memory: expected one that does; measure smaller batches"
                ) from error
            distinct[size] = len(prepared)
            rows[size] = latency_record.row(_ms(timings.samples_us), _ms(timings.warmups_us), size)
        step(len(sizes), "")
    result = LatencyCase(
        {
            "schema": latency_record.SCHEMA,
            "created_at": machine.utc_now(),
            "boundary": BOUNDARY,
            "unit": "milliseconds per batch",
            "engine": measured.engine,
            "model": measured.model,
            **_machine(blas),
            "threads": threads,
            "input_shape": ["batch", *data.IMAGE_SHAPE],
            "precision": measured.precision,
            "execution": measured.execution,
            "protocol": {
                "warmups": warmups,
                "trials": trials,
                "batches": sizes,
                "seed": seed,
                "inputs": inputs,
                "distinct_inputs": distinct,
                "garbage_collector": timing.GARBAGE_COLLECTOR,
            },
            "results": rows,
        }
    )
    if artifact is not None:
        save(result, artifact)
    return result


def save(result: dict[str, Any], path: str | Path) -> None:
    """Write a record as JSON, whole or not at all; EvidenceError if it is none, FileError if it cannot be written."""
    content = latency_record.to_json(result)
    schemas.validate(content, "latency", str(path))
    files.write_json(path, content)


def load_latency_case(path: str | Path) -> LatencyCase:
    """The record that ``latency_case(artifact=path)`` saved, with its batch sizes as ints again.

    Raises FileError if it cannot be read, and EvidenceError if it is not such a record or a number in it does not
    follow from its own samples.  That finds damage and wrong sums; it does not prove that the times were measured.
    """
    content = files.read_json(path, MAX_FILE_BYTES)
    schemas.validate(content, "latency", str(path))
    record = latency_record.from_json(content)
    latency_record.check(record, str(path))
    return LatencyCase(record)


def check_batches(batches: Any) -> list[int]:
    """Batch sizes as a list of ints, in the order given; InputError for anything but distinct whole numbers from 1."""
    return distinct_sizes(batches, MAX_BATCH)


def check_protocol(warmups: Any, trials: Any, seed: Any, threads: Any, inputs: Any) -> tuple[int, int, int, int]:
    """The first four as ints; InputError for an argument of :func:`latency_case` that makes no sense."""
    warmups, trials = whole(warmups, "warmups", 0, MAX_CALLS), whole(trials, "trials", 1, MAX_CALLS)
    seed, threads = whole(seed, "seed", 0, 2**32 - 1), whole(threads, "threads", 1, 1024)
    if inputs not in ("fresh", "fixed"):
        raise InputError(f"inputs is {inputs!r}: expected 'fresh' or 'fixed'; choose one of them")
    return warmups, trials, seed, threads


def _check_place(artifact: str | Path | None) -> None:
    """Before measuring, not after: a wrong path should not cost the measurement."""
    if artifact is not None and not isinstance(artifact, str | Path):
        raise InputError(f"artifact is {type(artifact).__name__}: expected a path, or None; change it")
    if artifact is not None and (not Path(artifact).parent.is_dir() or Path(artifact).is_dir()):
        raise FileError(f"cannot write {artifact}: expected a file in an existing folder; make the folder first")
    if artifact is not None:
        out_folder.check_room(Path(artifact).parent)


def _machine(blas: list[dict[str, Any]] | None) -> dict[str, Any]:
    facts = machine.environment()
    hardware = {key: facts[key] for key in ("cpu", "cores", "governors", "memory", "load_average")}
    software = {key: facts[key] for key in ("os", "python", "libraries", "blas", "thread_settings", "clock")}
    return {"hardware": hardware, "software": software | {"blas_threads": blas}}


def _ms(times_us: list[float]) -> list[float]:
    return [time_us / 1000 for time_us in times_us]
