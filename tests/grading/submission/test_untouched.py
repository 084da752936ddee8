"""A notebook without a single answer earns nothing, whoever measured the evidence beside it."""

import copy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grading.class_run.one_submission import grade_submission
from grading.course.skeleton import skeleton_of
from grading.judging.evidence import RELEASE
from grading.judging.items import BENCHMARK_ITEMS, ItemResult
from grading.judging.judges import FOLDER_JUDGES
from grading.submission.rebuild import rebuild
from grading.submission.untouched import is_untouched
from tests.grading.classroom import FakeBox, cell

Json = dict[str, Any]


@pytest.fixture
def skeleton(tmp_path: Path) -> Json:
    cells = [
        cell("answer", "### BEGIN SOLUTION\nx = 1\n### END SOLUTION", solution=True),
        *(cell(name, f"nothing_found({name!r})", points) for name, points in BENCHMARK_ITEMS.items()),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "step.ipynb")
    return skeleton_of(tmp_path / "step.ipynb")


def submitted(skeleton: Json, answer: str | None = None, own: str | None = None) -> Json:
    notebook = copy.deepcopy(skeleton)
    if answer is not None:
        notebook["cells"][0]["source"] = answer
    if own is not None:
        notebook["cells"].append(dict(new_code_cell(own)))
    for one in notebook["cells"]:
        one |= {"grade_id": one["metadata"].get("nbgrader", {}).get("grade_id"), "points": None, "tags": False}
    return notebook


@pytest.mark.parametrize(
    ("change", "untouched"),
    [
        ({}, True),
        ({"answer": "# my idea\n# YOUR CODE HERE\n\nraise NotImplementedError()\n"}, True),
        ({"own": "# a note to myself"}, True),
        ({"answer": "x = 1"}, False),
        ({"answer": "(" * 100_000}, False),
        ({"own": "x = 1"}, False),
    ],
    ids=["as released", "comment", "comment of one's own", "answer", "no Python", "answer in a cell of one's own"],
)
def test_what_counts_as_an_answer(skeleton: Json, change: Json, untouched: bool) -> None:
    notebook, _ = rebuild(skeleton, submitted(skeleton, **change))
    assert is_untouched(skeleton, notebook) is untouched


def test_a_notebook_that_asks_for_nothing_is_never_untouched(skeleton: Json) -> None:
    skeleton["cells"] = skeleton["cells"][1:]
    assert not is_untouched(skeleton, skeleton)


@pytest.mark.parametrize(("answer", "points"), [(None, 0.0), ("x = 1", 8.0)])
def test_copied_evidence_earns_nothing_without_an_answer(
    skeleton: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None, points: float
) -> None:
    whole = [ItemResult.of(item.id, 1, "fine") for item in RELEASE.unreadable("") if item.id in BENCHMARK_ITEMS]
    monkeypatch.setattr(type(FOLDER_JUDGES[0]), "judge", lambda *_arguments: (whole, []))
    folder = tmp_path / "staged"
    folder.mkdir()
    notebook = submitted(skeleton, answer)
    (folder / "step.ipynb").write_text(nbformat.writes(nbformat.from_dict(notebook | {"metadata": {}})))
    job = {"assignment": "a", "student": "s", "folder": str(folder), "skeletons": {"step": skeleton}, "seed": "0" * 16}
    items = grade_submission(job, FakeBox())["notebooks"]["step"]["items"]
    assert sum(item["points"] for item in items) == points
    assert all("answer" in item["message"] for item in items) is (points == 0)
