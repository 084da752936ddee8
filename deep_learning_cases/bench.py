"""The provided helper: times models in turns, each round in a fresh process per model, and writes ``benchmark.json``.

    from deep_learning_cases import bench
    bench.run("evidence")                             # measure
    bench.summarise("evidence", latency_stats)        # add the summary by a function of yours

or ``python -m deep_learning_cases.bench evidence`` for both with the library's own summary.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from deep_learning_cases.errors import INTERRUPTED, DeepLearningCasesError, FileError, InputError, MeasurementError
from deep_learning_cases.ground import command_line, files, machine, out_folder
from deep_learning_cases.ground.arguments import distinct_sizes, positive, settle, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.measuring import fresh_process, stats, timing
from deep_learning_cases.measuring.bench_record import (
    BOUNDARY,
    INPUT,
    SCHEMA,
    UNIT,
    Benchmark,
    LatencyStats,
    Run,
    check_record,
    merged_samples,
    problem_of,
    summary_of,
)
from deep_learning_cases.measuring.trial import Job

__all__ = [
    "BOUNDARY",
    "DEFAULT_MODELS",
    "SCHEMA",
    "Protocol",
    "main",
    "measure",
    "merged_samples",
    "run",
    "summarise",
    "summary_of",
]


MOST = 100_000
FILE, DATA = "benchmark.json", "data.npz"
DEFAULT_MODELS = {
    "fp32": {"file": "model_fp32.onnx", "engine": "onnxruntime", "precision": "float32"},
    "int8": {"file": "model_int8.onnx", "engine": "onnxruntime", "precision": "int8"},
}


Launch = Callable[[Job, float], Mapping[str, Any]]
"""Starts a process for a job and returns what it answered; nobody has looked at that yet."""


class Settings(TypedDict, total=False):
    """What :func:`run` hands on to :func:`measure`."""

    rounds: int
    warmups: int
    repetitions: int
    batch_sizes: Sequence[int]
    threads: int
    timeout_s: float
    models: Mapping[str, Mapping[str, str]] | None
    progress: Progress | None


@dataclass(frozen=True)
class Protocol:
    """How often and how everything is measured; InputError for what cannot be."""

    rounds: int
    warmups: int
    repetitions: int
    batch_sizes: Sequence[int]
    threads: int

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("warmups", 0), ("repetitions", 1), ("threads", 1)):
            settle(self, **{name: whole(getattr(self, name), name, least, MOST)})
        settle(self, batch_sizes=distinct_sizes(self.batch_sizes, MOST))


def run(folder: str | Path, *, latency_stats: LatencyStats | None = None, **settings: Unpack[Settings]) -> Benchmark:
    """Measure and write ``folder/benchmark.json``; returns the record.

    ``settings`` are those of :func:`measure`: ``rounds``, ``warmups``, ``repetitions``, ``batch_sizes``, ``threads``,
    ``timeout_s``, ``models`` and ``progress``.  ``latency_stats(samples_us, batch_size)`` fills ``summary``, which
    stays empty without it.  The old file stays untouched until the new one is complete, and is then kept in
    ``folder/earlier/``.
    """
    if Path(folder).is_dir():  # measure says what is wrong with any other
        out_folder.check_room(Path(folder))
    record = measure(folder, **settings)
    if latency_stats is not None:
        record["summary"] = summary_of(record, latency_stats)
    out_folder.keep(Path(folder) / FILE, files.json_bytes(record))
    files.write_json(Path(folder) / FILE, record)
    return record


def measure(
    folder: str | Path,
    *,
    rounds: int = 3,
    warmups: int = 10,
    repetitions: int = 100,
    batch_sizes: Sequence[int] = (1, 32),
    threads: int = 1,
    timeout_s: float = 120.0,
    models: Mapping[str, Mapping[str, str]] | None = None,
    progress: Progress | None = None,
    launch: Launch = fresh_process.run_fresh,
) -> Benchmark:
    """Measure the models of an evidence folder in turns, without writing anything.

    Args:
        folder: holds ``data.npz`` and the models' files.
        rounds: of every model once, in the order given in odd rounds and reversed in even ones.
        warmups: calls before the timings of each batch size, kept apart.
        repetitions: timings per round, model and batch size; all are kept.
        batch_sizes: images per call.
        threads: of inference.
        timeout_s: for one measuring process.
        models: name -> {"file" (inside ``folder``), "engine", "precision"}; :data:`DEFAULT_MODELS` if None.
        progress: called as ``progress(done, total, model)`` before and after each process; a bar on a terminal if None.
        launch: starts a process for a job and returns its answer (:func:`fresh_process.run_fresh`).

    Raises:
        InputError: an argument that cannot be used.
        FileError, ModelError, EvidenceError: a file is missing, not a model that the engine takes, or damaged.
        MeasurementError: a process crashed, hung or answered rubbish, or a file changed meanwhile.
    """
    folder, models = Path(folder), DEFAULT_MODELS if models is None else models
    protocol = Protocol(rounds, warmups, repetitions, batch_sizes, threads)
    timeout_s = positive(timeout_s, "timeout_s")
    _check_models(models)
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder: expected the evidence folder; build it first")
    data = files.file_record(folder / DATA)
    facts = {name: files.file_record(folder / model["file"]) for name, model in models.items()}
    environment = machine.environment()
    environment["thread_settings"] = dict.fromkeys(machine.THREAD_VARIABLES, str(protocol.threads))
    order = fresh_process.alternating(list(models), protocol.rounds)
    runs: list[Run] = []
    with progress_steps(progress, protocol.rounds * len(models)) as step:
        for turn in _turns(order):
            name = turn[-1]
            step(len(runs), name)
            runs.append(_one_run(turn, _job(protocol, folder, models[name]), timeout_s, launch))
            for fact in (data, facts[name]):
                _refuse_change(folder, fact)
        step(len(runs), "")
    for fact in (data, *facts.values()):
        _refuse_change(folder, fact)
    return {
        "schema": SCHEMA,
        "created_at": machine.utc_now(),
        "boundary": BOUNDARY,
        "unit": UNIT,
        "protocol": asdict(protocol) | {"order": order, "garbage_collector": timing.GARBAGE_COLLECTOR, "input": INPUT},
        "environment": environment,
        "data": data,
        "models": {
            name: {**facts[name], "engine": model["engine"], "precision": model["precision"]}
            for name, model in models.items()
        },
        "runs": runs,
        "summary": {},
    }


def summarise(folder: str | Path, latency_stats: LatencyStats) -> Benchmark:
    """Fill ``summary`` of ``folder/benchmark.json`` by ``latency_stats`` and rewrite the file; returns the record.

    The raw timings stay as they are.  Raises FileError or EvidenceError if the record cannot be read, InputError if an
    answer lacks one of the four numbers, and whatever ``latency_stats`` itself raises.
    """
    path = Path(folder) / FILE
    record: Benchmark = files.read_json(path)
    check_record(record, str(path))
    record["summary"] = summary_of(record, latency_stats)
    files.write_json(path, record)
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m deep_learning_cases.bench DIR``: measure, summarise, print a table; returns the exit code."""
    parser = command_line.Parser(prog="python -m deep_learning_cases.bench")
    parser.description = "Time both models of an evidence folder in fresh processes and write benchmark.json."
    parser.add_argument("folder", metavar="DIR", type=command_line.path, help="evidence folder")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="for one measuring process (120)")
    arguments = parser.parse_args(argv)
    try:
        with out_folder.taken(arguments.folder):
            record = run(arguments.folder, timeout_s=arguments.timeout_s, latency_stats=stats.latency_summary)
    except DeepLearningCasesError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench: stopped; the old benchmark.json, if any, is untouched", file=sys.stderr)
        return INTERRUPTED
    print("model  batch    n     p50 us     p95 us   images/s")
    for name, sizes in record["summary"].items():
        for size, row in sizes.items():
            numbers = f"{row['p50_us']:>10.1f} {row['p95_us']:>10.1f} {row['images_per_second']:>10.0f}"
            print(f"{name:<6} {size:>5} {row['n']:>4} {numbers}")
    return 0


