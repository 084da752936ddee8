"""One submission, start to end, in a worker: stage -> rebuild -> run all notebooks -> ask -> judge.

The worker executes and judges; it never sees the gradebook.  A job and its result are JSON-able, so they may cross a
process or a machine, and a result says all that is ever recorded: the rebuilt and executed notebooks, the points of
every automatic item with its message, the notes, flags and mistakes, and the isolation that was in force.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from grading.course import skeleton as skeletons
from grading.judging.evidence import FolderJudge
from grading.judging.flags import Flag
from grading.judging.items import ItemResult
from grading.judging.judges import FOLDER_JUDGES, FUNCTION_JUDGES, FunctionJudge, judged_outside
from grading.judging.tests_inside import INSIDE, judge_inside
from grading.judging.verdict_cells import put_message, put_verdict
from grading.sandbox.run_parts import Part
from grading.submission.rebuild import MAX_NOTEBOOK_BYTES, NotANotebookError, parse_notebook, rebuild
from grading.submission.sanitise import clean_outputs
from grading.submission.stage import read_file
from grading.submission.untouched import UNTOUCHED, is_untouched

__all__ = ["RESULT_SCHEMA", "grade_submission"]

RESULT_SCHEMA = "deep-learning-cases/submission-result/1"
EVIDENCE = "evidence"

Json = dict[str, Any]


def grade_submission(job: Json, box: Any) -> Json:
    """Grade one staged submission in ``box`` (:func:`grading.sandbox.box.open_box`).

    ``job``: {"assignment", "student", "folder" (staged, see :mod:`grading.submission.stage`), "work_folder" (the files
    a notebook finds beside it; the staged folder if absent), "skeletons", "seed" (the student's own), "inputs"
    (fingerprint of the course's hidden ones), "left_out", "digest", "only" (notebook names or None)}.  Returns the
    result described above; a fault of the submission is in the result, never raised.
    """
    started = time.monotonic()
    evidence = _Evidence(job, box)
    notebooks, flags = {}, []
    chosen = [name for name in job["skeletons"] if job.get("only") is None or name in job["only"]]
    prepared = {name: _prepare(name, job["skeletons"][name], job) for name in chosen}
    to_run = [one for one in prepared.values() if one.runs]
    # All together: every cell of every notebook has run before the first question to any of them.
    for one, run in zip(to_run, box.run_all([one.part for one in to_run]), strict=True):
        one.run = run.to_dict()
    for name, one in prepared.items():
        notebooks[name], found = one.outcome if one.outcome is not None else _judge(one, evidence)
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
        "flags": flags + evidence.flags + _wall_flags(box.isolation),
        "isolation": dict(box.isolation),
        "seconds": round(time.monotonic() - started, 3),
    }


@dataclass
class _Prepared:
    """A notebook, rebuilt, and what it will be asked; ``outcome`` is there where nothing is left to do."""

    skeleton: Json
    record: Json
    notebook: Json
    asked: dict[FunctionJudge, tuple[list[Any], list[Json]]]
    files: Path
    runs: bool = False
    run: Json = field(default_factory=lambda: _nothing_ran())
    outcome: tuple[Json, list[Json]] | None = None

    @property
    def part(self) -> Part:
        calls = [call for _, questions in self.asked.values() for call in questions]
        return Part.of(_cells(self.notebook), self.files, calls)


def _prepare(name: str, skeleton: Json, job: Json) -> _Prepared:
    path = Path(job["folder"], f"{name}.ipynb")
    record: Json = {"status": "graded", "notes": [], "items": [], "scores": {}, "stopped": None, "seconds": 0.0}
    prepared = _Prepared(skeleton, record, {}, {}, Path(job.get("work_folder") or job["folder"]))
    content = read_file(path, MAX_NOTEBOOK_BYTES)
    if content is None and (why := _why_not(path, job.get("left_out", []))) is None:
        prepared.outcome = record | {"status": "missing", "scores": dict.fromkeys(_automatic(skeleton), 0.0)}, []
        return prepared
    try:
        if content is None:
            raise NotANotebookError(f"{path.name} could not be taken over ({why}): expected a file saved by Jupyter")
        submitted = parse_notebook(content, path.name)
    except NotANotebookError as error:
        notebook, _ = rebuild(skeleton, {"cells": []})
        items = [_zero(cell, str(error)) for cell in _automatic_cells(skeleton)]
        put_verdict(notebook, items, str(error))
        scores = dict.fromkeys(_automatic(skeleton), 0.0)
        kept = {"notebook": notebook, "items": [asdict(i) for i in items], "scores": scores, "message": str(error)}
        prepared.outcome = record | {"status": "not_a_notebook"} | kept, []
        return prepared
    prepared.notebook, record["notes"] = rebuild(skeleton, submitted)
    wanted = _automatic(skeleton)
    prepared.asked = {judge: judge.ask(job["seed"]) for judge in FUNCTION_JUDGES if judge.concerns(wanted)}
    prepared.runs = skeletons.runs(skeleton)
    return prepared


def _why_not(path: Path, left_out: list[Json]) -> str | None:
    """Why a notebook that was handed in is not there to be read; None if there was none."""
    if path.is_file():
        return f"it has more than {MAX_NOTEBOOK_BYTES} bytes; clear its outputs and hand it in again"
    return next((str(entry["why"]) for entry in left_out if entry["name"] == path.name), None)


def _judge(prepared: _Prepared, evidence: "_Evidence") -> tuple[Json, list[Json]]:
    skeleton, notebook, run, record = prepared.skeleton, prepared.notebook, prepared.run, prepared.record
    wanted = _automatic(skeleton)
    if prepared.runs:
        _put_outputs(notebook, run)
    items: list[ItemResult] = []
    flags: list[Json] = []
    for judge, (questions, _) in prepared.asked.items():
        found, remarks = judge.judge(questions, run, _student_source(notebook))
        items += found
        flags += [_as_dict(flag) for flag in remarks]
    if is_untouched(skeleton, notebook):
        items += [_zero(cell, UNTOUCHED) for cell in _automatic_cells(skeleton) if _from_evidence(cell)]
    else:
        items += evidence.items(wanted)
    known = {item.id for item in items}
    for cell in notebook["cells"]:
        if skeletons.is_automatic(cell) and cell["metadata"]["nbgrader"]["grade_id"] not in known:
            items.append(judge_inside(cell, run))
            if items[-1].points and INSIDE | {"where": ""} not in flags:
                flags = [*flags, INSIDE | {"where": ""}]
    items = [_worth(item, wanted[item.id]) for item in items if item.id in wanted]
    put_verdict(notebook, items, (run["stopped"] or {}).get("message"))
    record |= {
        "notebook": notebook,
        "items": [asdict(item) for item in items],
        "scores": {item.id: item.points for item in items},
        "stopped": run["stopped"],
        "seconds": round(float(run["seconds"]), 3),
    }
    return record, flags


def _wall_flags(isolation: Json) -> list[Json]:
    """A weaker wall than this machine's best has to be seen by a person, for each submission behind it."""
    reasons = isolation.get("not_possible") or []
    weaker = isolation.get("kind") == "none" or reasons
    why = f": {'; '.join(reasons)}"[:300] if reasons else ""
    flag = Flag("weaker-wall", f"ran behind {isolation.get('kind')} alone{why}", "isolation")
    return [asdict(flag)] if weaker else []


def _student_source(notebook: Json) -> str:
    return "\n\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code" and _own(cell))


class _Evidence:
    """The evidence folder, looked at by each judge at most once for a submission, for whichever notebooks ask."""

    def __init__(self, job: Json, box: Any) -> None:
        self._folder, self._box = Path(job["folder"], EVIDENCE), box
        self._items: dict[FolderJudge, list[ItemResult]] = {}
        self.flags: list[Json] = []

    def items(self, wanted: dict[str, float]) -> list[ItemResult]:
        return [item for judge in FOLDER_JUDGES if judge.concerns(wanted) for item in self._judged(judge)]

    def _judged(self, judge: FolderJudge) -> list[ItemResult]:
        if judge not in self._items:
            self._items[judge], flags = judge.judge(self._folder, self._box)
            self.flags += [_as_dict(flag) for flag in flags]
        return self._items[judge]


def _cells(notebook: Json) -> list[Json]:
    """The code cells as the box takes them. Measuring is not repeated; what is judged outside need not run."""
    return [
        {"id": cell["id"], "source": cell["source"], "run": not _measures(cell) and not _judged_outside(cell)}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _put_outputs(notebook: Json, run: Json) -> None:
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


def _measures(cell: Json) -> bool:
    return bool(cell["metadata"].get(skeletons.NAMESPACE, {}).get("measures"))


def _judged_outside(cell: Json) -> bool:
    return skeletons.is_automatic(cell) and judged_outside(cell["metadata"]["nbgrader"]["grade_id"])


def _from_evidence(cell: Json) -> bool:
    return any(cell["metadata"]["nbgrader"]["grade_id"] in judge.items for judge in FOLDER_JUDGES)


def _own(cell: Json) -> bool:
    role = cell["metadata"].get("nbgrader") or {}
    return not role or bool(role.get("solution"))


def _automatic_cells(notebook: Json) -> list[Json]:
    return [cell for cell in notebook["cells"] if skeletons.is_automatic(cell)]


def _automatic(skeleton: Json) -> dict[str, float]:
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: float(cell["metadata"]["nbgrader"]["points"])
        for cell in _automatic_cells(skeleton)
    }


def _worth(item: ItemResult, points: float) -> ItemResult:
    """An item at the points this assignment's source gives it, which a course may have changed."""
    if item.max_points in (points, 0):
        return item
    return replace(item, points=item.points * points / item.max_points, max_points=points)


def _zero(cell: Json, message: str) -> ItemResult:
    role = cell["metadata"]["nbgrader"]
    return ItemResult(role["grade_id"], 0.0, float(role["points"]), False, message)


def _nothing_ran() -> Json:
    return {"outputs": {}, "execution_counts": {}, "answers": {}, "stopped": None, "asked": False, "seconds": 0.0}


def _as_dict(flag: Any) -> Json:
    return dict(flag) if isinstance(flag, dict) else asdict(flag)
