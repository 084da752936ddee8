"""Autograding against stock ``nbgrader autograde``: the same submissions, the same cores, the gradebooks compared.

    python benchmarks/autograde.py [--students 20 60] [--jobs N] [--repeat N] [--to DIR]

Both sides run as a user would run them, from the command line, start-up included, each on a course folder of its own.
The assignment has two notebooks: one whose items grading judges outside the student's process, and one with ordinary
nbgrader tests.  For stock nbgrader both carry hidden tests in their cells.  Ours runs with the sandbox on.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CHECKOUT = Path(__file__).resolve().parent.parent
ASSIGNMENT = "bench"
RESULTS = Path(__file__).resolve().parent / "results"
TARGETS = {"ratio at 20": 8.0, "ratio at 60": 10.0, "marginal seconds": 0.3}

_TESTS = {
    "stats_p50": (2, "p50_us", "(x[(n - 1) // 2] + x[n // 2]) / 2"),
    "stats_p95": (3, "p95_us", "x[-(-19 * n // 20) - 1]"),
    "stats_throughput": (2, "images_per_second", "b * n * 1e6 / sum(x)"),
}
_HIDDEN = """### BEGIN HIDDEN TESTS
import random as _random
_r = _random.Random(7)
for n, b in ((1, 1), (2, 4), (19, 1), (20, 32), (21, 8), (100, 1), (300, 32)):
    x = sorted(_r.lognormvariate(5, 1) for _ in range(n))
    got = latency_stats(list(reversed(x)), b)["{key}"]
    assert abs(got - {truth}) <= 1e-9 * abs({truth})
### END HIDDEN TESTS"""
_RIGHT = """def latency_stats(samples_us, batch_size):
    x, n = sorted(samples_us), len(samples_us)
    if not n or min(x) <= 0 or x[-1] == float("inf") or any(v != v for v in x) or batch_size < 1 or batch_size % 1:
        raise ValueError("bad input")
    p50, p95, rate = {p50}, {p95}, {rate}
    return dict(n=n, p50_us=p50, p95_us=p95, images_per_second=rate)"""
_P50, _P95, _RATE = "(x[(n - 1) // 2] + x[n // 2]) / 2", "x[-(-19 * n // 20) - 1]", "batch_size * n * 1e6 / sum(x)"
ANSWERS = {
    "right": _RIGHT.format(p50=_P50, p95=_P95, rate=_RATE),
    "right, in NumPy": "import numpy as np\n"
    + _RIGHT.format(p50="np.median(x)", p95="np.percentile(x, 95, method='inverted_cdf')", rate=_RATE),
    "mean for median": _RIGHT.format(p50="sum(x) / n", p95=_P95, rate=_RATE),
    "maximum for p95": _RIGHT.format(p50=_P50, p95="x[-1]", rate=_RATE),
    "calls for images": _RIGHT.format(p50=_P50, p95=_P95, rate="n * 1e6 / sum(x) / 7"),
    "blank": "raise NotImplementedError()",
}
_CURVE = """import numpy as np


def ecdf(values):
    values = np.sort(np.asarray(values, dtype=float))
    return values, np.arange(1, len(values) + 1) / len(values)"""
CURVES = {
    "right": _CURVE,
    "from zero": _CURVE.replace("np.arange(1, len(values) + 1)", "np.arange(len(values))"),
    "blank": "raise NotImplementedError()",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, nargs="+", default=[20, 60], help="class sizes")
    parser.add_argument("--jobs", type=int, default=0, help="worker processes of ours (default: the cores)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, of which the median counts")
    parser.add_argument("--ours-only", action="store_true", help="leave stock nbgrader out")
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder of the JSON result")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for number in args.students:
            rows.append(measure(Path(scratch), number, args.jobs, args.repeat, not args.ours_only))
            print(_line(rows[-1]), flush=True)
        floor = cell_seconds(Path(scratch), args.students[0])
    result = summary(rows, floor)
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "autograde.json").write_text(json.dumps(result, indent=1) + "\n")
    print(_words(result))
    print(args.to / "autograde.json")
    return 0


