"""One submission, start to end, in a worker: stage -> rebuild -> run all notebooks -> ask -> judge.

The worker executes and judges; it never sees the gradebook.  A job and its result are JSON-able, so they may cross a
process or a machine, and a result says all that is ever recorded: the rebuilt and executed notebooks, the points of
every automatic item with its message, the notes, flags and mistakes, and the isolation that was in force.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grading.class_run.records import Job, NotebookResult, Result
from grading.course import skeleton as skeletons
from grading.course.skeleton import Cell, Notebook, role_of
from grading.judging.evidence import FolderJudge
from grading.judging.flags import Flag
from grading.judging.items import ItemResult
from grading.judging.judges import FOLDER_JUDGES, FUNCTION_JUDGES, FunctionJudge, judged_outside
from grading.judging.tests_inside import INSIDE, judge_inside
from grading.judging.verdict_cells import put_message, put_verdict
from grading.sandbox.run_parts import Part
from grading.submission.rebuild import MAX_NOTEBOOK_BYTES, NotANotebookError, parse_notebook, rebuild
from grading.submission.sanitise import clean_outputs
from grading.submission.stage import LeftOut, read_file
from grading.submission.untouched import UNTOUCHED, is_untouched

__all__ = ["RESULT_SCHEMA", "grade_submission"]

RESULT_SCHEMA = "deep-learning-cases/submission-result/1"
EVIDENCE = "evidence"

Json = dict[str, Any]


def grade_submission(job: Job, box: Any) -> Result:
    """Grade one staged submission in ``box`` (:func:`grading.sandbox.box.open_box`).

    A fault of the submission is in the result, never raised.
    """
    started = time.monotonic()
    evidence = _Evidence(job, box)
    notebooks: dict[str, NotebookResult] = {}
    flags: list[Flag] = []
    only = job.get("only")
    chosen = [name for name in job["skeletons"] if only is None or name in only]
    prepared = {name: _prepare(name, job["skeletons"][name], job) for name in chosen}
    to_run = [one for one in prepared.values() if one.runs]
    # All together: every cell of every notebook has run before the first question to any of them.
    for one, run in zip(to_run, box.run_all([one.part for one in to_run]), strict=True):
        one.run = run.to_dict()
    for name, one in prepared.items():
        notebooks[name], found = (one.record, []) if one.settled else _judge(one, evidence)
        flags += found
    return {
        "schema": RESULT_SCHEMA,
        "assignment": job["assignment"],
        "student": job["student"],
        "digest": job.get("digest", ""),
        "inputs": job.get("inputs", ""),
        "status": "graded",
        "notebooks": notebooks,
        "left_out": job.get("left_out", []),
        "flags": [flag.record() for flag in flags + evidence.flags + _wall_flags(box.isolation)],
        "isolation": dict(box.isolation),
        "seconds": round(time.monotonic() - started, 3),
    }


@dataclass
class _Prepared:
    """A notebook, rebuilt, and what it will be asked; ``settled`` where nothing is left to do."""

    skeleton: Notebook
    record: NotebookResult
    files: Path
    notebook: Notebook = field(default_factory=dict)
    asked: dict[FunctionJudge, tuple[list[Any], list[Any]]] = field(default_factory=dict)
    runs: bool = False
    run: Json = field(default_factory=lambda: _nothing_ran())
    settled: bool = False

    @property
    def part(self) -> Part:
        calls = [call for _, questions in self.asked.values() for call in questions]
        return Part.of(_cells(self.notebook), self.files, calls)


def _prepare(name: str, skeleton: Notebook, job: Job) -> _Prepared:
    path = Path(job["folder"], f"{name}.ipynb")
    nothing = dict.fromkeys(_automatic(skeleton), 0.0)
    record = NotebookResult(status="graded", notes=[], items=[], scores=nothing, stopped=None, seconds=0.0)
    prepared = _Prepared(skeleton, record, Path(job.get("work_folder") or job["folder"]))
    content = read_file(path, MAX_NOTEBOOK_BYTES)
    if content is None and (why := _why_not(path, job.get("left_out", []))) is None:
        record["status"], prepared.settled = "missing", True
        return prepared
    try:
        if content is None:
            raise NotANotebookError(f"{path.name} could not be taken over ({why}): expected a file saved by Jupyter")
        submitted = parse_notebook(content, path.name)
    except NotANotebookError as error:
        notebook, _ = rebuild(skeleton, {"cells": []})
        items = [_zero(cell, str(error)) for cell in _automatic_cells(skeleton)]
        put_verdict(notebook, items, str(error))
        record |= {"status": "not_a_notebook", "notebook": notebook, "message": str(error)}
        record["items"], prepared.settled = [item.record() for item in items], True
        return prepared
    prepared.notebook, record["notes"] = rebuild(skeleton, submitted)
    wanted = _automatic(skeleton)
    prepared.asked = {judge: judge.ask(job["seed"]) for judge in FUNCTION_JUDGES if judge.concerns(wanted)}
    prepared.runs = skeletons.runs(skeleton)
    return prepared


def _why_not(path: Path, left_out: list[LeftOut]) -> str | None:
    """Why a notebook that was handed in is not there to be read; None if there was none."""
    if path.is_file():
        return f"it has more than {MAX_NOTEBOOK_BYTES} bytes; clear its outputs and hand it in again"
    return next((entry["why"] for entry in left_out if entry["name"] == path.name), None)


def _judge(prepared: _Prepared, evidence: "_Evidence") -> tuple[NotebookResult, list[Flag]]:
    skeleton, notebook, run, record = prepared.skeleton, prepared.notebook, prepared.run, prepared.record
    wanted = _automatic(skeleton)
    if prepared.runs:
        _put_outputs(notebook, run)
    items: list[ItemResult] = []
    flags: list[Flag] = []
    for judge, (questions, _) in prepared.asked.items():
        found, remarks = judge.judge(questions, run, _student_source(notebook))
        items += found
        flags += remarks
    if is_untouched(skeleton, notebook):
        items += [_zero(cell, UNTOUCHED) for cell in _automatic_cells(skeleton) if _from_evidence(cell)]
    else:
        items += evidence.items(wanted)
    known = {item.id for item in items}
    for cell in notebook["cells"]:
        if skeletons.is_automatic(cell) and role_of(cell)["grade_id"] not in known:
            items.append(judge_inside(cell, run))
            if items[-1].points and INSIDE not in flags:
                flags.append(INSIDE)
    items = [_worth(item, wanted[item.id]) for item in items if item.id in wanted]
    put_verdict(notebook, items, (run["stopped"] or {}).get("message"))
    record |= {
        "notebook": notebook,
        "items": [item.record() for item in items],
        "scores": {item.id: item.points for item in items},
        "stopped": run["stopped"],
        "seconds": round(float(run["seconds"]), 3),
    }
    return record, flags


def _wall_flags(isolation: Json) -> list[Flag]:
    """A weaker wall than this machine's best has to be seen by a person, for each submission behind it."""
    reasons = isolation.get("not_possible") or []
    why = f": {'; '.join(reasons)}"[:300] if reasons else ""
    flag = Flag("weaker-wall", f"ran behind {isolation.get('kind')} alone{why}", "isolation")
    return [flag] if isolation.get("kind") == "none" or reasons else []


