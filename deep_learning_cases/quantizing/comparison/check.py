"""Does a quantization.json hold together?  Everything derived is computed again from its raw runs and predictions.

A record that does is consistent, no more: nothing in a file shows that times were measured, or that predictions were
a network's.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deep_learning_cases.errors import DeepLearningCasesError, EvidenceError, one_line
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.ground.expectation import TEXT, Close, Rule, compare, is_number
from deep_learning_cases.ground.handed_in import read_regular
from deep_learning_cases.measuring.fresh_process import alternating
from deep_learning_cases.quantizing.comparison import predictions
from deep_learning_cases.quantizing.comparison.claims import claims_of
from deep_learning_cases.quantizing.comparison.summary import memory_of, speed_of, summary_of

__all__ = ["LEAST_ITERATIONS", "LEAST_ROUNDS", "LEAST_WARMUPS", "problems", "recomputed"]

LEAST_ROUNDS, LEAST_WARMUPS, LEAST_ITERATIONS = 3, 10, 100
BATCHES = (1, 32)
"""What the lab asks for; a record may hold more."""

ROUNDING = 1e-9
CONTAINER_BYTES = 8192
"""How much a saved file and the same state_dict in memory may differ: members' names in the zip around them."""
MODELS = "models"
MAX_MODEL_BYTES = 64 * 1024 * 1024
MOST_CLASSES = 1000
SHOWN_VIOLATIONS = 3

Json = dict[str, Any]
Problem = tuple[str, str]
"""JSON pointer, and what is wrong there."""