def measure(scratch: Path, number: int, jobs: int, repeat: int, stock: bool) -> dict[str, Any]:
    """Both sides on a class of ``number``, in turns; the median time of each and what differs in the gradebooks."""
    template = make_course(scratch / f"course-{number}", number)
    ours, theirs = [], []
    for turn in range(repeat):
        a, b = scratch / f"ours-{number}-{turn}", scratch / f"stock-{number}-{turn}"
        shutil.copytree(template, a)
        command = [
            sys.executable,
            "-m",
            "grading",
            "autograde",
            ASSIGNMENT,
            "--course",
            str(a),
            "--isolation",
            "bubblewrap",
        ]
        ours.append(_timed([*command, *(["--jobs", str(jobs)] if jobs else [])], CHECKOUT))
        if stock:
            shutil.copytree(template, b)
            nbgrader = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT, "--course-dir", str(b)]
            theirs.append(_timed(nbgrader, b))
    grades = grades_of(a)
    different = sorted(set(grades.items()) ^ set(grades_of(b).items())) if stock else None
    row: dict[str, Any] = {"students": number, "ours_seconds": _median(ours), "cells": len(grades), "runs": repeat}
    if stock:
        row |= {"stock_seconds": _median(theirs), "ratio": _median(theirs) / _median(ours), "different": different}
    return row


def make_course(course: Path, number: int) -> Path:
    """Sources, release and gradebook of the two notebooks, and ``number`` submissions from a fixed seed."""
    source = course / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    nbformat.write(_stats_notebook(), source / "stats.ipynb")
    nbformat.write(_curve_notebook(), source / "curve.ipynb")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", ASSIGNMENT, "--course-dir", str(course)]
    _timed(command, course)
    pick = random.Random(11)
    for index in range(number):
        folder = course / "submitted" / f"student{index:04d}" / ASSIGNMENT
        folder.mkdir(parents=True)
        chosen = {"latency_stats": pick.choice(list(ANSWERS.values())), "ecdf": pick.choice(list(CURVES.values()))}
        for path in (course / "release" / ASSIGNMENT).glob("*.ipynb"):
            notebook = nbformat.read(path, as_version=4)
            for cell in notebook.cells:
                name = cell.metadata.get("nbgrader", {}).get("grade_id")
                cell.source = chosen.get(name, cell.source)
            nbformat.write(notebook, folder / path.name)
        (folder / "timestamp.txt").write_text("2026-01-01 12:00:00 UTC")
    return course


def cell_seconds(scratch: Path, number: int) -> float:
    """Seconds a submission's cells take by themselves: its notebooks in a warm sandbox, nothing judged or stored."""
    sys.path.insert(0, str(CHECKOUT))
    from grading.sandbox.box import open_box

    folders = sorted((scratch / f"course-{number}" / "submitted").glob("*/*"))[:20]
    notebooks = [nbformat.read(path, as_version=4) for folder in folders for path in sorted(folder.glob("*.ipynb"))]
    with open_box(isolation="bubblewrap") as box:
        started = 0.0
        for notebook in [notebooks[0], *notebooks]:
            cells = [
                {"id": str(i), "source": c.source, "run": True}
                for i, c in enumerate(notebook.cells)
                if c.cell_type == "code"
            ]
            box.run(cells, None, [])
            started = started or time.perf_counter()
        return (time.perf_counter() - started) / len(folders)


def summary(rows: list[dict[str, Any]], floor: float) -> dict[str, Any]:
    """The rows, the marginal cost of one more submission, and how close that is to the cells' own time."""
    cores = len(os.sched_getaffinity(0))
    result: dict[str, Any] = {
        "schema": "deep-learning-cases/benchmark-autograde/1",
        "cores": cores,
        "rows": rows,
        "targets": TARGETS,
    }
    result["floor_seconds"] = floor / cores
    if len(rows) > 1:
        small, large = rows[0], rows[-1]
        more = large["students"] - small["students"]
        result["marginal_seconds"] = (large["ours_seconds"] - small["ours_seconds"]) / more
        if "stock_seconds" in large:
            result["stock_marginal_seconds"] = (large["stock_seconds"] - small["stock_seconds"]) / more
    return result


