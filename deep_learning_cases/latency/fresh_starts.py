"""Cold starts and memory, each in a fresh process: neither can be measured twice in the same one.

A process is cold only once, and its peak of memory never goes down again.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, cast

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground import machine
from deep_learning_cases.ground.arguments import distinct_sizes, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.latency.case import MAX_BATCH
from deep_learning_cases.latency.engine import Network, Settings
from deep_learning_cases.latency.record import STAGES
from deep_learning_cases.latency.trial import Answer, Job
from deep_learning_cases.measuring import fresh_process

__all__ = ["COLD", "MEMORY", "STAGES", "cold", "largest_batch", "memory"]

Launch = Callable[[Job, float], Answer]
Row = dict[str, Any]

COLD = (
    "Cold start: from just before a new process is started to its first answer. Included: starting Python, importing"
    " NumPy, this library and the engine's runtime, loading the model, the first call. Excluded: drawing the input."
    " Files come from the operating system's cache, so the first start after switching on takes longer."
)
MEMORY = (
    "Peak resident memory of a fresh process that loads the model and answers two batches of the size. Included:"
    " Python, NumPy, this library, the runtime, weights, inputs, working buffers. It is the process's, not the model's."
)

_COMMAND = ("-P", "-c", "from deep_learning_cases.latency.trial import main; main()")


def cold(
    batches: Sequence[int],
    *,
    starts: int = 5,
    timeout_s: float = 120.0,
    launch: Launch | None = None,
    progress: Progress | None = None,
    **settings: Unpack[Settings],
) -> dict[str, Any]:
    """``starts`` cold starts of each batch size, each a fresh process, the batch sizes in turn.

    Returns ``boundary`` and ``results`` {batch size: {``median_ms`` of the whole start, ``starts`` [{``start_ms``,
    ``import_ms``, ``load_ms``, ``first_call_ms``, ``total_ms``, ``second_call_ms``}]}}.  Raises as
    :func:`fresh_process.run_fresh`, and InputError for an engine that is not one of the names.
    """
    batches, network = distinct_sizes(batches, MAX_BATCH), Network(**settings)
    found: dict[int, list[Row]] = {size: [] for size in batches}
    turns = [size for order in fresh_process.alternating(batches, whole(starts, "starts")) for size in order]
    with (
        network.file() as (path, _),
        progress_steps(progress, len(turns)) as step,
    ):
        for done, size in enumerate(turns):
            step(done, f"cold start, batch {size}")
            stages = (launch or _launch)(_job(network, path, size), timeout_s)["stages"] or {}
            found[size].append(stages | {"total_ms": sum(stages[key] for key in STAGES)})
        step(len(turns), "")
    return {
        "boundary": COLD,
        "results": {
            size: {"median_ms": statistics.median(start["total_ms"] for start in rows), "starts": rows}
            for size, rows in found.items()
        },
    }


def memory(
    batches: Sequence[int],
    *,
    limit_bytes: int | None = None,
    timeout_s: float = 120.0,
    launch: Launch | None = None,
    progress: Progress | None = None,
    **settings: Unpack[Settings],
) -> dict[str, Any]:
    """Peak memory of each batch size, each in a fresh process; under a limit, whether it fits and what would.

    Returns ``boundary``, ``limit_bytes``, ``results`` {batch size: {``fits``, ``peak_rss_bytes``, ``before_bytes`` (the
    peak before the model was loaded), ``source``, ``reason`` (why it does not fit)}} and ``largest_batch``
    (:func:`largest_batch`; None without a limit).
    """
    batches, limit_bytes = distinct_sizes(batches, MAX_BATCH), _checked_limit(limit_bytes)
    network = Network(**settings)
    with (
        network.file() as (path, _),
        progress_steps(progress, len(batches)) as step,
    ):

        def probe(size: int) -> Row:
            return _memory_row(lambda: (launch or _launch)(_job(network, path, size, limit_bytes), timeout_s))

        rows: dict[int, Row] = {}
        for done, size in enumerate(batches):
            step(done, f"memory, batch {size}")
            rows[size] = probe(size)
        step(len(batches), "largest batch" if limit_bytes is not None else "")
        return {
            "boundary": MEMORY,
            "limit_bytes": limit_bytes,
            "results": rows,
            "largest_batch": None if limit_bytes is None else largest_batch(probe),
        }


def largest_batch(probe: Callable[[int], Row], most: int = MAX_BATCH) -> dict[str, Any]:
    """The largest batch that fits, to within a 64th: twice as many until one fails, then halving the gap.

    ``probe(batch)`` gives a memory row.  Returns ``fits`` (0 if not even one image does), ``fails`` (the smallest batch
    seen to fail; None where ``most`` fits), ``reason`` and ``probes`` {batch size: row} in the order asked.
    """
    probes: dict[int, Row] = {}

    def fits(size: int) -> bool:
        probes[size] = probe(size)
        return bool(probes[size]["fits"])

    good, bad = 0, None
    size = 1
    while bad is None and good < most:
        if fits(size):
            good, size = size, min(2 * size, most)
        else:
            bad = size
    while bad is not None and bad - good > max(1, good // 64):
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    if bad is None:
        reason = f"batch {most} fits, and the search goes no further"
    else:
        reason = f"batch {bad} does not fit: {probes[bad]['reason']}"
    return {"fits": good, "fails": bad, "reason": reason, "probes": probes}


def _memory_row(ask: Callable[[], Answer]) -> Row:
    try:
        answer: Mapping[str, Any] = ask()
    except fresh_process.NoAnswerError as error:
        # A runtime written in C++ may abort where Python would raise: that is an answer as well.
        return {"fits": False, "peak_rss_bytes": None, "before_bytes": None, "source": "none", "reason": str(error)}
    return {key: answer[key] for key in ("fits", "peak_rss_bytes", "before_bytes", "source", "reason")}


def _job(network: Network, path: Path, size: int, limit_bytes: int | None = None) -> Job:
    return {
        "model": str(path.resolve()),
        "engine": network.engine,
        "threads": network.threads,
        "device": network.device,
        "batch": size,
        "seed": network.seed,
        "limit_bytes": limit_bytes,
        "started_ns": time.monotonic_ns(),
    }


def _launch(job: Job, timeout_s: float) -> Answer:
    return cast(Answer, fresh_process.run_fresh(job, timeout_s, (sys.executable or "python", *_COMMAND)))


def _checked_limit(limit: int | None) -> int | None:
    if limit is None:
        return None
    limit_bytes = whole(limit, "limit_bytes")
    here = [known for known in (machine.memory_limit_bytes(), machine.memory_total_bytes()) if known]
    if here and limit_bytes > min(here):
        raise InputError(
            f"the memory limit is {limit_bytes / 1e6:.0f} MB: expected at most the {min(here) / 1e6:.0f} MB"
            " there are; lower it"
        )
    return limit_bytes
