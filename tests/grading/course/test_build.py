"""The build: masters -> source -> release -> labs, by nbgrader's own generate_assignment, the same bytes each time."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from deep_learning_cases.errors import FileError, InputError
from grading import cli
from grading.commands import build as build_command
from grading.course import build
from grading.course.masters_format import read_master
from grading.judging.items import MAX_POINTS

MASTER = """\
# %% [markdown]
# # A small lab

# %% locked="setup"
number = 41

# %% solution="answer"
def answer():
    ### BEGIN SOLUTION
    return number + 1
    ### END SOLUTION

# %% test="answer_right" points=2
assert answer() == 42

# %% [markdown] written="why" points=1
# Because 41 + 1 = 42.
"""


@pytest.fixture
def masters(tmp_path) -> Path:
    folder = tmp_path / "masters"
    (folder / "small").mkdir(parents=True)
    (folder / "small" / "lab.py").write_text(MASTER)
    return folder


@pytest.fixture(scope="module")
def built_small(tmp_path_factory) -> Path:
    """The folder of labs that the small master gives.  Read it; never write into it."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "masters" / "small").mkdir(parents=True)
    (folder / "masters" / "small" / "lab.py").write_text(MASTER)
    build.build_labs("small", folder / "labs", folder / "masters")
    return folder / "labs"


def _cells(path: Path) -> list[dict]:
    return json.loads(path.read_text())["cells"]


def test_the_committed_labs_are_what_the_masters_give(built_course):
    wanted = {
        path.relative_to(built_course / "labs"): path.read_bytes() for path in built_course.rglob("labs/**/*.ipynb")
    }
    found = {
        path.relative_to(build.LABS): path.read_bytes()
        for path in build.LABS.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts
    }
    assert sorted(found) == sorted(wanted), "run `python -m grading build`"
    assert [name for name in wanted if wanted[name] != found[name]] == [], "run `python -m grading build`"


@pytest.mark.slow
def test_a_second_build_gives_the_same_bytes(built_small, masters, tmp_path):
    (second,) = build.build_labs("small", tmp_path / "second", masters)
    assert (built_small / "small" / "lab.ipynb").read_bytes() == second.read_bytes()


def test_cell_ids_come_from_names_and_text_so_that_an_inserted_cell_moves_no_other(masters):
    master = masters / "small" / "lab.py"
    before = {cell.id for cell in read_master(master).cells}
    master.write_text("# %% [markdown]\n# A new first cell\n\n" + MASTER)
    after = {cell.id for cell in read_master(master).cells}
    assert before < after
    assert len(after) == len(before) + 1
    assert {"setup", "answer", "answer_right", "why"} < before


@pytest.mark.slow
def test_the_lab_has_nbgraders_metadata_and_no_solution(built_small):
    lab = built_small / "small" / "lab.ipynb"
    cells = {cell["id"]: cell for cell in _cells(lab)}
    roles = {
        name: {key: cells[name]["metadata"]["nbgrader"][key] for key in ("grade", "solution", "locked", "task")}
        for name in ("setup", "answer", "answer_right", "why")
    }
    assert roles == {
        "setup": {"grade": False, "solution": False, "locked": True, "task": False},
        "answer": {"grade": False, "solution": True, "locked": False, "task": False},
        "answer_right": {"grade": True, "solution": False, "locked": True, "task": False},
        "why": {"grade": True, "solution": True, "locked": False, "task": False},
    }
    assert cells["answer_right"]["metadata"]["nbgrader"]["points"] == 2
    assert "".join(cells["answer"]["source"]).endswith("# YOUR CODE HERE\n    raise NotImplementedError()")
    assert "".join(cells["why"]["source"]) == "YOUR ANSWER HERE"
    assert "number + 1" not in lab.read_text()


