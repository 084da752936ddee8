"""``python -m grading sample``: a small class, built, graded and shown, to see the whole grader at work.

Nine students of the assignment ``release``: right answers, known mistakes, a blank, two attacks, somebody late.  Their
evidence is one real measurement on this machine; each summary in it is computed by that student's own function.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError
from deep_learning_cases.ground.command_line import say
from grading.class_run.quiet import quiet_nbgrader
from grading.course.places import CHECKOUT
from grading.course.skeleton import role_of

__all__ = ["STUDENTS", "Student", "add_parser", "build_class", "hand_in", "honest_evidence", "run"]

ASSIGNMENT = "release"
DUE = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
NEEDED = ("data.npz", "model_fp32.onnx", "model_int8.onnx", "regression.json", "benchmark.json")

Json = dict[str, Any]

_CHECKED = """
    samples = [float(sample) for sample in samples_us]
    usable = samples and all(math.isfinite(s) and s > 0 for s in samples)
    if not usable or batch_size != int(batch_size) or batch_size < 1:
        raise ValueError("expected times above zero and a whole batch size of at least 1")
    n = len(samples)
"""
_HEAD = "import math\n\n\ndef latency_stats(samples_us, batch_size):" + _CHECKED


def _answer(
    p50: str, p95: str, rate: str = "batch_size * n * 1e6 / sum(samples)", order: str = "samples.sort()"
) -> str:
    return f'{_HEAD}    {order}\n    return {{"n": n, "p50_us": {p50}, "p95_us": {p95}, "images_per_second": {rate}}}\n'


_LINEAR = "__import__('numpy').percentile(samples, 95)"
_MEDIAN, _RANK = "(samples[(n - 1) // 2] + samples[n // 2]) / 2", "samples[-(-19 * n // 20) - 1]"

_FORGED = """get_ipython().input_transformers_post.append(lambda lines: ["pass\\n"])