def _student_source(notebook: Notebook) -> str:
    return "\n\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code" and _own(cell))


class _Evidence:
    """The evidence folder, looked at by each judge at most once for a submission, for whichever notebooks ask."""

    def __init__(self, job: Job, box: Any) -> None:
        self._folder, self._box = Path(job["folder"], EVIDENCE), box
        self._items: dict[FolderJudge, list[ItemResult]] = {}
        self.flags: list[Flag] = []

    def items(self, wanted: dict[str, float]) -> list[ItemResult]:
        return [item for judge in FOLDER_JUDGES if judge.concerns(wanted) for item in self._judged(judge)]

    def _judged(self, judge: FolderJudge) -> list[ItemResult]:
        if judge not in self._items:
            self._items[judge], flags = judge.judge(self._folder, self._box)
            self.flags += flags
        return self._items[judge]


def _cells(notebook: Notebook) -> list[Json]:
    """The code cells as the box takes them. Measuring is not repeated; what is judged outside need not run."""
    return [
        {"id": cell["id"], "source": cell["source"], "run": not _measures(cell) and not _judged_outside(cell)}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _put_outputs(notebook: Notebook, run: Json) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["outputs"] = clean_outputs(run["outputs"].get(cell["id"], []))
        count = run["execution_counts"].get(cell["id"])
        cell["execution_count"] = count if isinstance(count, int) else None
        if _measures(cell) and not _judged_outside(cell):
            put_message(cell, "Not run again in grading: the evidence that was handed in is what counts.")
    stopped = run["stopped"]
    where = [cell for cell in notebook["cells"] if stopped and cell["id"] == stopped.get("cell")]
    if where and where[0]["cell_type"] == "code":
        put_message(where[0], stopped["message"])


def _measures(cell: Cell) -> bool:
    return bool(cell["metadata"].get(skeletons.NAMESPACE, {}).get("measures"))


def _judged_outside(cell: Cell) -> bool:
    return skeletons.is_automatic(cell) and judged_outside(role_of(cell)["grade_id"])


def _from_evidence(cell: Cell) -> bool:
    return any(role_of(cell)["grade_id"] in judge.items for judge in FOLDER_JUDGES)


def _own(cell: Cell) -> bool:
    role = role_of(cell)
    return not role or bool(role.get("solution"))


def _automatic_cells(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if skeletons.is_automatic(cell)]


def _automatic(skeleton: Notebook) -> dict[str, float]:
    return {role_of(cell)["grade_id"]: float(role_of(cell)["points"]) for cell in _automatic_cells(skeleton)}


def _worth(item: ItemResult, points: float) -> ItemResult:
    """An item at the points this assignment's source gives it, which a course may have changed."""
    if item.max_points in (points, 0):
        return item
    return replace(item, points=item.points * points / item.max_points, max_points=points)


def _zero(cell: Cell, message: str) -> ItemResult:
    role = role_of(cell)
    return ItemResult(role["grade_id"], 0.0, float(role["points"]), False, message)


def _nothing_ran() -> Json:
    return {"outputs": {}, "execution_counts": {}, "answers": {}, "stopped": None, "asked": False, "seconds": 0.0}
