"""Compare quantized versions of one network: make them, ask for their predictions, time them in fresh processes.

    from deep_learning_cases import comparison, subjects
    record = comparison.compare(subjects.load("digits"), "quantization")

writes ``quantization/quantization.json`` and the versions' files.  docs/methodology.md says what is measured and how.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import DeepLearningCasesError, InputError, MeasurementError
from deep_learning_cases.ground import files, machine, out_folder, schemas
from deep_learning_cases.measuring import fresh_process
from deep_learning_cases.models.data import check_seed
from deep_learning_cases.models.network import compiler_cache
from deep_learning_cases.quantizing import int8_kernels, runners, torch_eager, variants
from deep_learning_cases.quantizing.comparison import predictions
from deep_learning_cases.quantizing.comparison.claims import claims_of
from deep_learning_cases.quantizing.comparison.plan import Plan
from deep_learning_cases.quantizing.comparison.record import CAVEATS, SCHEMA, busy, started
from deep_learning_cases.quantizing.comparison.summary import memory_of, speed_of, summary_of
from deep_learning_cases.quantizing.comparison.trial import COMMAND_CODE, Job
from deep_learning_cases.quantizing.subjects import Subject
from deep_learning_cases.quantizing.variants import VARIANTS

__all__ = ["FILE", "SCHEMA", "Plan", "compare"]

FILE, MODELS = "quantization.json", "models"

Launch = Callable[[Any, float], dict[str, Any]]
"""Starts a process for a :class:`trial.Job` and returns what it answered; nobody has looked at that yet."""

_LEAST_FREE_BYTES = {"digits": 700_000_000, "cifar10": 2_000_000_000}


def compare(
    subject: Subject,
    out: str | Path,
    plan: Plan | None = None,
    seed: int = 1729,
    progress: bool | None = None,
    launch: Launch | None = None,
) -> dict[str, Any]:
    """Make, judge and time the versions of ``subject``'s network; writes ``out/quantization.json`` and returns it.

    Ctrl-C, or a failure once a version is made, leaves a whole record of what was measured, with ``partial`` true,
    and is raised again.  ``progress``: None shows a bar on a terminal only.  ``launch(job, timeout_s)`` starts a
    measuring process (:func:`fresh_process.run_fresh`).

    Raises InputError for batches larger than the test set, FileError for a folder that cannot be written,
    MeasurementError for too little memory, a process that crashed or hung, or another backend than the one asked for.
    """
    plan, seed = Plan() if plan is None else plan, check_seed(seed)
    folder = Path(out)
    _check_room(subject, plan)
    with out_folder.made(folder / MODELS), compiler_cache():
        out_folder.check_room(folder)
        return _compare(subject, folder, plan, seed, progress, launch or _fresh)


def _compare(
    subject: Subject,
    folder: Path,
    plan: Plan,
    seed: int,
    progress: bool | None,
    launch: Launch,
) -> dict[str, Any]:
    record = started(subject, plan, seed)
    baseline = subject.train(seed, progress)
    record["network"]["parameters"] = sum(parameter.numel() for parameter in baseline.parameters())
    try:
        with _bar(progress, len(plan.configs), "making", "version") as step:
            for name in plan.configs:
                step(name)
                _add_config(record, name, subject, baseline, folder / MODELS, plan, seed, progress)
        measured = list(record["configs"])
        record["methodology"]["order"] = plan.order(measured)
        _measure(record, measured, subject, folder / MODELS, plan, seed, progress, launch)
    except (KeyboardInterrupt, DeepLearningCasesError) as error:
        if record["configs"]:
            reason = "stopped by Ctrl-C" if isinstance(error, KeyboardInterrupt) else str(error)
            record.update(partial=True, stopped=reason)
            _write(folder, record)
        raise
    _write(folder, record)
    return record


def _write(folder: Path, record: dict[str, Any]) -> None:
    """Derive everything from the raw runs, check the whole, and write it in one step."""
    record["summary"] = summary_of(record["runs"])
    record["speed"] = speed_of(record["runs"], {name: facts["baseline"] for name, facts in record["configs"].items()})
    record["memory"] = memory_of(record["runs"])
    record["claims"] = claims_of(record["configs"], record["speed"])
    record["caveats"] = [*CAVEATS, *busy(record["runs"], record["methodology"]["threads"])]
    record["created_at"] = machine.utc_now()
    schemas.validate(record, "quantization", FILE)
    files.write_json(folder / FILE, record)


def _add_config(
    record: dict[str, Any],
    name: str,
    subject: Subject,
    baseline: Any,
    folder: Path,
    plan: Plan,
    seed: int,
    progress: bool | None,
) -> None:
    variant = VARIANTS[name]
    reason = variants.missing(name)
    if reason is not None:
        record["skipped"][name] = reason
        return
    uses_backend = variant.technique in torch_eager.TECHNIQUES
    backend = plan.backend if uses_backend else None
    facts = variants.make(name, subject, baseline, folder, backend, seed, progress)
    with runners.opened(name, folder, subject.name, subject.input_shape, backend, plan.default_threads) as runner:
        images = subject.transform(subject.dataset.test.images)
        logits = _logits(runner, images)
        kernels = runner.kernels(images[: min(8, len(images))])
        engine = runner.engine()
    labels = subject.dataset.test.labels
    accuracy = predictions.accuracy(logits, labels, subject.classes)
    before = None if variant.baseline is None else record["configs"].get(variant.baseline)
    loss = None
    if variant.baseline is not None and before is not None:
        loss = predictions.loss(variant.baseline, before["accuracy"], accuracy, labels)
    entry: dict[str, Any] = {
        "title": variant.title,
        "framework": variant.framework,
        "device": variant.device,
        "precision": variant.precision,
        "technique": variant.technique,
        "baseline": variant.baseline,
        "backend": None,
        **facts,
        "accuracy": accuracy,
        "loss": loss,
    }
    if uses_backend:
        int8_kernels.refuse_other(kernels, plan.backend)
        entry["backend"] = {
            "asked": plan.asked_backend,
            "ran": engine,
            "built_in": torch_eager.built_in(),
            "int8_kernels": kernels,
        }
    record["configs"][name] = entry


def _logits(runner: runners.Runner, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits of all images at the evaluation batch; the last batch is as small as what is left."""
    size = predictions.EVALUATION_BATCH
    parts = [
        runner.logits(runner.run(runner.prepare(images[start : start + size]))) for start in range(0, len(images), size)
    ]
    return np.concatenate(parts)


