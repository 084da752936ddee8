"""The notebooks themselves: the reference earns everything, the blank nothing, and the labs give nothing away."""

import ast
import contextlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from grading.course import build
from grading.judging.items import MAX_POINTS, RELEASE_ITEMS, STATS_ITEMS, STEP7_ITEMS
from tests.grading.notebooks import errors, execute, role, solution_lines, source_of, text_alternatives

CASES = Path(__file__).parents[1] / "submissions" / "latency_stats"
NOTEBOOKS = ["step1_to_6_prepare", "step7_latency_stats", "step8_release"]
STEP7 = "step7_latency_stats"


@pytest.fixture(scope="session")
def source(tmp_path_factory) -> Path:
    course = tmp_path_factory.mktemp("source")
    build.write_source("release", course)
    return course / "source" / "release"


def _notebook(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.ipynb").read_text())


LABS = build.LABS / "release"


# What the labs hold, and what not


def test_the_items_and_points_are_those_of_the_course():
    found = {}
    for name in NOTEBOOKS:
        roles = [role(cell) for cell in _notebook(LABS, name)["cells"]]
        found[name] = {role["grade_id"]: role["points"] for role in roles if role.get("grade")}
    assert found == {
        "step1_to_6_prepare": {},
        "step7_latency_stats": STEP7_ITEMS,
        "step8_release": RELEASE_ITEMS | {"release_scope": 3},
    }
    assert sum(MAX_POINTS.values()) + 3 == 28


def test_only_the_preparation_is_left_out_of_graded_runs():
    marks = {name: _notebook(LABS, name)["metadata"].get("deep_learning_cases") for name in NOTEBOOKS}
    assert marks == {"step1_to_6_prepare": {"graded_run": False}, "step7_latency_stats": None, "step8_release": None}


def test_cells_that_measure_or_judge_the_evidence_are_marked_and_locked():
    slow = re.compile(
        r"bench\.(run|summarise)|release\.(collect|write|check)|report\.|pack\.|nothing_found|plt\.|regress\(|build\("
    )
    for name in NOTEBOOKS:
        for cell in _notebook(LABS, name)["cells"]:
            if cell["cell_type"] == "code" and name != "step1_to_6_prepare" and slow.search(source_of(cell)):
                assert cell["metadata"].get("deep_learning_cases") == {"measures": True}, source_of(cell)
            if "deep_learning_cases" in cell["metadata"]:
                assert role(cell)["locked"], source_of(cell)


def test_labs_hold_no_output_no_version_and_no_clock():
    for name in NOTEBOOKS:
        notebook = _notebook(LABS, name)
        assert notebook["metadata"]["kernelspec"] == {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
        assert notebook["metadata"]["language_info"] == {"name": "python"}
        for cell in notebook["cells"]:
            assert cell.get("outputs", []) == []
            assert cell.get("execution_count") is None


def test_labs_hold_no_line_of_a_solution(source):
    for name in NOTEBOOKS:
        lab = (LABS / f"{name}.ipynb").read_text()
        for marker in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN", "grading.", "import grading", "latency_summary"):
            assert marker not in lab, (name, marker)
        assert _leaks(_notebook(LABS, name), _notebook(source, name)) == set()


def test_a_solution_line_left_in_a_lab_would_be_found(source):
    lab, answers = _notebook(LABS, STEP7), _notebook(source, STEP7)
    lab["cells"][-1]["source"] = ["Hint:\n", '"p95_us": samples[math.ceil(0.95 * n) - 1],\n']
    assert _leaks(lab, answers) == {'"p95_us": samples[math.ceil(0.95 * n) - 1],'}


def test_every_solution_cell_has_a_solution_and_every_lab_cell_a_stub(source):
    stubs = ("# YOUR CODE HERE", "raise NotImplementedError()", "YOUR ANSWER HERE")
    for name in NOTEBOOKS:
        for lab, answer in zip(_notebook(LABS, name)["cells"], _notebook(source, name)["cells"], strict=True):
            assert lab["id"] == answer["id"]
            if role(answer).get("solution"):
                assert solution_lines(answer), answer["id"]
                assert any(stub in source_of(lab) for stub in stubs), lab["id"]
            else:
                assert source_of(lab) == source_of(answer)


def _leaks(lab: dict, answers: dict) -> set[str]:
    """Lines of solutions that stand in the lab; closing brackets and the like stand everywhere and say nothing."""
    lines = {line.strip() for cell in lab["cells"] for line in source_of(cell).splitlines()}
    secret = set().union(*(solution_lines(cell) for cell in answers["cells"]))
    return {line for line in secret & lines if len(line) > 6}


def test_labs_import_only_the_public_library():
    allowed = {"deep_learning_cases", "json", "math", "os", "pathlib", "inspect", "numpy", "matplotlib", "IPython"}
    for name in NOTEBOOKS:
        for cell in _notebook(LABS, name)["cells"]:
            if cell["cell_type"] != "code":
                continue
            for node in ast.walk(ast.parse(source_of(cell))):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    modules = [node.module]
                    assert not any(alias.name.startswith("_") for alias in node.names)
                assert {module.split(".")[0] for module in modules} <= allowed, (name, modules)


def test_every_figure_has_labelled_axes_and_its_text_alternative():
    for name in NOTEBOOKS:
        for cell in _notebook(LABS, name)["cells"]:
            text = source_of(cell)
            if "plt.subplots" in text:
                assert "show(figure" in text, (name, text)
                assert 'axis("off")' in text or ("xlabel=" in text and "ylabel" in text), (name, text)


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ({}, "Run step1_to_6_prepare.ipynb, then"),
        ({"regression.json": {"loss_pp": 0}}, "Run step1_to_6_prepare.ipynb, then"),
        ({"regression.json": {"loss_pp": 0}, "benchmark.json": {"summary": {}}}, "Open step7_latency_stats.ipynb"),
        ({"regression.json": {"loss_pp": 0}, "benchmark.json": {"summary": {"int8": {}}}}, ""),
    ],
)
def test_step_8_says_first_what_is_missing_and_what_to_do(evidence, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "evidence").mkdir()
    for name, record in evidence.items():
        (tmp_path / "evidence" / name).write_text(json.dumps(record))
    monkeypatch.chdir(tmp_path)
    setup = next(c for c in _notebook(LABS, "step8_release")["cells"] if role(c).get("grade_id") == "setup_step8")
    exec(source_of(setup), {})
    out = capsys.readouterr().out
    assert told in out
    assert out.startswith("STOP: ") == bool(told)


