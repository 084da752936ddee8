"""How long a command takes that computes little: processor time of whole processes, beside a bare start.

    python -m benchmarks.start_up [DIR] [--rounds N]

The bare process imports NumPy and ONNX Runtime and ends: no command that opens a model can be quicker.  Every side is a
process of its own and is started in turn, so that other work on the machine meets all of them; what counts is the
processor time that the system charges the process with (user and system), the median of the rounds, and the median of
the ratios within a round.  DIR is an evidence folder, of which every process gets a copy of its own; without it one is
made first (10 s).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from deep_learning_cases.ground import files, machine

RESULT = Path(__file__).resolve().parent / "results" / "start_up.json"
BARE = "bare process"
DLCASES = ("-m", "deep_learning_cases.cli")
SIDES = {
    BARE: ("-c", "import numpy, onnxruntime"),
    "import deep_learning_cases": ("-c", "import deep_learning_cases"),
    "dlcases doctor --help": (*DLCASES, "doctor", "--help"),
    "dlcases check": (*DLCASES, "check", "DIR"),
    "dlcases regress": (*DLCASES, "regress", "DIR"),
    "dlcases release": (*DLCASES, "release", "DIR"),
    "dlcases report": (*DLCASES, "report", "DIR"),
}
LIMITS_S = {"dlcases check": 0.5, "dlcases regress": 0.5, "dlcases release": 0.5, "dlcases report": 1.6}


def main(argv: list[str] | None = None) -> int:
    """Print the table, write the JSON; 1 if a limit is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up", description="what starting a command costs")
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="evidence folder")
    parser.add_argument("--rounds", type=int, default=9, help="(9)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary) / "evidence"
        if not arguments.folder:
            processor_seconds((*DLCASES, "run", str(folder)))
        result = measure(folder, arguments.rounds)
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    return report(result)


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Every reading of every side, after one round that fills the caches and is thrown away."""
    seconds: dict[str, list[float]] = {name: [] for name in SIDES}
    for number in range(rounds + 1):
        for name in list(SIDES) if number % 2 else list(SIDES)[::-1]:
            with tempfile.TemporaryDirectory() as scratch:
                copy = shutil.copytree(folder, Path(scratch) / "evidence")
                taken = processor_seconds(tuple(str(copy) if word == "DIR" else word for word in SIDES[name]))
            if number:
                seconds[name].append(taken)
    environment = machine.environment()
    return {
        "limits_s": LIMITS_S,
        "processor_seconds": seconds,
        "machine": {key: environment[key] for key in ("cpu", "cores", "load_average", "python", "libraries")},
    }


def processor_seconds(words: tuple[str, ...]) -> float:
    """User and system time of one ``python WORDS`` that has to succeed."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL) as process:
        # Asked for this one child: what the system adds up over all children would hold others as well.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage.ru_utime + usage.ru_stime


def report(result: dict[str, Any]) -> int:
    """The table for a person; 1 if a limit is broken."""
    seconds, limits = result["processor_seconds"], result["limits_s"]
    broken = 0
    print(f"{'processor time':<28}{'s':>7}{'x bare':>8}")
    for name, values in seconds.items():
        ratio = median(one / bare for one, bare in zip(values, seconds[BARE], strict=True))
        verdict = ""
        if name in limits:
            kept = median(values) <= limits[name]
            broken += not kept
            verdict = f"   limit {limits[name]} s: {'kept' if kept else 'BROKEN'}"
        print(f"{name:<28}{median(values):>7.3f}{ratio:>8.2f}{verdict}")
    print(f"median of {len(seconds[BARE])} interleaved rounds; written to {RESULT}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
