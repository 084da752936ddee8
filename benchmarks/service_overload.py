"""Twice the load that the service can serve, for a minute: is every request answered or refused, and memory bounded?

    python -m benchmarks.service_overload [--seconds S] [--seed K]

The service runs a slow model (a batch of 8 in about 30 ms), at most 64 images wait.  First a closed loop of 16 clients
finds what it can serve; then Poisson arrivals at twice that, from the intended start, while its memory is read.
"""

import argparse
import sys
import threading
from pathlib import Path
from typing import Any

import psutil

from benchmarks import _deep_model
from deep_learning_cases import load
from deep_learning_cases.ground import files, machine
from deep_learning_cases.serving import process as service_process
from deep_learning_cases.serving.load import report as load_report
from deep_learning_cases.serving.load import starts

RESULT = Path(__file__).resolve().parent / "results" / "service_overload.json"
MEMORY_LIMIT_BYTES = 200_000_000
TIMEOUT_S = 10.0


def main(argv: list[str] | None = None) -> int:
    """Print the table, write the JSON; 1 if a request was lost, memory grew or an answer came too late."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_overload", description="twice the capacity")
    parser.add_argument("--seconds", type=float, default=60.0, help="(60)")
    parser.add_argument("--seed", type=int, default=1729)
    arguments = parser.parse_args(argv)
    with files.scratch_folder() as folder:
        layers = _deep_model.build(folder / "deep.onnx")
        result = measure(folder / "deep.onnx", arguments.seconds, arguments.seed) | {"layers": layers}
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    print("\n".join(load_report.lines(result["summary"])))
    kept = report(result)
    print(f"written to {RESULT}")
    return 0 if kept else 1


def measure(model: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Capacity, then the overload with the service's memory beside it, then one request after the storm."""
    bodies = load.make_bodies(seed=seed)
    with service_process.serving(_deep_model.settings(model)) as served:
        closed = load.send(served.url, bodies, concurrency=16, seconds=min(5.0, seconds))
        capacity = load_report.summary(closed)["answered_per_s"]
        starts_s = starts.intended_starts_s("poisson", 2 * capacity, seconds, seed)
        stop = threading.Event()
        resident: list[float] = []
        reader = threading.Thread(target=_read_memory, args=(served.pid, stop, resident))
        reader.start()
        try:
            fates = load.send(served.url, bodies, starts_s=starts_s, timeout_s=TIMEOUT_S)
        finally:
            stop.set()
            reader.join()
        after = load.send(served.url, bodies, concurrency=1, seconds=0.2)
    full_s = max(fate.server_ms["run"] for fate in fates if fate.server_ms) / 1e3
    bound = _deep_model.POLICY.queue_bound
    assert bound is not None
    batches = -(-bound // _deep_model.POLICY.max_batch) + 2
    return {
        "capacity_per_s": capacity,
        "sent": len(starts_s),
        "summary": load_report.summary(fates),
        # Full queue, the batch that runs and one's own, each as slow as the slowest seen.
        "latency_bound_s": batches * full_s + _deep_model.POLICY.max_wait_s,
        "slowest_in_service_s": max(fate.server_ms["total"] for fate in fates if fate.server_ms) / 1e3,
        "resident_bytes": resident,
        "answered_afterwards": {fate.status for fate in after} == {"200"},
        "environment": machine.environment(),
    }


def _read_memory(pid: int, stop: threading.Event, resident: list[int]) -> None:
    process = psutil.Process(pid)
    while not stop.wait(0.5):
        resident.append(process.memory_info().rss)


def report(result: dict[str, Any]) -> bool:
    """Print the three promises; whether all are kept."""
    summary = result["summary"]
    lost = result["sent"] - sum(summary["status"].get(status, 0) for status in ("200", "503"))
    resident = result["resident_bytes"]
    half = len(resident) // 2
    growth = max(resident[half:]) - max(resident[:half])
    promises = {
        f"capacity {result['capacity_per_s']:.0f}/s; {result['sent']} sent, {lost} neither answered nor refused": lost
        == 0,
        f"memory at most {max(resident) / 1e6:.1f} MB, {growth / 1e6:+.1f} MB in the second half": (
            max(resident) <= MEMORY_LIMIT_BYTES
        ),
        f"slowest accepted in the service {result['slowest_in_service_s']:.3f} s, the queue bounds it to "
        f"{result['latency_bound_s']:.3f} s": result["slowest_in_service_s"] <= result["latency_bound_s"],
        "answers as before afterwards": result["answered_afterwards"],
    }
    for words, kept in promises.items():
        print(f"{words}: {'kept' if kept else 'BROKEN'}")
    return all(promises.values())


if __name__ == "__main__":
    sys.exit(main())