# The visible examples, without a kernel


def _visible(source_folder: Path, function: str) -> dict[str, str]:
    """What each visible test of latency_stats says to one function: item -> message, empty for a pass."""
    space: dict = {}
    said = {}
    for cell in _notebook(source_folder, STEP7)["cells"]:
        name = role(cell).get("grade_id")
        if name in ("setup_step7", "visible_examples"):
            exec(source_of(cell), space)
        elif name == "latency_stats":
            with contextlib.suppress(SyntaxError):  # the cell fails, and the tests find no function
                exec(function, space)
        elif name in STATS_ITEMS:
            try:
                exec(source_of(cell), space)
                said[name] = ""
            except Exception as error:
                said[name] = f"{type(error).__name__}: {error}"
    assert sorted(said) == sorted(STATS_ITEMS)
    return said


@pytest.mark.parametrize("case", sorted((CASES / "correct").glob("*.py")), ids=lambda case: case.stem)
def test_every_correct_style_passes_the_visible_examples(source, case):
    assert _visible(source, case.read_text()) == dict.fromkeys(STATS_ITEMS, "")


def test_the_reference_passes_the_visible_examples(source):
    reference = next(
        source_of(c) for c in _notebook(source, STEP7)["cells"] if role(c).get("grade_id") == "latency_stats"
    )
    assert _visible(source, reference) == dict.fromkeys(STATS_ITEMS, "")