def _stats_notebook() -> Any:
    cells = [
        new_markdown_cell("# Latency statistics\n\nThree hundred readings of a clock, and what they say."),
        _cell(
            "setup", "import math\nimport random\n\nimport matplotlib.pyplot as plt\nimport numpy as np", locked=True
        ),
        _cell("latency_stats", "### BEGIN SOLUTION\n" + ANSWERS["right"] + "\n### END SOLUTION", solution=True),
        _cell("samples", "r = random.Random(3)\nsamples = [r.lognormvariate(5, 0.4) for _ in range(300)]", locked=True),
        _cell("histogram", "plt.hist(samples, bins=40)\nplt.xlabel('us')\nplt.show()", locked=True),
    ]
    for name, (points, key, truth) in _TESTS.items():
        cells.append(_cell(name, f"# {key}\n" + _HIDDEN.format(key=key, truth=truth), points=points))
    return new_notebook(cells=cells, metadata=_METADATA)


def _curve_notebook() -> Any:
    test = "x, y = ecdf([3, 1, 2])\nassert list(x) == [1, 2, 3]"
    height = "### BEGIN HIDDEN TESTS\nassert abs(y[0] - 1 / 3) < 1e-12 and y[-1] == 1\n### END HIDDEN TESTS"
    draw = "rng = np.random.default_rng(1)\nx, y = ecdf(rng.lognormal(5, 0.4, 300))\nplt.step(x, y)\nplt.show()"
    cells = [
        new_markdown_cell("# Distribution functions\n\nRead it upwards."),
        _cell("setup", "import matplotlib.pyplot as plt\nimport numpy as np", locked=True),
        _cell("ecdf", "### BEGIN SOLUTION\n" + _CURVE + "\n### END SOLUTION", solution=True),
        _cell("draw", draw, locked=True),
        _cell("ecdf_sorted", test, points=1),
        _cell("ecdf_heights", "x, y = ecdf([3, 1, 2])\n" + height, points=2),
    ]
    return new_notebook(cells=cells, metadata=_METADATA)


_METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def _cell(name: str, source: str, points: int = 0, solution: bool = False, locked: bool = False) -> Any:
    role = {"grade": bool(points), "grade_id": name, "locked": locked or bool(points), "solution": solution}
    role |= {"schema_version": 3, "task": False} | ({"points": points} if points else {})
    cell = new_code_cell(source, metadata={"nbgrader": role})
    cell.id = name
    return cell


def _timed(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    # nbgrader calls alembic by name, which lies beside the interpreter.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return seconds


def grades_of(course: Path) -> dict[tuple[str, str, str], tuple[float | None, bool]]:
    query = """SELECT sa.student_id, n.name, b.name, g.auto_score, g.needs_manual_grade FROM grade g
        JOIN base_cell b ON b.id = g.cell_id JOIN submitted_notebook s ON s.id = g.notebook_id
        JOIN notebook n ON n.id = s.notebook_id JOIN submitted_assignment sa ON sa.id = s.assignment_id"""
    with sqlite3.connect(course / "gradebook.db") as connection:
        return {(row[0], row[1], row[2]): (row[3], bool(row[4])) for row in connection.execute(query)}


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _line(row: dict[str, Any]) -> str:
    text = f"{row['students']:5} submissions: ours {row['ours_seconds']:7.2f} s"
    if "ratio" not in row:
        return text
    equal = "equal" if not row["different"] else f"DIFFERENT in {len(row['different'])} places"
    text += f", nbgrader {row['stock_seconds']:8.2f} s, ratio {row['ratio']:5.2f}"
    return f"{text}, {row['cells']} graded cells: {equal}"


def _words(result: dict[str, Any]) -> str:
    if "marginal_seconds" not in result:
        return (
            f"floor: the cells' own time over {result['cores']} cores is {result['floor_seconds']:.3f} s a submission"
        )
    return (
        f"one more submission: {result['marginal_seconds']:.3f} s; the cells' own time over {result['cores']} cores is "
        f"{result['floor_seconds']:.3f} s, so {result['marginal_seconds'] / result['floor_seconds']:.1f} times that"
    )


if __name__ == "__main__":
    raise SystemExit(main())
