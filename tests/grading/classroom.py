"""A small course for tests of the class: one notebook judged outside, one with ordinary tests, and its submissions."""

import atexit
import concurrent.futures
import copy
import functools
import importlib.util
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grading.class_run.quiet import quiet_nbgrader
from grading.class_run.records import Answer, Job

CASES = Path(__file__).parents[1] / "submissions"
ASSIGNMENT = "small"
SEED = "a-seed-for-the-tests-of-a-class"
RIGHT = """import math


def latency_stats(samples_us, batch_size):
    x = sorted(float(s) for s in samples_us)
    if not x or not all(math.isfinite(s) and s > 0 for s in x) or batch_size < 1 or batch_size != int(batch_size):
        raise ValueError("bad input")
    n = len(x)
    return {"n": n, "p50_us": (x[(n - 1) // 2] + x[n // 2]) / 2, "p95_us": x[-(-19 * n // 20) - 1],
            "images_per_second": batch_size * n * 1e6 / sum(x)}
"""
INTERPOLATED = RIGHT.replace("x[-(-19 * n // 20) - 1]", "__import__('numpy').percentile(x, 95)")
STATS = {"stats_p50": 2, "stats_p95": 3, "stats_throughput": 2, "stats_pure": 1, "stats_errors": 1}
FULL = {**STATS, "double": 1, "double_negative": 2}
Json = dict[str, Any]
template_folder: Path | None = None
"""Where the course that others are copied from is built: pytest's own folder, set by conftest.py."""


def cell(name: str, source: str, points: float = 0, solution: bool = False, locked: bool = False) -> Any:
    """A code cell with nbgrader's metadata."""
    role = {"grade": bool(points), "grade_id": name, "locked": locked or (bool(points) and not solution)}
    role |= {"solution": solution, "schema_version": 3, "task": False} | ({"points": points} if points else {})
    made = new_code_cell(source, metadata={"nbgrader": role})
    made.id = name
    return made


def written(name: str, source: str, points: float) -> Any:
    """A written answer, graded by hand."""
    made = cell(name, source, points, solution=True)
    answer = new_markdown_cell(source, metadata=made.metadata)
    answer.id = name
    return answer


def source_notebooks() -> dict[str, Any]:
    """The two notebooks of the assignment, with solutions."""
    solution = "### BEGIN SOLUTION\n{}\n### END SOLUTION"
    prose = new_markdown_cell("# Statistics of latencies")
    prose.id = "prose"
    helper = new_code_cell("unit = 'us'")
    helper.id = "provided"
    stats = [
        prose,
        helper,
        cell("setup", "import math\nimport random", locked=True),
        cell("latency_stats", solution.format(RIGHT), solution=True),
        *(cell(name, f"latency_stats([1, 2], 1)  # {name}", points) for name, points in STATS.items()),
        written("scope", "A timer sees what is inside it.", 3),
    ]
    double = [
        cell("twice", solution.format("def twice(x):\n    return 2 * x"), solution=True),
        cell("double", "assert twice(2) == 4", 1),
        cell("double_negative", "### BEGIN HIDDEN TESTS\nassert twice(-317) == -634\n### END HIDDEN TESTS", 2),
    ]
    return {name: _notebook(cells) for name, cells in {"stats": stats, "double": double}.items()}


def _notebook(cells: list[Any]) -> Any:
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return new_notebook(cells=copy.deepcopy(cells), metadata=kernel)


@functools.cache
def _template() -> Path:
    """The course without submissions, built once a test run by nbgrader itself."""
    from grading.course import build

    course = Path(tempfile.mkdtemp(prefix="classroom-", dir=template_folder))
    if template_folder is None:
        atexit.register(shutil.rmtree, course, ignore_errors=True)
    source = course / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    for name, notebook in source_notebooks().items():
        nbformat.write(notebook, source / f"{name}.ipynb")
    quiet_nbgrader()
    build.generate(ASSIGNMENT, course)
    (course / "fixtures.seed").write_text(SEED + "\n")
    return course


def make_course(folder: Path) -> Path:
    """A fresh copy of the course at ``folder / "course"``."""
    course = folder / "course"
    shutil.copytree(_template(), course)
    checkout = Path(__file__).resolve().parents[2]
    (course / "nbgrader_config.py").write_text(
        f"import sys\nsys.path.insert(0, {str(checkout)!r})\nfrom grading.course_config import configure\n"
        f"c = get_config()\nconfigure(c)\n"
    )
    return course


