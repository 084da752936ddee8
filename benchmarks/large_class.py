"""How grading grows with the class: recording, memory, reports and formgrader's queries for thousands of submissions.

    python -m benchmarks.large_class [--students 500 2000] [--to DIR]

The two together take about three minutes on a quiet machine.  Growth shows within one class as well as between two: in
the time that a student takes in the first and in the last tenth of the run, and in the memory then.

What a sandboxed run costs is measured by ``benchmarks/autograde.py`` and does not depend on the class.  Here one result
is made once and recorded for everybody, so that staging, spooling, nbgrader's gradebook and the pages are what is seen.
"""

import argparse
import concurrent.futures
import copy
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.autograde import ASSIGNMENT, RESULTS, make_course
from grading.class_run.records import Answer, Job, Result


class OneResult:
    """A backend that grades the first submission behind the wall and gives everybody that result."""

    slots, ships_files = 1, False

    def __init__(self) -> None:
        from grading.class_run.worker import work

        self._work = work
        self._result: Result | None = None
        self.marks: list[tuple[float, float]] = []

    def submit(self, job: Job) -> "concurrent.futures.Future[Answer]":
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        if self._result is None:
            self._result = self._work(job)["result"]
        self.marks.append((time.perf_counter(), _resident_mb()))
        result = copy.deepcopy(self._result)
        result["student"], result["digest"] = job["student"], job["digest"]
        future.set_result({"result": result})
        return future

    def restart(self) -> None:
        """Nothing to restart."""

    def close(self) -> None:
        from grading.class_run.worker import close

        close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, nargs="+", default=[500, 2000], help="class sizes")
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder of the JSON result")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one)))
        return 0
    rows = []
    for number in args.students:
        # A process for each size: the peak of memory belongs to that size alone.
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.large_class", "--one", str(number)]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
        if done.returncode:
            sys.exit(done.stderr[-3000:])
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
        row = rows[-1]
        print(
            f"{number:6} submissions: {1000 * row['record_seconds'] / number:6.1f} ms each "
            f"(first tenth {row['first_tenth_ms']:.1f}, last {row['last_tenth_ms']:.1f}), "
            f"memory {row['first_tenth_mb']:.0f} MB after a tenth, {row['end_mb']:.0f} MB at the end, "
            f"peak {row['peak_mb']:.0f} MB, "
            f"nothing to do {row['again_seconds']:.1f} s, report {row['report_seconds']:.1f} s, "
            f"export {row['export_seconds']:.1f} s, formgrader's list {row['list_seconds']:.2f} s, "
            f"disk {row['disk_mb'] / number * 1000:.0f} kB each",
            flush=True,
        )
    if len(rows) > 1:
        small, large = rows[0], rows[-1]
        more = large["students"] - small["students"]
        each = 1000 * (large["record_seconds"] - small["record_seconds"]) / more
        memory = 1024 * (large["peak_mb"] - small["peak_mb"]) / more
        print(f"one more submission: {each:.1f} ms and {memory:.1f} kB of peak memory")
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "large_class.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0


def measure(number: int) -> dict[str, Any]:
    """One size, in this process."""
    from nbgrader.api import Gradebook

    from grading.commands import class_report, export
    from grading.commands.autograde import autograde

    with tempfile.TemporaryDirectory(prefix="large-") as scratch:
        course = make_course(Path(scratch, "course"), 1)
        first = next((course / "submitted").iterdir())
        for index in range(1, number):
            shutil.copytree(first, course / "submitted" / f"student{index:05d}")
        backend = OneResult()
        seconds = {"record": _timed(lambda: autograde(course, ASSIGNMENT, backend=backend))}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds["again"] = _timed(lambda: autograde(course, ASSIGNMENT, backend=OneResult()))
        seconds["report"] = _timed(lambda: class_report.build(course, ASSIGNMENT))
        seconds["export"] = _timed(lambda: export.export(course, "csv", course / "grades.csv"))
        with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
            seconds["list"] = _timed(lambda: gradebook.submission_dicts(ASSIGNMENT))
        files = (p for name in ("autograded", ".results") for p in (course / name).rglob("*") if p.is_file())
        disk = sum(p.stat().st_size for p in files) / 1e6
    named = {f"{name}_seconds": round(value, 3) for name, value in seconds.items()}
    sizes = {"students": number, "peak_mb": round(peak, 1), "disk_mb": round(disk, 1)}
    return sizes | growth(backend.marks) | named


def growth(marks: list[tuple[float, float]]) -> dict[str, float]:
    """Milliseconds a student and megabytes in the first and the last tenth; ``marks`` are (seconds, MB) of each.

    The first few, in which tables are read and code is warmed, belong to no tenth.
    """
    tenth = max(2, len(marks) // 10)
    first, last = marks[min(tenth // 5, 10) : tenth + 1], marks[-tenth:]
    return {
        "first_tenth_ms": round(1000 * (first[-1][0] - first[0][0]) / max(1, len(first) - 1), 2),
        "last_tenth_ms": round(1000 * (last[-1][0] - last[0][0]) / max(1, len(last) - 1), 2),
        "first_tenth_mb": round(first[-1][1], 1),
        "end_mb": round(last[-1][1], 1),
    }


def _resident_mb() -> float:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _timed(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(main())
