"""``python -m grading try``: one file, graded behind the wall as hidden grading would."""

import json
import subprocess
import sys

import pytest

from deep_learning_cases.errors import FileError
from grading import cli
from grading.cli import main
from grading.commands import single_grading
from grading.commands.try_answer import grade_text
from grading.course.provided_imports import imports_before
from grading.judging.items import STATS_ITEMS
from grading.judging.seed import write_seed
from tests.grading.asking import CASES, SEED, grade, points

GIVEN = [
    "averaged_rounds", "calls_as_images", "drops_outliers", "inverted_median", "linear_interpolation",
    "mean_for_median", "milliseconds", "no_validation", "rank_not_index", "sorts_in_place", "unsorted", "upper_median",
    "rank_index_raises", "formatted_text", "blank", "syntax_error", "renamed", "prints_only", "array_given",
]  # fmt: skip


INSIDE = """
def latency_stats(samples_us, batch_size):
    from deep_learning_cases import stats

    return stats.latency_summary(samples_us, batch_size)
"""
KEPT = """
import importlib

kept = importlib.import_module("deep_learning_cases.measuring.stats").latency_summary


def latency_stats(samples_us, batch_size):
    return dict(kept(list(samples_us), batch_size))
"""


@pytest.fixture(scope="module")
def box():
    from grading.sandbox.box import open_box

    with open_box() as opened:
        yield opened


@pytest.mark.parametrize("path", sorted((CASES / "correct").glob("*.py")), ids=lambda path: path.stem)
def test_right_solutions_earn_everything_behind_the_wall(path, box):
    items, flags = grade_text(path.read_text(encoding="utf-8"), SEED, box)
    assert {item.id: item.points for item in items} == STATS_ITEMS
    assert flags == []


def test_a_cell_copied_alone_finds_what_the_notebook_imports_above_it(box):
    cell = (CASES / "correct" / "plain.py").read_text(encoding="utf-8").replace("import math\n", "")
    assert "math." in cell
    items, _ = grade_text(cell, SEED, box)
    assert {item.id: item.points for item in items} == STATS_ITEMS


def test_an_answer_may_give_an_imported_name_a_meaning_of_its_own(box):
    own = (CASES / "correct" / "plain.py").read_text(encoding="utf-8").replace("math", "json")
    assert "json.ceil" in own
    items, _ = grade_text(own.replace("import json", "import math as json"), SEED, box)
    assert {item.id: item.points for item in items} == STATS_ITEMS


def _notebook(path, *cells):
    """``cells``: name, role, other metadata, source."""
    written = [
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name, **role}, **more}, "source": source}
        for name, role, more, source in cells
    ]
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cells": written}))


def test_only_provided_cells_above_that_a_graded_run_runs_give_names(tmp_path):
    locked = {"locked": True}
    _notebook(
        tmp_path / "release/lab.ipynb",
        ("setup", locked, {}, ["import math\n", "from pathlib import Path\n", "print(Path())"]),
        ("measure", locked, {"deep_learning_cases": {"measures": True}}, "import inspect"),
        ("other_answer", {"solution": True}, {}, "import statistics ="),
        ("latency_stats", {"solution": True}, {}, "import os"),
        ("examples", locked, {}, "import numpy"),
    )
    assert imports_before("latency_stats", tmp_path) == "import math\nfrom pathlib import Path"


def test_labs_without_the_cell_or_not_readable_say_so_in_one_line(tmp_path):
    with pytest.raises(FileError, match=r"no notebook in .* has a cell 'latency_stats'"):
        imports_before("latency_stats", tmp_path)
    (tmp_path / "release").mkdir()
    (tmp_path / "release/lab.ipynb").write_text("[")
    with pytest.raises(FileError, match=r"lab\.ipynb"):
        imports_before("latency_stats", tmp_path)


@pytest.mark.parametrize("name", GIVEN)
def test_the_wall_changes_no_mark(name, box):
    source = (CASES / "mistaken" / f"{name}.py").read_text(encoding="utf-8")
    inside, _ = grade_text(source, SEED, box)
    outside, _ = grade(source)
    assert [(item.id, item.points, item.mistake) for item in inside] == [
        (item.id, item.points, item.mistake) for item in outside.values()
    ]