def problems(record: Any, folder: Path) -> list[Problem]:
    """What in ``record`` is missing, too little, or does not follow; ``folder`` holds ``models/``.  Never raises."""
    found = schemas.violations(record, "quantization")
    if found:
        return found[:SHOWN_VIOLATIONS]
    found = list(_too_little(record)) or list(_runs(record))
    if found:
        return found
    try:
        expected = recomputed(record)
    except (DeepLearningCasesError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [("", f"cannot be computed again: {one_line(error)}")]
    for key in ("summary", "speed", "memory", "claims"):
        found += compare(record[key], _loose(expected[key]), f"/{key}")
    for name, facts in record["configs"].items():
        found += compare(facts["accuracy"], _accuracy(expected["accuracy"][name]), f"/configs/{name}/accuracy")
        found += compare(facts["loss"], _loose(expected["loss"][name]), f"/configs/{name}/loss")
        found += _file(facts, folder, f"/configs/{name}/size")
    return found


def recomputed(record: Mapping[str, Any]) -> Json:
    """``summary``, ``speed``, ``memory``, ``claims``, and ``accuracy`` and ``loss`` by version, from what is raw.

    Raises what the functions that compute them raise, for a record whose parts do not fit.
    """
    configs, runs = record["configs"], record["runs"]
    labels, classes = np.array(record["data"]["labels"]), record["data"]["classes"]
    accuracy = {
        name: _from_predictions(facts["accuracy"]["predictions"], labels, classes) for name, facts in configs.items()
    }
    losses: Json = {}
    for name, facts in configs.items():
        before = accuracy.get(facts["baseline"])
        losses[name] = predictions.loss(facts["baseline"], before, accuracy[name], labels) if before else None
    speed = speed_of(runs, {name: facts["baseline"] for name, facts in configs.items()})
    judged = {name: {**facts, "accuracy": accuracy[name], "loss": losses[name]} for name, facts in configs.items()}
    return {
        "summary": summary_of(runs),
        "speed": speed,
        "memory": memory_of(runs),
        "claims": claims_of(judged, speed),
        "accuracy": accuracy,
        "loss": losses,
    }


def _too_little(record: Json) -> Iterator[Problem]:
    method = record["methodology"]
    if record["partial"]:
        yield "/partial", f"measuring ended early ({one_line(str(record['stopped']))}): expected a whole record"
    for key, least in (("rounds", LEAST_ROUNDS), ("warmups", LEAST_WARMUPS), ("iterations", LEAST_ITERATIONS)):
        if method[key] < least:
            yield f"/methodology/{key}", f"is {method[key]}: expected at least {least}"
    if method["rounds"] > len(record["runs"]):
        yield "/runs", f"are {len(record['runs'])}: expected at least one in each of {method['rounds']} rounds"
    missing = [str(batch) for batch in BATCHES if batch not in method["batch_sizes"]]
    if missing:
        yield "/methodology/batch_sizes", f"lack {' and '.join(missing)}"
    configs = record["configs"]
    if not any(facts["baseline"] in configs for facts in configs.values()):
        yield "/configs", "hold no version beside the one it is compared with: expected at least one"
    labels, classes = record["data"]["labels"], len(record["data"]["classes"])
    if len(labels) != record["data"]["test_images"] or max(labels) >= classes:
        yield (
            "/data/labels",
            f"are {len(labels)} up to {max(labels)}: expected one of {classes} classes for each test image",
        )
    for name, facts in configs.items():
        predicted = facts["accuracy"]["predictions"]
        if len(predicted) != len(labels) or max(predicted) >= classes:
            yield (
                f"/configs/{name}/accuracy/predictions",
                f"are {len(predicted)}: expected a class for each of {len(labels)}",
            )


def _runs(record: Json) -> Iterator[Problem]:
    """Every round measures every version in a process of its own, in turns, and keeps every sample."""
    method, runs = record["methodology"], record["runs"]
    configs = list(record["configs"])
    order = alternating(configs, int(method["rounds"]))  # 3.0 is a whole number to JSON
    yield from compare(method["order"], order, "/methodology/order")
    # No further than there are runs: a file may claim any number of threads.
    turns = list(itertools.islice(_turns(record, order), len(runs) + 1))
    if len(runs) != len(turns):
        yield "/runs", f"are {len(runs)}: expected one process for each version, thread count and round"
    for index, (run, turn) in enumerate(zip(runs, turns, strict=False)):
        yield from compare({key: run[key] for key in turn}, turn, f"/runs/{index}")
        for key, count in (("samples_us", method["iterations"]), ("warmups_us", method["warmups"])):
            yield from _series(run[key], count, method["batch_sizes"], f"/runs/{index}/{key}")
    if len({run["pid"] for run in runs}) != len(runs):
        yield "/runs", "share a process: expected a fresh one each"


def _turns(record: Json, order: list[list[str]]) -> Iterator[Json]:
    threads_asked = record["methodology"]["threads"]
    for number, names in enumerate(order, 1):
        position = 0
        for threads in threads_asked:
            for name in names:
                if record["configs"][name]["device"] == "cpu" or threads == threads_asked[0]:
                    position += 1
                    yield {"round": number, "position": position, "config": name, "threads": threads}


def _series(series: Json, count: int, batches: list[int], pointer: str) -> Iterator[Problem]:
    if sorted(series, key=int) != [str(batch) for batch in sorted(batches)]:
        yield pointer, f"holds the batches {', '.join(series)}: expected {', '.join(map(str, batches))}"
    for batch, values in series.items():
        if len(values) != count:
            yield f"{pointer}/{batch}", f"holds {len(values)} timings: expected {count}"
        elif not all(value > 0 for value in values):
            yield f"{pointer}/{batch}", "holds a timing of 0: expected microseconds above 0"


def _from_predictions(predicted: list[int], labels: Any, classes: list[str]) -> Json:
    """As :func:`predictions.accuracy` counts; top-5 needs the logits, which the record does not hold."""
    if len(classes) > MOST_CLASSES:
        raise EvidenceError(f"there are {len(classes)} classes: expected at most {MOST_CLASSES}")
    one_hot = np.eye(len(classes), dtype=np.float32)[np.array(predicted)]
    return predictions.accuracy(one_hot, labels, classes)


def _accuracy(again: Json) -> Json:
    top1 = again["top1"]
    most = Rule(
        f"a fraction from top1 ({top1:g}) to 1", lambda value: is_number(value) and top1 - ROUNDING <= value <= 1
    )
    expected: Json = _loose(again)
    return expected | {"top5": most}


def _loose(value: Any) -> Any:
    """The same as an expectation: numbers within rounding, sentences free."""
    if isinstance(value, dict):
        return {key: TEXT if key in ("text", "reason", "method") else _loose(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_loose(child) for child in value]
    return Close(value, ROUNDING) if isinstance(value, float) else value


def _file(facts: Json, folder: Path, pointer: str) -> Iterator[Problem]:
    """The sizes are those of the files beside the record."""
    size = facts["size"]
    if size["file"] is None or Path(size["file"]).name != size["file"]:
        yield f"{pointer}/file", "names no file in models/: expected one"
        return
    content, problem = read_regular(folder / MODELS / size["file"], MAX_MODEL_BYTES)
    if content is None:
        yield f"{pointer}/file", f"names {MODELS}/{one_line(size['file'], 60)}, which {problem}"
        return
    if len(content) != size["file_bytes"]:
        yield f"{pointer}/file_bytes", f"is {size['file_bytes']}: expected the {len(content)} bytes of the file"
    in_memory = size["state_dict_bytes"]
    if in_memory is not None and facts["framework"] == "pytorch" and abs(in_memory - len(content)) > CONTAINER_BYTES:
        yield (
            f"{pointer}/state_dict_bytes",
            f"is {in_memory}, and the file with the same numbers has {len(content)} bytes",
        )
    if facts["framework"] == "onnxruntime" and files.sha256_bytes(content) != facts["state_sha256"]:
        yield (
            pointer.replace("/size", "/state_sha256"),
            "is not that of the file: measure again with the file that is there",
        )
