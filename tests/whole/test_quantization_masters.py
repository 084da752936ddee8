"""The notebook of the quantization lab: the reference earns everything, the blank nothing, no answer is given away."""

import ast
import contextlib
import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch")

from grading.course import build
from grading.course.masters_format import read_master
from grading.judging.items import COMPARISON_ITEMS, PER_CLASS_ITEMS
from grading.judging.judges import judged_outside
from tests.grading import quantization_evidence
from tests.grading.notebooks import errors, execute, role, solution_lines, source_of, text_alternatives

NAME = "compare_quantized"
LABS = build.LABS / "quantization"
MASTER = build.MASTERS / "quantization" / f"{NAME}.py"
CASES = Path(__file__).parents[1] / "submissions" / "per_class_accuracy"
AUTOMATIC = PER_CLASS_ITEMS | COMPARISON_ITEMS
SEED = "a seed for the tests only"


@pytest.fixture(scope="session")
def source(tmp_path_factory) -> Path:
    course = tmp_path_factory.mktemp("source")
    build.write_source("quantization", course)
    return course / "source" / "quantization"


@pytest.fixture(scope="session")
def made_up(tmp_path_factory) -> Path:
    return quantization_evidence.make(tmp_path_factory.mktemp("made-up") / "evidence")


def _cells(folder: Path) -> list[dict]:
    return json.loads((folder / f"{NAME}.ipynb").read_text())["cells"]


# What the lab holds, and what not


@pytest.mark.slow
def test_the_lab_is_built_from_its_master(built_course):
    (fresh,) = (built_course / "labs" / "quantization").glob("*.ipynb")
    assert (LABS / fresh.name).read_bytes() == fresh.read_bytes(), "run `python -m grading build`"


def test_the_items_and_points_and_their_judges():
    roles = [role(cell) for cell in _cells(LABS)]
    assert {r["grade_id"]: r["points"] for r in roles if r.get("grade")} == AUTOMATIC | {"review_answer": 4}
    assert all(judged_outside(item) for item in AUTOMATIC)
    assert not judged_outside("review_answer")


def test_the_first_cell_is_the_title():
    assert source_of(_cells(LABS)[0]).startswith("# Which int8")


def test_cells_that_measure_draw_or_judge_evidence_are_marked_and_locked():
    slow = re.compile(
        r"comparison\.compare|digits\.|plt\.subplots|picture|nothing_found|claims_record|record\[\"memory"
    )
    for cell in _cells(LABS):
        if cell["cell_type"] == "code" and not role(cell).get("solution") and slow.search(source_of(cell)):
            assert cell["metadata"].get("deep_learning_cases") == {"measures": True}, source_of(cell)
        if "deep_learning_cases" in cell["metadata"]:
            assert role(cell)["locked"]


def test_the_lab_holds_no_line_of_a_solution_and_a_stub_for_each(source):
    lab, answers = _cells(LABS), _cells(source)
    shown = {line.strip() for cell in lab for line in source_of(cell).splitlines()}
    said_anyway = {"claims = {", "for batch_size in (1, 32):"}
    assert set().union(*map(solution_lines, answers)) & shown <= said_anyway
    for blank, answer in zip(lab, answers, strict=True):
        assert blank["id"] == answer["id"]
        if role(answer).get("solution"):
            assert solution_lines(answer)
            assert re.search(r"NotImplementedError|YOUR ANSWER HERE", source_of(blank))
        else:
            assert source_of(blank) == source_of(answer)