def test_the_gradebook_knows_every_item_and_its_points(built_course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{built_course / 'gradebook.db'}") as gradebook:
        assignment = gradebook.find_assignment("release")
        points = {cell.name: cell.max_score for notebook in assignment.notebooks for cell in notebook.grade_cells}
    assert points == MAX_POINTS | {"release_scope": 3}


@pytest.mark.slow
def test_labs_that_differ_are_named(built_small, masters, tmp_path, monkeypatch, capsys):
    labs = Path(shutil.copytree(built_small, tmp_path / "labs"))
    lab = labs / "small" / "lab.ipynb"
    assert build.differences(labs, masters) == []
    # A build gives the same bytes each time, as was just seen: what follows needs no further one.
    monkeypatch.setattr(
        build, "build_labs", lambda _name, to, _masters: shutil.copytree(built_small, to, dirs_exist_ok=True)
    )
    lab.write_bytes(lab.read_bytes().replace(b"41", b"40"))
    assert build.differences(labs, masters) == ["small/lab.ipynb: differs from its master"]
    lab.rename(lab.with_name("old.ipynb"))
    assert build.differences(labs, masters) == [
        "small/old.ipynb: not built from the masters", "small/lab.ipynb: missing",
    ]  # fmt: skip
    monkeypatch.setattr(build, "differences", lambda _labs: ["small/lab.ipynb: missing"])
    assert cli.main(["build", "--check", "--labs", str(labs)]) == 1
    assert "small/lab.ipynb: missing; run `python -m grading build`" in capsys.readouterr().err


def test_the_command_builds_into_the_course_it_is_given(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "build", lambda course, labs: [course / "x", labs / "y"])
    assert cli.main(["build", "--course", str(tmp_path), "--labs", str(tmp_path / "labs")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "x"), str(tmp_path / "labs" / "y")]
    assert "build" in cli.COMMANDS
    assert cli.COMMANDS["build"] == build_command.__name__


@pytest.mark.slow
def test_a_notebook_whose_master_is_gone_goes_too(masters, tmp_path):
    second = masters / "small" / "second.py"
    second.write_text(MASTER)
    course, labs = tmp_path / "course", tmp_path / "labs"
    assert [path.name for path in build.build(course, labs, masters)] == ["lab.ipynb", "second.ipynb"]
    second.unlink()
    assert [path.name for path in build.build(course, labs, masters)] == ["lab.ipynb"]
    for folder in (course / "source" / "small", course / "release" / "small", labs / "small"):
        assert [path.name for path in folder.glob("*.ipynb")] == ["lab.ipynb"], folder


@pytest.mark.slow
def test_building_does_not_need_an_activated_environment(masters, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert build.build_labs("small", tmp_path / "labs", masters)
    assert os.environ["PATH"] == "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# %%\nx = 1\n", "code without a role"),
        ('# %% locked="a" colour="red"\nx = 1\n', "unknown header colour"),
        ('# %% locked="a" solution="b"\nx = 1\n', "solution and locked at once"),
        ('# %% locked="a b"\nx = 1\n', "'a b' is no cell name"),
        ('# %% locked="a"\nx = 1\n\n# %% locked="a"\ny = 1\n', "'a' stands twice"),
        ('# %% test="a"\nassert x\n', "points"),
        ('# %% locked="a" points=2\nx = 1\n', "points"),
        ('# %% written="a" points=2\nx = 1\n', "written in a code cell"),
        ('# %% [markdown] solution="a"\n# text\n', "solution in a markdown cell"),
    ],
)
def test_a_master_that_makes_no_sense_is_refused_with_its_cell(tmp_path, text, message):
    master = tmp_path / "odd.py"
    master.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_master(master)
    assert "odd.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_master_leaves_the_old_source_as_it_was(masters, tmp_path):
    (path,) = build.write_source("small", tmp_path, masters)
    before = path.read_bytes()
    (masters / "small" / "other.py").write_text("# %%\nx = 1\n")
    with pytest.raises(InputError):
        build.write_source("small", tmp_path, masters)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_nbgraders_own_reason_for_refusing_is_shown(masters, tmp_path):
    (masters / "small" / "lab.py").write_text(MASTER.replace("    ### END SOLUTION\n", ""))
    with pytest.raises(FileError, match="no end solution statement found"):
        build.build_labs("small", tmp_path / "labs", masters)
    assert not (tmp_path / "labs").exists()


@pytest.mark.parametrize("command", ["build", "sample"])
def test_ctrl_c_while_nbgrader_generates_is_one_line(command, tmp_path, monkeypatch, capsys):
    from nbgrader.converters import GenerateAssignment

    def interrupted(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(GenerateAssignment, "start", interrupted)
    folders = {
        "build": ["--course", str(tmp_path), "--labs", str(tmp_path / "labs")],
        "sample": ["--to", str(tmp_path)],
    }
    assert cli.main([command, *folders[command]]) == 130
    assert capsys.readouterr().err == f"python -m grading {command}: stopped\n"


@pytest.mark.parametrize(("raised", "reason"), [(SystemExit(3), "SystemExit: 3"), (None, "no reason given")])
def test_a_refusal_without_a_word_in_the_log_is_one_line(masters, tmp_path, monkeypatch, raised, reason):
    from nbgrader.converters import GenerateAssignment

    def refuses(_self):
        if raised:
            raise raised

    monkeypatch.setattr(GenerateAssignment, "start", refuses)
    with pytest.raises(FileError, match=f"did not generate 'small' .{reason}."):
        build.build_labs("small", tmp_path / "labs", masters)


def test_an_unknown_assignment_is_named_with_the_known_ones(masters, tmp_path):
    with pytest.raises(InputError, match="no assignment 'large': expected one of small"):
        build.build_labs("large", tmp_path, masters)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(masters, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(FileError, match="cannot write"):
        build.write_source("small", closed, masters)
