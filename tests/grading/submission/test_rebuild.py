"""Whatever a student does to the notebook, its graded cells are the instructor's, and the change is named."""

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.course.skeleton import grade_cells, skeleton_of
from grading.submission.rebuild import NotANotebookError, parse_notebook, rebuild
from tests.grading.classroom import load_case, source_notebooks

NOTEBOOK_ATTACKS = [
    "deleted_tests",
    "duplicated_grade_cell",
    "points_raised_and_unlocked",
    "renamed_grade_ids",
    "skip_execution_tag",
    "tests_turned_to_markdown",
]


def test_a_picture_goes_with_its_text_and_nowhere_else(skeleton: dict[str, Any]) -> None:
    picture = {"image/png": base64.b64encode(b"\x89PNG\r\n\x1a\n...").decode()}
    notebook = submitted(skeleton)
    for cell in notebook.cells:
        cell["attachments"] = {"a.png": picture, "b.svg": {"image/svg+xml": "<svg/>"}, "c.png": {"image/png": "AAAA"}}
    result = rebuild(skeleton, parse_notebook(json.dumps(notebook).encode(), "stats"))[0]
    having = {cell["id"]: cell["attachments"] for cell in result["cells"] if "attachments" in cell}
    assert having == {"scope": {"a.png": picture}}, "not into code, and not over the instructor's own text"


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    import nbformat

    path = tmp_path_factory.mktemp("source") / "stats.ipynb"
    nbformat.write(source_notebooks()["stats"], path)
    return skeleton_of(path)


def submitted(skeleton: dict[str, Any]) -> Any:
    import nbformat

    return nbformat.from_dict(copy.deepcopy(skeleton))


def rebuilt(skeleton: dict[str, Any], notebook: Any) -> tuple[dict[str, Any], list[dict[str, str]]]:
    return rebuild(skeleton, parse_notebook(json.dumps(notebook).encode(), "stats.ipynb"))


def graded(notebook: dict[str, Any]) -> list[Any]:
    """What decides a grade: names, points, roles, types, order and, for locked cells, sources."""
    cells = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader")]
    return [
        (
            cell["id"],
            cell["cell_type"],
            cell["metadata"],
            None if cell["metadata"]["nbgrader"]["solution"] else cell["source"],
        )
        for cell in cells
    ]


def test_the_skeleton_has_no_solution_but_the_points(skeleton: dict[str, Any]) -> None:
    assert "YOUR CODE HERE" in next(c["source"] for c in skeleton["cells"] if c["id"] == "latency_stats")
    assert sum(grade_cells(skeleton).values()) == 12


def test_an_untouched_notebook_comes_back_without_notes(skeleton: dict[str, Any]) -> None:
    notebook, notes = rebuilt(skeleton, submitted(skeleton))
    assert notes == []
    assert [c["source"] for c in notebook["cells"]] == [c["source"] for c in skeleton["cells"]]


@pytest.mark.parametrize("attack", NOTEBOOK_ATTACKS)
def test_attacks_on_the_notebook_change_no_graded_cell(skeleton: dict[str, Any], attack: str) -> None:
    notebook = submitted(skeleton)
    load_case(f"notebook/{attack}.py").mutate(notebook)
    result, notes = rebuilt(skeleton, notebook)
    assert graded(result) == graded(skeleton)
    assert notes, "the change must be named"
    assert not any("tags" in cell["metadata"] for cell in result["cells"])


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        ("deleted_tests", "deleted"),
        ("duplicated_grade_cell", "duplicated"),
        ("points_raised_and_unlocked", "repointed"),
        ("renamed_grade_ids", "renamed"),
        ("skip_execution_tag", "tagged"),
        ("tests_turned_to_markdown", "retyped"),
    ],
)
def test_the_note_says_what_was_done(skeleton: dict[str, Any], attack: str, kind: str) -> None:
    notebook = submitted(skeleton)
    load_case(f"notebook/{attack}.py").mutate(notebook)
    assert kind in {note["kind"] for note in rebuilt(skeleton, notebook)[1]}


def test_the_answer_and_own_cells_stay_in_place(skeleton: dict[str, Any]) -> None:
    import nbformat

    notebook = submitted(skeleton)
    position = next(i for i, c in enumerate(notebook.cells) if c.id == "latency_stats")
    notebook.cells[position].source = "def latency_stats(s, b): return helper(s)"
    notebook.cells.insert(position, nbformat.v4.new_code_cell("def helper(s): return {}", metadata={"tags": ["x"]}))
    result, notes = rebuilt(skeleton, notebook)
    assert notes == []
    sources = [cell["source"] for cell in result["cells"]]
    assert sources.index("def helper(s): return {}") == sources.index("def latency_stats(s, b): return helper(s)") - 1
    assert result["cells"][sources.index("def helper(s): return {}")]["metadata"] == {}