def _measure(
    record: dict[str, Any],
    configs: Sequence[str],
    subject: Subject,
    folder: Path,
    plan: Plan,
    seed: int,
    progress: bool | None,
    launch: Launch,
) -> None:
    turns = list(plan.turns(configs))
    hashes = {name: files.sha256_file(folder / VARIANTS[name].file) for name in configs}
    with _bar(progress, len(turns), "measuring", "process") as step:
        for number, position, threads, name in turns:
            step(name)
            backend = plan.backend if VARIANTS[name].technique in torch_eager.TECHNIQUES else None
            job: Job = {
                "config": name,
                "folder": str(folder.resolve()),
                "subject": subject.name,
                "input_shape": list(subject.input_shape),
                "backend": backend,
                "threads": threads,
                "warmups": plan.warmups,
                "iterations": plan.iterations,
                "batch_sizes": plan.batch_sizes,
                "seed": seed + number,
                "pin": plan.pin,
            }
            start = {"round": number, "position": position, "config": name, "threads": threads}
            before = {"started_at": machine.utc_now(), "load_average": machine.load_average()}
            answer = launch(job, plan.timeout_s)
            _check_answer(answer, job)
            record["runs"].append(start | before | answer)
            if files.sha256_file(folder / VARIANTS[name].file) != hashes[name]:
                raise MeasurementError(
                    f"{VARIANTS[name].file} changed while it was measured: measure again, undisturbed"
                )


def _check_answer(answer: Mapping[str, Any], job: Job) -> None:
    if answer.get("backend_ran") != job["backend"]:
        raise MeasurementError(
            f"{job['config']} ran on the backend {answer.get('backend_ran')!r}: expected {job['backend']!r};"
            " choose one that is built in"
        )
    for key, expected in (("samples_us", job["iterations"]), ("warmups_us", job["warmups"])):
        series = answer.get(key)
        counts = {size: len(values) for size, values in series.items()} if isinstance(series, dict) else {}
        if counts != {str(size): expected for size in job["batch_sizes"]}:
            raise MeasurementError(
                f"the measuring process gave {key} of {counts}: expected {expected} each; measure again"
            )


def _fresh(job: Job, timeout_s: float) -> dict[str, Any]:
    return fresh_process.run_fresh(job, timeout_s, (sys.executable or "python", "-P", "-c", COMMAND_CODE))


def _check_room(subject: Subject, plan: Plan) -> None:
    images = len(subject.dataset.test.labels)
    if max(plan.batch_sizes) > images:
        raise InputError(
            f"a batch of {max(plan.batch_sizes)} is larger than the test set of {images} images: choose smaller batches"
        )
    free, least = _free_bytes(), _LEAST_FREE_BYTES[subject.name]
    if free is not None and free < least:
        raise MeasurementError(
            f"only {free / 1e6:,.0f} MB of memory are free: expected at least {least / 1e6:,.0f} MB for {subject.name};"
            " close other programs"
        )


def _free_bytes() -> int | None:
    """Memory that can still be taken, also under a container's limit; None where nothing tells."""
    try:
        import psutil
    except ImportError:
        return None
    free, limit = int(psutil.virtual_memory().available), machine.memory_limit_bytes()
    return free if limit is None else min(free, limit - int(psutil.Process().memory_info().rss))


@contextmanager
def _bar(progress: bool | None, total: int, what: str, unit: str) -> Iterator[Callable[[str], None]]:
    from tqdm import tqdm

    hidden = None if progress is None else not progress
    with tqdm(total=total, desc=what, unit=unit, disable=hidden, file=sys.stderr, leave=False) as bar:
        begun: list[str] = []

        def step(name: str) -> None:
            if begun:
                bar.update()
            begun.append(name)
            bar.set_postfix_str(name)

        yield step
