"""benchmark.json beside the protocol, the files it names and its own raw samples."""

from collections.abc import Iterator
from typing import Any

from deep_learning_cases.ground.expectation import (
    COUNT,
    NOT_NEGATIVE,
    OBJECT,
    POSITIVE,
    ROUNDING,
    TEXT,
    TIME,
    Close,
    Maybe,
    Rule,
    is_number,
    look,
    unknown,
)
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.measuring import bench_record, timing
from deep_learning_cases.measuring.fresh_process import alternating
from deep_learning_cases.models import artefacts
from deep_learning_cases.models.artefacts import BASELINE, CANDIDATE, MODELS
from deep_learning_cases.release.checking.judge import RELINK, finding, judge
from deep_learning_cases.release.evidence import Evidence, summary_of

__all__ = ["BATCH_SIZES", "benchmark_findings", "benchmark_tree", "shared_processes", "summary_tree"]

PRECISIONS = {BASELINE: "float32", CANDIDATE: "int8"}
ROUNDS, WARMUPS, REPETITIONS, BATCH_SIZES, THREADS = 3, 10, 100, (1, 32), 1


def benchmark_area(pointer: str) -> str:
    """Which part of the evidence a place in benchmark.json belongs to."""
    steps = pointer.split("/")
    if steps[1:2] == ["summary"]:
        return "benchmark_summary"
    if steps[1:2] == ["data"] or (steps[1:2] == ["models"] and steps[3:] not in (["engine"], ["precision"])):
        return "benchmark_linkage"
    return "benchmark_record"


def benchmark_findings(evidence: Evidence) -> list[Finding]:
    """benchmark.json: protocol, order and counts; hashes and sizes; the summary from the raw samples."""
    areas = ("benchmark_record", "benchmark_linkage", "benchmark_summary")
    value = evidence.documents[artefacts.BENCHMARK].value
    found = judge(evidence, artefacts.BENCHMARK, "benchmark", benchmark_tree(evidence, value), benchmark_area, areas)
    unusable = [
        Finding("benchmark_linkage", name, "", f"cannot be used: {problem}", RELINK)
        for name, problem in evidence.usable.items()
        if problem
    ]
    shared = [
        finding("benchmark_record", artefacts.BENCHMARK, pointer, message)
        for pointer, message in shared_processes(value)
    ]
    return found + unusable + shared


def benchmark_tree(evidence: Evidence, stated: Any) -> dict[str, Any]:
    """The record as the protocol and the files fix it; ``stated`` decides only which model began."""
    pair = [BASELINE, CANDIDATE]
    if look(stated, "protocol", "order", 0) == pair[::-1]:
        pair.reverse()
    order = alternating(pair, ROUNDS)
    summaries = {
        model: {str(size): summary_tree(summary_of(stated, model, size)) for size in BATCH_SIZES} for model in MODELS
    }
    return {
        "schema": bench_record.SCHEMA,
        "created_at": TIME,
        "boundary": TEXT,
        "unit": bench_record.UNIT,
        "protocol": {
            "rounds": ROUNDS,
            "warmups": WARMUPS,
            "repetitions": REPETITIONS,
            "batch_sizes": list(BATCH_SIZES),
            "threads": THREADS,
            "order": order,
            "garbage_collector": Maybe(timing.GARBAGE_COLLECTOR),
            "input": Maybe(TEXT),
        },
        "environment": OBJECT,
        "data": evidence.record(artefacts.DATA),
        "models": {
            name: evidence.record(file) | {"engine": "onnxruntime", "precision": PRECISIONS[name]}
            for name, file in MODELS.items()
        },
        "runs": list(_expected_runs(order)),
        "summary": summaries,
    }


def _expected_runs(order: list[list[str]]) -> Iterator[dict[str, Any]]:
    for number, models in enumerate(order, 1):
        for position, model in enumerate(models, 1):
            yield {
                "round": number,
                "position": position,
                "model": model,
                "pid": COUNT,
                "started_at": TIME,
                "load_average": Rule("load averages, or null", _is_load),
                "cold_start_us": POSITIVE,
                "peak_rss_bytes": COUNT,
                "peak_rss_source": TEXT,
                "samples_us": {str(size): [POSITIVE] * REPETITIONS for size in BATCH_SIZES},
                "warmups_us": Maybe({str(size): [POSITIVE] * WARMUPS for size in BATCH_SIZES}),
                "loop_overhead_us": Maybe(NOT_NEGATIVE),
            }


def _is_load(value: Any) -> bool:
    readings = value if isinstance(value, list) else [value]
    return value is None or (len(readings) in (1, 2, 3) and all(is_number(one) and one >= 0 for one in readings))


def summary_tree(summary: dict[str, Any] | None) -> Any:
    """The four numbers as they may be stated: counts and picked samples exactly, sums within :data:`ROUNDING`."""
    if summary is None:
        return unknown("the raw samples are not all finite and positive, or not there")
    return {
        "n": summary["n"],
        "p50_us": Close(summary["p50_us"], ROUNDING),
        "p95_us": summary["p95_us"],
        "images_per_second": Close(summary["images_per_second"], ROUNDING),
    }


def shared_processes(record: Any) -> list[tuple[str, str]]:
    """(Pointer, what is wrong) of runs with the process number of an earlier one: each needs a process of its own."""
    runs = look(record, "runs")
    seen: set[int] = set()
    found = []
    for index, run in enumerate(runs if isinstance(runs, list) else []):
        pid = look(run, "pid")
        if not isinstance(pid, int):
            continue
        if pid in seen:
            message = f"is {pid}, the process of another run: expected a fresh process for every round and model"
            found.append((f"/runs/{index}/pid", message))
        seen.add(pid)
    return found[:20]