@pytest.mark.parametrize(
    "source",
    [
        "from deep_learning_cases.measuring.stats import latency_summary as latency_stats\n",
        "from deep_learning_cases import stats\nlatency_stats = stats.latency_summary\n",
        INSIDE,
        KEPT,
    ],
    ids=["renamed", "attribute", "inside", "kept"],
)
def test_calling_the_librarys_summary_earns_nothing(source, box):
    items, flags = grade_text(source, SEED, box)
    assert sum(item.points for item in items) == 0
    assert {item.mistake for item in items} == {"calls-the-library"}
    assert "calls-the-library" in [flag.id for flag in flags]


def test_a_cell_that_ends_in_an_exception_says_which(box):
    items, _ = grade_text("x = 1 / 0\ndef latency_stats(a, b): return {}\n", SEED, box)
    assert all(item.mistake == "no-function" and "ZeroDivisionError" in item.message for item in items)


@pytest.fixture
def seed_file(tmp_path):
    path = tmp_path / "course.seed"
    write_seed(path)
    return path


@pytest.mark.slow
def test_json_has_the_form_that_others_rely_on(seed_file, capsys):
    assert main(["try", str(CASES / "correct" / "plain.py"), "--seed-file", str(seed_file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"items", "points", "max_points", "isolation"}
    assert {frozenset(item) for item in answer["items"]} == {
        frozenset({"id", "points", "max_points", "passed", "message", "mistake"})
    }
    assert (answer["points"], answer["max_points"]) == (9, 9)


@pytest.mark.slow
def test_lines_for_people_name_the_mistake_and_the_sum(seed_file, capsys):
    path = CASES / "mistaken" / "linear_interpolation.py"
    assert main(["try", str(path), "--seed-file", str(seed_file)]) == 0
    out = capsys.readouterr().out
    assert "[interpolated-percentile]" in out
    assert out.splitlines()[-1].startswith("5 of 9 points; isolation: ")


def bad_inputs(folder):
    (folder / "latin.py").write_bytes("# caf\u00e9\n".encode("latin-1"))
    (folder / "big.py").write_bytes(b"#" * (300 * 1024))
    (folder / "lab.ipynb").write_text("{}")
    return {
        "missing.py": "cannot read",
        "latin.py": "not UTF-8",
        "big.py": "larger than",
        "lab.ipynb": "is a notebook",
        ".": "is a folder",
    }


@pytest.mark.parametrize("name", ["missing.py", "latin.py", "big.py", "lab.ipynb", "."])
def test_bad_input_is_one_line(name, tmp_path, capsys):
    words = bad_inputs(tmp_path)[name]
    assert main(["try", str(tmp_path / name)]) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_without_a_wall_nothing_runs(seed_file, capsys, monkeypatch):
    from grading.sandbox import box
    from grading.sandbox.wall.plan import IsolationUnavailable

    def refuse(**_options):
        raise IsolationUnavailable("no wall here: install bubblewrap")

    monkeypatch.setattr(box, "open_box", refuse)
    assert (
        main(["try", str(CASES / "correct" / "plain.py"), "--seed-file", str(seed_file)])
        == single_grading.NoWallError.exit_code
    )
    assert capsys.readouterr().err == "python -m grading try: no wall here: install bubblewrap\n"


def test_the_same_marks_with_any_seed_give_the_points_of_the_mistake():
    source = (CASES / "mistaken" / "upper_median.py").read_text()
    assert {points(grade(source, seed)[0]) for seed in ("first seed for this", "second seed for this")} == {6}


# --- the dispatcher --------------------------------------------------------------------------------------------------


def test_every_command_has_a_parser_and_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in cli.COMMANDS)


def test_an_unknown_command_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["tries"])
    assert ended.value.code == 2
    assert "check-evidence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "grading: the following arguments are required: COMMAND; see python -m grading --help"),
        (
            ["try"],
            "python -m grading try: the following arguments are required: FILE.py; see python -m grading try --help",
        ),
        (["autograde", "release", "--jobs", "x"], "'x': expected a number of processes from 1 to 1024; see "),
        (["fixtures", "--bad"], "unrecognized arguments: --bad; see python -m grading"),
    ],
    ids=["none", "missing", "value", "unknown"],
)
def test_a_bad_option_is_one_line(words, told, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("python -m grading")
    assert error.count("\n") == 1
    assert told in error


def test_ctrl_c_is_one_line(monkeypatch, capsys):
    def interrupted(_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("grading.commands.fixtures.run", interrupted)
    assert main(["fixtures"]) == 130
    assert capsys.readouterr().err == "python -m grading fixtures: stopped\n"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    command = [sys.executable, "-m", "grading", "fixtures", "--seed-file", str(tmp_path / "seed")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 141)
    assert errors == ""