def _job(protocol: Protocol, folder: Path, model: Mapping[str, str]) -> Job:
    return {
        "model": os.fspath((folder / model["file"]).resolve()),
        "data": os.fspath((folder / DATA).resolve()),
        "engine": model["engine"],
        "threads": protocol.threads,
        "warmups": protocol.warmups,
        "repetitions": protocol.repetitions,
        "batch_sizes": list(protocol.batch_sizes),
    }


def _one_run(turn: tuple[int, int, str], job: Job, timeout_s: float, launch: Launch) -> Run:
    before = {"started_at": machine.utc_now(), "load_average": machine.load_average()}
    answer = launch(job, timeout_s)
    problem = problem_of(answer, job)
    if problem:
        raise MeasurementError(f"the measuring process answered {problem}; measure again")
    kept = ("cold_start_us", "peak_rss_bytes", "peak_rss_source", "samples_us", "warmups_us", "loop_overhead_us")
    start = dict(zip(("round", "position", "model"), turn, strict=True)) | {"pid": answer["pid"]}
    return cast(Run, start | before | {key: answer[key] for key in kept})


def _check_models(models: Mapping[str, Mapping[str, str]]) -> None:
    if not models:
        raise InputError("models is empty: expected at least one; name a file, an engine and a precision for each")
    for name, model in models.items():
        missing = [key for key in ("file", "engine", "precision") if not isinstance(model.get(key), str)]
        if missing or Path(model["file"]).name != model["file"]:
            what = f"lacks {', '.join(missing)}" if missing else f"has the file {model['file']!r}"
            raise InputError(
                f"model {name!r} {what}: expected a file name inside the folder, an engine and a precision; add them"
            )


def _refuse_change(folder: Path, fact: files.FileRecord) -> None:
    try:
        same = files.file_record(folder / fact["file"]) == fact
    except FileError:
        same = False
    if not same:
        raise MeasurementError(
            f"{fact['file']} changed while it was measured: expected SHA-256 {fact['sha256'][:12]}... throughout;"
            " the run is void, measure again with nothing writing into the folder"
        )


def _turns(order: list[list[str]]) -> Iterator[tuple[int, int, str]]:
    for round_number, names in enumerate(order, 1):
        for position, name in enumerate(names, 1):
            yield round_number, position, name


if __name__ == "__main__":
    sys.exit(main())
