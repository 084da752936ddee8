"""The target kit's program: the same files and protocol on another machine, with Python, NumPy and ONNX Runtime alone.

What this module imports travels in the kit, so it imports little.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deep_learning_cases import bench
from deep_learning_cases.errors import INTERRUPTED, DeepLearningCasesError, EvidenceError, InputError
from deep_learning_cases.ground import command_line, files, machine, out_folder
from deep_learning_cases.measuring import bench_record, stats

__all__ = ["MANIFEST", "SCHEMA", "TARGET", "main", "measure_target"]

SCHEMA = "deep-learning-cases/target_benchmark/1"
TARGET, MANIFEST, DATA_FOLDER = "target_benchmark.json", "kit.json", "evidence"


def measure_target(kit: Path, device: str | None = None, timeout_s: float = 600.0) -> dict[str, Any]:
    """Measure the kit's models and write ``target_benchmark.json`` into it, whole or not at all; returns the record.

    ``device`` is a name for the reader, the processor's if None.  EvidenceError if a file of the kit is not the one
    that was packed; otherwise as :func:`bench.measure`.
    """
    folder = kit / DATA_FOLDER
    for name, fact in files.read_json(kit / MANIFEST)["files"].items():
        if files.file_record(folder / name) != fact:
            raise EvidenceError(f"{folder / name} is not the file that was packed: unpack the kit again")
    out_folder.check_room(kit)
    record = bench.measure(folder, timeout_s=timeout_s, progress=_say)
    record["summary"] = bench_record.summary_of(record, stats.latency_summary)
    name = device or str(record["environment"]["cpu"]["model"] or "unnamed device")
    if not 0 < len(name.strip()) <= 200:
        raise InputError("the device's name is empty or longer than 200 characters: expected a short one; shorten it")
    target = {"schema": SCHEMA, "created_at": machine.utc_now(), "device": name.strip(), "benchmark": record}
    out_folder.keep(kit / TARGET, files.json_bytes(target))
    files.write_json(kit / TARGET, target)
    return target


def main(kit: Path, argv: Sequence[str] | None = None) -> int:
    """``python measure.py``: measure, write, print a table; returns the exit code."""
    parser = command_line.Parser(
        prog="measure.py", description="Repeat the measurement of both models on this machine."
    )
    parser.add_argument("--device", help="what this machine is, in your words (the processor's name)")
    parser.add_argument("--timeout-s", type=float, default=600.0, help="for one measuring process (600)")
    arguments = parser.parse_args(argv)
    try:
        target = measure_target(kit, arguments.device, arguments.timeout_s)
    except DeepLearningCasesError as error:
        print(f"measure: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("measure: stopped; nothing was written", file=sys.stderr)
        return INTERRUPTED
    print("model  batch    n     p50 us     p95 us   images/s")
    for model, sizes in target["benchmark"]["summary"].items():
        for size, row in sizes.items():
            numbers = f"{row['p50_us']:>10.1f} {row['p95_us']:>10.1f} {row['images_per_second']:>10.0f}"
            print(f"{model:<6} {size:>5} {row['n']:>4} {numbers}")
    print(f"wrote {kit / TARGET}: copy it into the evidence folder, then run dlcases check and dlcases report there")
    return 0


def _say(done: int, total: int, model: str) -> None:
    if sys.stderr.isatty() and model:
        print(f"process {done + 1} of {total}: {model}", file=sys.stderr)
