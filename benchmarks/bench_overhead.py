"""What measuring itself costs: time per sample, time of a whole run, memory beside a bare process.

    python -m benchmarks.bench_overhead [DIR] [--repeats N]

The bare process imports NumPy and ONNX Runtime, makes a session with one thread and calls it as often: nothing of this
library.  DIR is an evidence folder; without it a network of the lab's shape with random weights is measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from deep_learning_cases import bench, doctor, quantization
from deep_learning_cases.ground import files, machine
from deep_learning_cases.measuring import fresh_process, timing
from deep_learning_cases.models import artefacts, data

RESULT = Path(__file__).resolve().parent / "results" / "bench_overhead.json"
LIMITS = {"loop_overhead_us": 0.3, "bench_seconds": 8.0, "peak_rss_bytes": 64_000_000}

BARE = """
import json, sys, time
import numpy as np
import onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = ort.InferenceSession(json.loads(sys.stdin.readline())["model"], options, providers=["CPUExecutionProvider"])
for size in (1, 32):
    batch = np.zeros((size, 1, 8, 8), np.float32)
    for _ in range(110):
        session.run(None, {"images": batch})
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"peak_rss_bytes": peak}))
"""


def main(argv: list[str] | None = None) -> int:
    """Print the table, write the JSON; 1 if a limit is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_overhead", description="what measuring costs")
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="evidence folder")
    parser.add_argument("--repeats", type=int, default=5, help="whole runs (5)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.folder:
            for name in (artefacts.DATA, artefacts.FP32, artefacts.INT8):
                files.write_bytes(folder / name, files.read_bytes(arguments.folder / name))
        else:
            make_models(folder)
        result = measure(folder, arguments.repeats)
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    return report(result)


def make_models(folder: Path) -> None:
    """Random weights in both precisions."""
    doctor.random_model(folder)
    images = data.normalise(data.read_data(folder / artefacts.DATA)["calibration"].images)
    files.write_bytes(folder / artefacts.INT8, quantization.quantize_static(folder / artefacts.FP32, images))


def measure(folder: Path, repeats: int) -> dict[str, Any]:
    """All figures, each with every reading behind it."""
    records, seconds = [], []
    for _ in range(repeats):
        started = time.perf_counter()
        records.append(bench.run(folder))
        seconds.append(time.perf_counter() - started)
    runs = [run for record in records for run in record["runs"]]
    environment = machine.environment()
    return {
        "limits": LIMITS,
        "loop_overhead_us": [run["loop_overhead_us"] for run in runs],
        "loop_total_us": [whole_loop_us() for _ in range(3)],
        "bench_seconds": seconds,
        "peak_rss_bytes": {
            name: [run["peak_rss_bytes"] for run in runs if run["model"] == name] for name in bench.DEFAULT_MODELS
        },
        "peak_rss_source": sorted({run["peak_rss_source"] for run in runs}),
        "bare": bare(folder, repeats),
        "machine": {key: environment[key] for key in ("cpu", "cores", "load_average", "python", "libraries")},
    }


def whole_loop_us(calls: int = 1000, series: int = 50) -> float:
    """One turn of the loop around a nearly empty call, storing included: more than what enters a sample.

    The inputs are functions that the timed call calls: the first and the last one look at the clock, so that nothing
    before or after the loop counts.  The median of ``series``.
    """
    turns = []
    for _ in range(series):
        marks: list[int] = []
        mark = lambda: marks.append(time.perf_counter_ns())  # noqa: E731, B023
        timing.time_calls(lambda function: function(), [mark, *[int] * (calls - 1), mark], 0, calls + 1)
        turns.append((marks[1] - marks[0]) / 1000 / calls)
    return median(turns)


def bare(folder: Path, repeats: int) -> dict[str, Any]:
    """Peak memory and seconds of the process without this library; no memory figure where /proc is missing."""
    if not Path("/proc/self/status").exists():
        return {"peak_rss_bytes": {}, "seconds": []}
    peaks: dict[str, list[int]] = {}
    seconds = []
    for name, model in bench.DEFAULT_MODELS.items():
        for _ in range(repeats):
            started = time.perf_counter()
            output = subprocess.run(
                [sys.executable, "-c", BARE],
                input=json.dumps({"model": str(folder / model["file"])}),
                env=fresh_process.child_environment(1),
                capture_output=True,
                text=True,
                check=True,
            )
            seconds.append(time.perf_counter() - started)
            peaks.setdefault(name, []).append(json.loads(output.stdout)["peak_rss_bytes"])
    return {"peak_rss_bytes": peaks, "seconds": seconds}


def report(result: dict[str, Any]) -> int:
    """The table for a person; 1 if a limit is broken."""
    overhead, seconds = max(result["loop_overhead_us"]), max(result["bench_seconds"])
    peaks, bare_peaks = result["peak_rss_bytes"], result["bare"]["peak_rss_bytes"]
    peak = max(max(values) for values in peaks.values())
    rows = [
        (
            "loop overhead in a sample, largest of all runs",
            f"{overhead:.3f} us",
            "0.3 us",
            overhead <= LIMITS["loop_overhead_us"],
        ),
        (
            "one whole turn of the loop",
            f"{max(result['loop_total_us']):.3f} us",
            "0.3 us",
            max(result["loop_total_us"]) <= 0.3,
        ),
        ("2 models x 3 rounds x 2 batches, slowest", f"{seconds:.2f} s", "8 s", seconds <= LIMITS["bench_seconds"]),
        ("peak memory, largest", f"{peak / 1e6:.1f} MB", "64 MB", peak <= LIMITS["peak_rss_bytes"]),
    ]
    for name, values in bare_peaks.items():
        ours = median(peaks[name]) / 1e6
        rows.append((f"  {name}: ours, bare process", f"{ours:.1f}, {median(values) / 1e6:.1f} MB", "", True))
    if result["bare"]["seconds"]:
        rows.append(("seconds of 6 bare processes", f"{6 * median(result['bare']['seconds']):.2f} s", "", True))
    for what, value, limit, kept in rows:
        print(f"{what:<50}{value:>20}   {_verdict(limit, kept)}".rstrip())
    print(f"memory read from {', '.join(result['peak_rss_source'])}; written to {RESULT}")
    return 0 if all(kept for *_, kept in rows) else 1


def _verdict(limit: str, kept: bool) -> str:
    return f"limit {limit}: {'kept' if kept else 'BROKEN'}" if limit else ""


if __name__ == "__main__":
    sys.exit(main())