@pytest.mark.parametrize("case", sorted((CASES / "mistaken").glob("*.py")), ids=lambda case: case.stem)
def test_a_mistake_fails_a_visible_example_with_one_line(source, case):
    said = _visible(source, case.read_text())
    failures = [message for message in said.values() if message]
    assert failures, said
    assert all("\n" not in message for message in failures if message.startswith("AssertionError"))


def test_the_blank_passes_no_visible_example():
    for blank in (_blank(), "def latency_stats(samples_us, batch_size):\n    return None", "latency_stats = None"):
        said = _visible(LABS, blank)
        assert all(said.values()), said


def _blank() -> str:
    return next(source_of(c) for c in _notebook(LABS, STEP7)["cells"] if role(c).get("grade_id") == "latency_stats")


def test_the_examples_hold_for_the_definitions_and_not_only_for_our_reference(source):
    """NumPy's inverted_cdf is the nearest rank; its median is the median."""
    text = "\n".join(source_of(c) for c in _notebook(source, STEP7)["cells"] if role(c).get("grade_id") in STATS_ITEMS)
    tree = ast.parse(text)
    named = {
        ast.unparse(node.targets[0]): ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    expected = [call for call in calls if ast.unparse(call.func) == "expect"]
    assert len(expected) > 10
    for call in expected:
        key, want, samples, *rest = call.args
        written = ast.unparse(samples)
        samples_us = eval(named.get(written, written), {"np": np, "kind": list})
        batch = ast.literal_eval(rest[0]) if rest else 1
        truth = {
            "n": len(samples_us),
            "p50_us": np.median(samples_us),
            "p95_us": np.quantile(samples_us, 0.95, method="inverted_cdf"),
            "images_per_second": batch * len(samples_us) / (sum(samples_us) / 1e6),
        }
        assert ast.literal_eval(want) == pytest.approx(truth[ast.literal_eval(key)], rel=1e-12), ast.unparse(call)


# The notebooks in a kernel, top to bottom


def _execute(notebooks: Path, folder: Path, names: list[str] = NOTEBOOKS) -> dict[str, dict[str, list]]:
    """Run the notebooks in ``folder`` one after the other, past errors; {notebook: {cell id: outputs}}."""
    return {name: execute(notebooks, name, folder) for name in names}


@pytest.fixture(scope="session")
def finished(source, tmp_path_factory) -> tuple[Path, dict]:
    """The three source notebooks run in one folder as a diligent student would; the folder and all outputs."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, _execute(source, folder)


@pytest.mark.slow
def test_the_reference_runs_top_to_bottom_and_every_check_is_silent(finished):
    folder, outputs = finished
    problems = {(name, cell): errors(o) for name, cells in outputs.items() for cell, o in cells.items() if errors(o)}
    assert problems == {}
    code = "".join(o.text for o in outputs[STEP7]["read_the_timer"])
    assert code.index("start = clock()") < code.index("timed(x)") < code.index("stop = clock()"), "the timer to read"
    for name, items in (("step7_latency_stats", STEP7_ITEMS), ("step8_release", RELEASE_ITEMS)):
        assert {item: outputs[name][item] for item in items} == {item: [] for item in items}, (
            "a passing test says nothing"
        )
    assert {path.name for path in (folder / "evidence").iterdir()} >= {
        "data.npz", "model_fp32.onnx", "model_int8.onnx", "model_fp32.npz",
        "regression.json", "benchmark.json", "release.json", "report.html",
    }  # fmt: skip


@pytest.mark.slow
def test_the_reference_answers_to_questions_on_the_way_are_accepted(finished):
    _, outputs = finished
    checks = {cell: o for cells in outputs.values() for cell, o in cells.items() if cell.startswith("check_")}
    assert len(checks) == 6
    for cell, shown in checks.items():
        text = "".join(o.text for o in shown)
        assert text, cell
        assert not text.startswith(("Not yet", "Think again")), (cell, text)


@pytest.mark.slow
def test_figures_are_shown_with_their_text_alternative(finished):
    _, outputs = finished
    shown = [output for cells in outputs.values() for outputs in cells.values() for output in outputs]
    assert len(text_alternatives(shown)) >= 6
    assert all(len(text) > 20 for text in text_alternatives(shown))


@pytest.mark.slow
def test_running_again_keeps_the_record_and_still_passes(finished, source):
    folder, _ = finished
    before = (folder / "evidence" / "benchmark.json").read_bytes()
    outputs = _execute(source, folder)
    assert (folder / "evidence" / "benchmark.json").read_bytes() == before
    assert all(
        not errors(outputs[name][item]) for name in NOTEBOOKS[1:] for item in outputs[name] if item in MAX_POINTS
    )


@pytest.mark.slow
def test_the_blank_earns_nothing_even_where_everything_was_measured(finished, tmp_path):
    """Locked cells run whoever presses Run All; without an answer the evidence stays unfinished."""
    folder, _ = finished
    shutil.copytree(folder / "evidence", tmp_path / "evidence")
    record = json.loads((tmp_path / "evidence" / "benchmark.json").read_text())
    (tmp_path / "evidence" / "benchmark.json").write_text(json.dumps(record | {"summary": {}}))
    (tmp_path / "evidence" / "release.json").unlink()
    outputs = _execute(LABS, tmp_path, NOTEBOOKS[1:])
    graded = {item: errors(o) for cells in outputs.values() for item, o in cells.items() if item in MAX_POINTS}
    assert sorted(graded) == sorted(MAX_POINTS)
    assert [item for item, errors in graded.items() if not errors] == []
    assert not (tmp_path / "evidence" / "release.json").exists()


@pytest.mark.slow
def test_a_notebook_without_evidence_says_what_to_run_first(tmp_path):
    outputs = _execute(LABS, tmp_path, NOTEBOOKS[1:])
    assert "step1_to_6_prepare.ipynb" in outputs["step7_latency_stats"]["setup_step7"][0].text
    assert "step1_to_6_prepare.ipynb" in outputs["step8_release"]["setup_step8"][0].text
    graded = {item: errors(o) for cells in outputs.values() for item, o in cells.items() if item in MAX_POINTS}
    assert all(graded.values())


@pytest.mark.slow
def test_a_model_converted_again_is_found_by_the_visible_check(finished, source, tmp_path):
    folder, _ = finished
    shutil.copytree(folder / "evidence", tmp_path / "evidence")
    model = tmp_path / "evidence" / "model_int8.onnx"
    model.write_bytes(model.read_bytes() + b"\0")
    outputs = _execute(source, tmp_path, [STEP7])
    assert errors(outputs[STEP7]["benchmark_linkage"])
    assert not errors(outputs[STEP7]["stats_p95"])


@pytest.mark.slow
def test_the_validate_button_passes_the_reference_and_names_what_a_blank_lacks(finished, source, tmp_path, monkeypatch):
    from nbgrader.validator import Validator

    monkeypatch.setenv("PYTHONPATH", str(build.COURSE.parent))
    folder, _ = finished
    shutil.copytree(folder / "evidence", tmp_path / "evidence")
    for notebooks, failing in ((source, set()), (LABS, set(STATS_ITEMS))):
        shutil.copy(notebooks / f"{STEP7}.ipynb", tmp_path)
        said = Validator().validate(str(tmp_path / f"{STEP7}.ipynb"))
        failed = {cell["source"]: cell["raw_error"][-500:] for cell in said.pop("failed", [])}
        cells = {
            source_of(cell).strip() for cell in _notebook(LABS, STEP7)["cells"] if role(cell).get("grade_id") in failing
        }
        assert failed.keys() == cells, failed
        assert said == {}