def hand_in(
    course: Path,
    student: str,
    answer: str | None = RIGHT,
    twice: str | None = "def twice(x):\n    return x + x",
    scope: str | None = None,
    mutate: Callable[[Any], None] | None = None,
    plant: Callable[[Path], None] | None = None,
    timestamp: str = "2026-01-10 12:00:00 UTC",
) -> Path:
    """Write one submission from the released notebooks; returns its folder. None leaves a cell blank."""
    folder = course / "submitted" / student / ASSIGNMENT
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    answers = {"latency_stats": answer, "twice": twice, "scope": scope}
    for path in sorted((course / "release" / ASSIGNMENT).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for one in notebook.cells:
            given = answers.get(one.metadata.get("nbgrader", {}).get("grade_id"))
            one.source = one.source if given is None else given
        if mutate is not None:
            mutate(notebook)
        (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "timestamp.txt").write_text(timestamp)
    if plant is not None:
        plant(folder)
    return folder


def load_case(name: str) -> Any:
    """A module of ``tests/submissions/attacks``, for its ``mutate``, ``plant`` or ``tamper``."""
    path = CASES / "attacks" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def grades(course: Path) -> dict[str, dict[str, tuple[float | None, float | None, bool]]]:
    """{student: {cell: (auto_score, manual_score, needs_manual_grade)}} as the gradebook file has them."""
    query = """SELECT sa.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade FROM grade g
        JOIN base_cell b ON b.id = g.cell_id JOIN submitted_notebook s ON s.id = g.notebook_id
        JOIN submitted_assignment sa ON sa.id = s.assignment_id ORDER BY 1, 2"""
    found: dict[str, dict[str, tuple[float | None, float | None, bool]]] = {}
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        for student, name, auto, manual, waits in connection.execute(query):
            found.setdefault(student, {})[name] = (auto, manual, bool(waits))
    finally:
        connection.close()
    return found


def automatic(course: Path) -> dict[str, dict[str, float | None]]:
    """The automatic scores alone, without the written answer."""
    return {
        student: {name: auto for name, (auto, _, _) in cells.items() if name != "scope"}
        for student, cells in grades(course).items()
    }


class FakeRun(dict[str, Any]):
    """What a box gives back, without a box."""

    def to_dict(self) -> Json:
        return dict(self)


class FakeBox:
    """Runs nothing: answers ``latency_stats`` by calling the function of the submitted cell here, in the test."""

    isolation: ClassVar[Json] = {"kind": "fake"}

    def run_all(self, parts: list[Any]) -> list[FakeRun]:
        return [
            self.run([asdict(cell) for cell in part.cells], part.files, [asdict(call) for call in part.calls])
            for part in parts
        ]

    def run(self, cells: list[Json], files: Path | None, calls: list[Json]) -> FakeRun:  # noqa: ARG002
        from tests.grading.asking import ask

        source = "\n\n".join(one["source"] for one in cells if one["run"] and one["id"] == "latency_stats")
        space: Json = {}
        outputs: Json = {}
        for one in cells:
            outputs[one["id"]] = _execute(one, space) if one["run"] else []
        counts = {one["id"]: number for number, one in enumerate(cells, 1) if one["run"]}
        answers = ask(source, calls) if calls else {}
        run = {"outputs": outputs, "execution_counts": counts, "answers": answers, "stopped": None, "asked": True}
        return FakeRun(run | {"seconds": 0.01})


def _execute(one: Json, space: Json) -> list[Json]:
    try:
        exec(compile(one["source"], one["id"], "exec"), space)
    except Exception as error:
        return [{"output_type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": []}]
    return []


class FakeBackend:
    """The pool's backend in this very process, with a fake box; ``fail`` makes some students' jobs raise."""

    slots, ships_files = 1, False

    def __init__(self, fail: dict[str, Exception] | None = None, box: Any = None) -> None:
        self.fail, self.box = fail or {}, box or FakeBox()
        self.graded: list[str] = []

    def submit(self, job: Job) -> "concurrent.futures.Future[Answer]":
        from grading.class_run.one_submission import grade_submission

        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        try:
            if job["student"] in self.fail:
                raise self.fail[job["student"]]
            future.set_result({"result": json.loads(json.dumps(grade_submission(job, self.box)))})
            self.graded.append(job["student"])
        except Exception as error:
            future.set_exception(error)
        return future

    def restart(self) -> None:
        """Nothing to restart."""

    def close(self) -> None:
        """Nothing to close."""


def grade(course: Path, backend: Any = None, **settings: Any) -> Any:
    """Grade the course with a fake backend unless one is given; returns the summary."""
    from grading.commands.autograde import autograde

    return autograde(course, ASSIGNMENT, backend=backend or FakeBackend(), **settings)