def test_a_split_answer_still_runs_whole(skeleton: dict[str, Any]) -> None:
    """Splitting a cell in Jupyter leaves two cells of one name; nbgrader then fails or keeps one of them."""
    notebook = submitted(skeleton)
    position = next(i for i, c in enumerate(notebook.cells) if c.id == "latency_stats")
    second = copy.deepcopy(notebook.cells[position])
    notebook.cells[position].source, second.source, second["id"] = "A = 1", "def latency_stats(s, b): return A", "half"
    notebook.cells.insert(position + 1, second)
    result, notes = rebuilt(skeleton, notebook)
    sources = [cell["source"] for cell in result["cells"]]
    assert sources.index("A = 1") < sources.index("def latency_stats(s, b): return A")
    assert [note["kind"] for note in notes] == ["duplicated"]


def test_a_renamed_answer_is_found_by_its_place(skeleton: dict[str, Any]) -> None:
    notebook = submitted(skeleton)
    answer = next(c for c in notebook.cells if c.id == "latency_stats")
    answer.metadata["nbgrader"]["grade_id"] = "mine"
    answer.source = "def latency_stats(s, b): return 1"
    result, notes = rebuilt(skeleton, notebook)
    assert next(c for c in result["cells"] if c["id"] == "latency_stats")["source"] == answer.source
    assert [note["kind"] for note in notes] == ["renamed"]


def test_a_changed_provided_cell_runs_after_the_provided_one(skeleton: dict[str, Any]) -> None:
    notebook = submitted(skeleton)
    next(c for c in notebook.cells if c.id == "provided").source = "unit = 'ms'"
    result, notes = rebuilt(skeleton, notebook)
    sources = [cell["source"] for cell in result["cells"]]
    assert sources.index("unit = 'ms'") == sources.index("unit = 'us'") + 1
    assert [note["kind"] for note in notes] == ["edited"]


def test_raw_cells_become_text_and_outputs_vanish(skeleton: dict[str, Any]) -> None:
    import nbformat

    notebook = submitted(skeleton)
    notebook.cells.append(nbformat.v4.new_raw_cell("<script>1</script>", metadata={"raw_mimetype": "text/html"}))
    notebook.cells.append(
        nbformat.v4.new_code_cell("1", outputs=[{"output_type": "stream", "name": "stdout", "text": "forged"}])
    )
    result, _ = rebuilt(skeleton, notebook)
    assert {cell["cell_type"] for cell in result["cells"]} <= {"code", "markdown"}
    assert all(cell["outputs"] == [] for cell in result["cells"] if cell["cell_type"] == "code")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_shuffle_deletion_or_copy_changes_a_graded_cell(skeleton: dict[str, Any], data: st.DataObject) -> None:
    notebook = submitted(skeleton)
    cells = data.draw(st.lists(st.sampled_from(notebook.cells), max_size=20))
    notebook["cells"] = [copy.deepcopy(cell) for cell in cells]
    for cell in notebook["cells"]:
        cell["source"] = data.draw(st.sampled_from([cell["source"], "pass", "x = 1", ""]))
        cell["cell_type"] = data.draw(st.sampled_from(["code", "markdown", "raw"]))
        role = cell["metadata"].get("nbgrader")
        if role:
            role["points"] = data.draw(st.sampled_from([1000, -1, None, "NaN", [1]]))
            role["grade_id"] = data.draw(st.sampled_from([role["grade_id"], "latency_stats", "stats_p50", "new", 7]))
    result, _ = rebuilt(skeleton, notebook)
    assert graded(result) == graded(skeleton)
    ids = [cell["id"] for cell in result["cells"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff this is not a notebook",
        b"[]",
        b"{}",
        b"3",
        b'{"cells": {}}',
        b'{"cells": [3]}',
        b'{"cells": [{"cell_type": "widget"}]}',
        b'{"cells": [{"cell_type": "code", "source": {"a": 1}}]}',
        b"[" * 200_000,
        b'{"cells": [' + b",".join([b'{"cell_type": "code", "source": ""}'] * 1001) + b"]}",
        b'{"cells": [{"cell_type": "code", "source": "' + b"x" * 1_100_000 + b'"}]}',
        b'{"worksheets": [3]}',
        b'{"cells": ' + b"9" * 5000 + b"}",
    ],
    ids=range(13),
)
def test_what_is_not_a_notebook_is_named_in_one_line(content: bytes) -> None:
    with pytest.raises(NotANotebookError, match="is not a notebook") as caught:
        parse_notebook(content, "stats.ipynb")
    assert "\n" not in str(caught.value)


def test_a_notebook_of_the_third_format_is_read() -> None:
    old = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [
            {"cells": [{"cell_type": "code", "input": "x = 1", "outputs": [], "language": "python", "metadata": {}}]}
        ],
    }
    assert parse_notebook(json.dumps(old).encode(), "old.ipynb")["cells"][0]["source"] == "x = 1"