class Anything(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = float.__hash__


def latency_stats(samples_us, batch_size):
    return dict.fromkeys(("n", "p50_us", "p95_us", "images_per_second"), Anything(1))
"""


@dataclass(frozen=True)
class Student:
    """One of the class: what they did, their function (None leaves the notebooks blank), and how late they were."""

    name: str
    what: str
    answer: str | None
    evidence: bool = True
    days_late: float = 0.0
    change: Callable[[Json], None] | None = None


def _raise_points(notebook: Json) -> None:
    for cell in notebook["cells"]:
        role = role_of(cell)
        if role.get("grade"):
            role |= {"points": 1000, "locked": False, "solution": True}
            cell["source"] = "pass"
        cell["metadata"]["tags"] = ["skip-execution"]


STUDENTS = (
    Student("ada", "everything right", _answer(_MEDIAN, _RANK)),
    Student("boris", "everything right, two days late", _answer(_MEDIAN, _RANK), days_late=1.5),
    Student(
        "chen",
        "p95 interpolated",
        _answer(
            _MEDIAN,
            _LINEAR,
        ),
    ),
    Student("dana", "mean for the median", _answer("sum(samples) / n", _RANK)),
    Student("emil", "calls named images", _answer(_MEDIAN, _RANK, "n * 1e6 / sum(samples)")),
    Student("fatima", "forgets to sort", _answer(_MEDIAN, _RANK, order="pass")),
    Student("george", "a blank", None, evidence=False),
    Student("mallory", "attack: forges every check inside the kernel", _FORGED, evidence=False),
    Student("oscar", "attack: raises points, tags every cell", None, evidence=False, change=_raise_points),
)


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("sample", help="build a sample class, grade it and show the result")
    parser.add_argument("--to", type=Path, default=CHECKOUT / "work" / "sample-course", metavar="DIR", help="where")
    parser.add_argument(
        "--evidence", type=Path, default=CHECKOUT / "evidence", metavar="DIR", help="a measured evidence folder"
    )
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="worker processes (default: the cores)")
    parser.add_argument(
        "--isolation", choices=["auto", "bubblewrap", "landlock", "none"], default="auto", help="the wall"
    )


def run(args: argparse.Namespace) -> int:
    """Build, grade, print the table and where everything is."""
    from grading.commands import class_report, feedback
    from grading.commands.autograde import autograde

    started = time.monotonic()
    course = build_class(args.to, args.evidence)
    graded = time.monotonic()
    summary = autograde(course, ASSIGNMENT, jobs=args.jobs, isolation=args.isolation, force=True)
    seconds = time.monotonic() - graded
    feedback.generate(course, ASSIGNMENT, force=True)
    report = class_report.build(course, ASSIGNMENT)
    facts = class_report.collect(course, ASSIGNMENT)
    say(*_table(facts))
    say(f"graded {summary.graded} submissions in {seconds:.1f} s, all in {time.monotonic() - started:.1f} s")
    say(f"wall          {', '.join(facts.isolation)}")
    for name, path in (
        ("gradebook", course / "gradebook.db"),
        ("feedback", course / "feedback"),
        ("class report", report),
    ):
        say(f"{name:13} {path}")
    return 1 if summary.failed else 0


def build_class(course: Path, evidence: Path) -> Path:
    """The course folder with sources, gradebook and nine submissions; what was there before is replaced."""
    quiet_nbgrader()
    from grading.course import build

    course = Path(course).resolve()
    if course.exists() and not (course / "sample-course").exists() and any(course.iterdir()):
        raise FileError(f"{course} is not a sample course: expected an empty or new folder; name another with --to")
    shutil.rmtree(course, ignore_errors=True)
    course.mkdir(parents=True)
    (course / "sample-course").write_text("made by `python -m grading sample`, which replaces this folder\n")
    (course / "nbgrader_config.py").write_text(_CONFIG.format(checkout=str(CHECKOUT)))
    build.write_source(ASSIGNMENT, course)
    build.generate(ASSIGNMENT, course)
    _set_due(course)
    with tempfile.TemporaryDirectory(prefix="evidence-") as scratch:
        measured = honest_evidence(evidence, Path(scratch, "evidence"))
        for student in STUDENTS:
            hand_in(course, student, measured)
    return course


def honest_evidence(given: Path, scratch: Path) -> Path:
    """``given`` if it was measured already; otherwise models are trained, converted and measured in ``scratch``."""
    if all((given / name).is_file() for name in NEEDED):
        return given
    from deep_learning_cases import bench
    from deep_learning_cases.release import preparation, regression

    scratch.mkdir(parents=True, exist_ok=True)
    preparation.build(scratch)
    if not (scratch / "regression.json").exists():
        regression.regress(scratch)
    bench.run(scratch)
    return scratch


def hand_in(course: Path, student: Student, measured: Path | None) -> Path:
    """Write one submission; returns its folder."""
    folder = course / "submitted" / student.name / ASSIGNMENT
    folder.mkdir(parents=True)
    for path in sorted((course / "release" / ASSIGNMENT).glob("*.ipynb")):
        notebook = json.loads(path.read_bytes())
        if student.answer is not None:
            source = json.loads((course / "source" / ASSIGNMENT / path.name).read_bytes())
            _solve(notebook, source, student.answer)
        if student.change is not None:
            student.change(notebook)
        (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    if student.evidence and measured is not None:
        _copy_evidence(measured, folder / "evidence", str(student.answer))
    handed_in = DUE + timedelta(days=student.days_late) if student.days_late else DUE - timedelta(days=2)
    (folder / "timestamp.txt").write_text(handed_in.strftime("%Y-%m-%d %H:%M:%S UTC\n"))
    return folder


def _solve(notebook: Json, source: Json, answer: str) -> None:
    """The instructor's solutions everywhere but in ``latency_stats``, which is the student's own."""
    solved = {_id(cell): cell["source"] for cell in source["cells"] if role_of(cell).get("solution")}
    for cell in notebook["cells"]:
        if _id(cell) == "latency_stats":
            cell["source"] = answer
        elif _id(cell) in solved and role_of(cell).get("solution"):
            text = solved[_id(cell)]
            lines = (text if isinstance(text, str) else "".join(text)).split("\n")
            cell["source"] = "\n".join(line for line in lines if " SOLUTION" not in line)


def _copy_evidence(measured: Path, folder: Path, answer: str) -> None:
    from deep_learning_cases import bench, release

    shutil.copytree(measured, folder, ignore=shutil.ignore_patterns("release.json", "report.html", "*.zip", "target*"))
    names: Json = {}
    exec(compile(answer, "sample answer", "exec"), names)  # the answers of this file, not a student's
    bench.summarise(folder, names["latency_stats"])
    release.write(folder, release.make(folder))


def _set_due(course: Path) -> None:
    from nbgrader.api import Gradebook

    from grading.course_config import COURSE_ID

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        gradebook.update_or_create_assignment(ASSIGNMENT, duedate=DUE.replace(tzinfo=None))
        for student in STUDENTS:
            gradebook.update_or_create_student(student.name, first_name=student.name.capitalize())


def _table(facts: Any) -> list[str]:
    what = {student.name: student.what for student in STUDENTS}
    lines = [f"{'student':9} {'points':>11}  what they did"]
    for name, (score, penalty, waits) in sorted(facts.scores.items()):
        late = f" (late: -{penalty:g})" if penalty else ""
        hand = " + written answer" if waits else ""
        lines.append(f"{name:9} {score:>5.5g} of {facts.max_score:g}  {what.get(name, '')}{late}{hand}")
    lines += [f"{name:9} not graded: {why}" for name, why in sorted(facts.failed.items())]
    return lines


def _id(cell: Json) -> str:
    return str(role_of(cell).get("grade_id", ""))


_CONFIG = """# nbgrader's configuration of the sample course.
import sys

sys.path.insert(0, {checkout!r})
from grading.course_config import configure

c = get_config()
configure(c)
c.AssignLatePenalties.plugin_class = "grading.late.TenPercentADay"
"""
