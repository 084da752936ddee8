"""Every attack of ``tests/submissions/attacks`` on stock nbgrader and on ours: the table of docs/security.md.

    python -m benchmarks.attacks [--only NAME ...] [--to DIR]

Stock nbgrader would let these run as whoever grades, so it runs in a throwaway namespace of its own, with bounds on
memory and file size; the points it gives are its own.  Seven points can be had from three items with hidden tests.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from benchmarks.autograde import ASSIGNMENT, CHECKOUT, RESULTS, grades_of, make_course

CASES = CHECKOUT / "tests" / "submissions" / "attacks"
KINDS = ("cell", "notebook", "files", "worker")
ITEMS = ("stats_p50", "stats_p95", "stats_throughput")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of attacks")
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder of the JSON result")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="attacks-") as scratch:
        template = make_course(Path(scratch, "template"), 0)
        print("| attack | stock nbgrader | ours |\n|---|---|---|")
        for path in sorted(path for kind in KINDS for path in CASES.glob(f"{kind}/*.py")):
            if args.only and path.stem not in args.only:
                continue
            row = {"attack": f"{path.parent.name}/{path.stem}"}
            for side in ("stock", "ours"):
                course = Path(scratch, f"{side}-{path.stem}")
                shutil.copytree(template, course)
                _hand_in(course, path)
                row[side] = (_stock if side == "stock" else _ours)(course)
                shutil.rmtree(course, ignore_errors=True)
            rows.append(row)
            print(f"| {row['attack']} | {row['stock']} | {row['ours']} |", flush=True)
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "attacks.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _hand_in(course: Path, path: Path) -> None:
    folder = course / "submitted" / "mallory" / ASSIGNMENT
    folder.mkdir(parents=True)
    space: dict[str, Any] = {}
    if path.parent.name != "cell":
        exec(compile(path.read_text(), str(path), "exec"), space)
    for released in (course / "release" / ASSIGNMENT).glob("*.ipynb"):
        notebook = nbformat.read(released, as_version=4)
        for cell in notebook.cells:
            if path.parent.name == "cell" and cell.metadata.get("nbgrader", {}).get("grade_id") == "latency_stats":
                cell.source = path.read_text()
        if "mutate" in space:
            space["mutate"](notebook)
        (folder / released.name).write_text(json.dumps(notebook))
    if "plant" in space:
        space["plant"](folder)


def _stock(course: Path) -> str:
    wall = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    wall += ["--tmpfs", "/tmp", "--tmpfs", "/root/.ipython", "--bind", str(course), "/mnt", "--chdir", "/mnt"]
    bounds = ["prlimit", "--as=4000000000", "--fsize=100000000"]
    command = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT, "--course-dir", "/mnt"]
    home = {"HOME": "/mnt", "JUPYTER_RUNTIME_DIR": "/tmp/run", "IPYTHONDIR": "/tmp/ipython"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    Path("/root/.ipython").mkdir(parents=True, exist_ok=True)
    try:
        call = [*wall, *bounds, *command]
        done = subprocess.run(call, env=os.environ | home | {"PATH": path}, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        return "never ends"
    return _points(course, "" if done.returncode == 0 else ", stops the run")


def _ours(course: Path) -> str:
    command = [sys.executable, "-m", "grading", "autograde", ASSIGNMENT, "--course", str(course)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=400)
    return _points(course, "" if done.returncode == 0 else ", not graded")


def _points(course: Path, remark: str) -> str:
    found = {name: score for (_, _, name), (score, _) in grades_of(course).items() if name in ITEMS}
    given = [score for score in found.values() if score is not None]
    if not found or len(given) < len(found):
        return f"no grade{remark}"
    return f"{sum(given):g} of 7{remark}"


if __name__ == "__main__":
    raise SystemExit(main())