def test_the_lab_imports_the_public_library_only():
    allowed = {
        "deep_learning_cases", "json", "pathlib", "inspect", "shutil", "numpy", "matplotlib", "IPython", "torch",
    }  # fmt: skip
    for cell in _cells(LABS):
        if cell["cell_type"] == "code":
            for node in ast.walk(ast.parse(source_of(cell))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                assert {name.split(".")[0] for name in names} <= allowed


def test_every_figure_has_labelled_axes_and_words():
    for cell in _cells(LABS):
        if "plt.subplots" in source_of(cell):
            assert all(part in source_of(cell) for part in ("show(figure", "xlabel=", "ylabel=", "in_words"))


def test_every_word_of_a_hidden_seed_or_answer_stays_out():
    text = (LABS / f"{NAME}.ipynb").read_text()
    assert not re.search(r"import grading|grading\.exercises|fixtures|BEGIN SOLUTION", text)


# The visible examples, without a kernel


def _visible(source: Path, function: str) -> dict[str, str]:
    """What each visible test says to one function: item -> message, empty for a pass."""
    import numpy as np

    space: dict = {"np": np}
    said = {}
    for cell in _cells(source):
        name = role(cell).get("grade_id")
        if name == "visible_examples":
            exec(source_of(cell), space)
        elif name == "per_class_accuracy":
            exec(function, space)
        elif name in PER_CLASS_ITEMS:
            try:
                with contextlib.redirect_stdout(None), np.errstate(all="ignore"):
                    exec(source_of(cell), space)
                said[name] = ""
            except Exception as error:
                said[name] = f"{type(error).__name__}: {error}"
    assert said.keys() == PER_CLASS_ITEMS.keys()
    return said


def test_the_reference_passes_the_visible_examples(source):
    (reference,) = [source_of(c) for c in _cells(source) if role(c).get("grade_id") == "per_class_accuracy"]
    assert set(_visible(source, reference).values()) == {""}


@pytest.mark.parametrize("case", sorted((CASES / "correct").glob("*.py")), ids=lambda case: case.stem)
def test_every_correct_style_passes_the_visible_examples(source, case):
    assert set(_visible(source, case.read_text()).values()) == {""}


@pytest.mark.parametrize("case", sorted((CASES / "mistaken").glob("*.py")), ids=lambda case: case.stem)
def test_a_mistake_fails_a_visible_example_with_one_line(source, case):
    said = [message for message in _visible(source, case.read_text()).values() if message]
    assert said
    assert all("\n" not in message for message in said)


def test_the_blank_passes_no_visible_example(source):
    (blank,) = [source_of(c) for c in _cells(LABS) if role(c).get("grade_id") == "per_class_accuracy"]
    assert all(_visible(source, blank).values())


# Grading, in the sandbox


@pytest.fixture(scope="module")
def box():
    from grading.sandbox.box import open_box
    from grading.sandbox.limits import Limits
    from grading.sandbox.wall.plan import IsolationUnavailable

    try:
        with open_box(Limits()) as opened:
            yield opened
    except IsolationUnavailable as reason:
        pytest.skip(str(reason))


def _graded(notebook: dict, evidence: Path | None, box, folder: Path) -> dict:
    from grading.class_run.one_submission import grade_submission
    from grading.course.skeleton import skeleton_of

    course = folder / "course"
    build.write_source("quantization", course)
    skeleton = skeleton_of(course / "source" / "quantization" / f"{NAME}.ipynb")
    submitted = folder / "submitted"
    submitted.mkdir()
    (submitted / f"{NAME}.ipynb").write_text(json.dumps(notebook))
    if evidence is not None:
        shutil.copytree(evidence, submitted / "evidence")
    job = {
        "assignment": "quantization",
        "student": "somebody",
        "folder": str(submitted),
        "skeletons": {NAME: skeleton},
        "seed": SEED,
    }
    return grade_submission(job, box)["notebooks"][NAME]


def _notebook(folder: Path) -> dict:
    return json.loads((folder / f"{NAME}.ipynb").read_text())


@pytest.mark.slow
def test_the_reference_earns_every_automatic_point_in_the_sandbox(source, made_up, box, tmp_path):
    graded = _graded(_notebook(source), made_up, box, tmp_path)
    assert graded["scores"] == AUTOMATIC, graded["items"]
    assert graded["stopped"] is None


@pytest.mark.slow
def test_the_blank_earns_nothing_even_beside_a_whole_record(made_up, box, tmp_path):
    evidence = Path(shutil.copytree(made_up, tmp_path / "evidence"))
    (evidence / "claims.json").unlink()
    graded = _graded(_notebook(LABS), evidence, box, tmp_path)
    assert graded["scores"] == dict.fromkeys(AUTOMATIC, 0.0), graded["items"]


@pytest.mark.slow
def test_points_belong_to_their_own_item_in_the_sandbox(source, made_up, box, tmp_path):
    notebook = _notebook(source)
    mistaken = (CASES / "mistaken" / "precision.py").read_text()
    for cell in notebook["cells"]:
        if role(cell).get("grade_id") == "per_class_accuracy":
            cell["source"] = mistaken
    evidence = Path(shutil.copytree(made_up, tmp_path / "evidence"))
    record = json.loads((evidence / "quantization.json").read_text())
    record["runs"][0]["samples_us"]["1"][0] = 1e6
    (evidence / "quantization.json").write_text(json.dumps(record))
    graded = _graded(notebook, evidence, box, tmp_path)
    by_id = {item["id"]: item for item in graded["items"]}
    assert by_id["per_class_values"]["mistake"] == "precision"
    assert {item: by_id[item]["points"] for item in AUTOMATIC} == {
        "per_class_values": 0, "per_class_empty": 0, "per_class_manners": 0,
        "comparison_record": 0, "claims_verdicts": 4, "claims_evidence": 0, "claims_scope": 2,
    }  # fmt: skip


# The notebook in a kernel, top to bottom


@pytest.fixture(scope="session")
def finished(source, tmp_path_factory) -> tuple[Path, dict]:
    """The source notebook run as a diligent student would, measuring included."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, execute(source, NAME, folder)


@pytest.mark.slow
def test_the_reference_runs_top_to_bottom_and_every_check_is_silent(finished):
    from deep_learning_cases.quantizing.comparison import claims_record
    from grading.judging.evidence import QUANTIZATION

    folder, outputs = finished
    assert {cell: errors(o, stderr=False) for cell, o in outputs.items() if errors(o, stderr=False)} == {}
    assert {item: outputs[item] for item in AUTOMATIC} == {item: [] for item in AUTOMATIC}
    items = QUANTIZATION.items_for([asdict(finding) for finding in claims_record.check(folder / "evidence")])
    assert {item.id: item.points for item in items} == COMPARISON_ITEMS
    for cell, shown in outputs.items():
        if cell.startswith("check_"):
            text = "".join(o.text for o in shown if o.output_type == "stream")
            assert text, cell
            assert "Not yet" not in text, (cell, text)


@pytest.mark.slow
def test_figures_are_shown_with_their_text_alternative(finished):
    _, outputs = finished
    texts = text_alternatives([output for shown in outputs.values() for output in shown])
    assert len(texts) == 4
    assert all(len(text) > 60 for text in texts)


@pytest.mark.slow
def test_running_the_blank_over_a_whole_record_passes_nothing(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder / "evidence", tmp_path / "evidence")
    (tmp_path / "evidence" / "claims.json").unlink()
    outputs = execute(LABS, NAME, tmp_path)
    assert {item for item in AUTOMATIC if not errors(outputs[item])} == set()
    assert not (tmp_path / "evidence" / "claims.json").exists()


def test_the_master_reads_as_a_notebook():
    assert len(read_master(MASTER).cells) > 50
