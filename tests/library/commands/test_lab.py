"""The work folder: notebooks land there, and a student's work is never overwritten."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import deep_learning_cases
from deep_learning_cases.commands import lab
from deep_learning_cases.errors import FileError


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "labs" / "release"
    folder.mkdir(parents=True)
    (folder / "a.ipynb").write_text("version 1")
    return folder.parent


def test_the_first_copy_is_new_and_the_second_changes_nothing(tmp_path, source):
    work = tmp_path / "work"
    assert lab.prepare(work, source)["new"] == ["release/a.ipynb"]
    assert lab.prepare(work, source)["kept"] == ["release/a.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "version 1"


def test_an_untouched_notebook_is_renewed(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (source / "release/a.ipynb").write_text("version 2")
    assert lab.prepare(work, source)["renewed"] == ["release/a.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "version 2"


def test_changed_work_stays_and_the_newer_version_lands_beside_it(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (work / "release/a.ipynb").write_text("my answers")
    assert lab.prepare(work, source)["kept"] == ["release/a.ipynb"]
    (source / "release/a.ipynb").write_text("version 2")
    result = lab.prepare(work, source)
    assert result["beside"] == ["release/a.new.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "my answers"
    assert (work / "release/a.new.ipynb").read_text() == "version 2"
    assert any("release/a.new.ipynb" in line for line in lab.lines(result))


def test_a_place_that_cannot_be_made_is_one_line(tmp_path, source):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot"):
        lab.prepare(tmp_path / "file" / "work", source)


def test_work_in_the_newer_version_is_not_overwritten_either(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (work / "release/a.ipynb").write_text("my answers")
    (source / "release/a.ipynb").write_text("version 2")
    lab.prepare(work, source)
    (work / "release/a.new.ipynb").write_text("my answers, moved to version 2")
    (source / "release/a.ipynb").write_text("version 3")
    assert lab.prepare(work, source)["beside"] == ["release/a.new2.ipynb"]
    assert (work / "release/a.new.ipynb").read_text() == "my answers, moved to version 2"
    assert (work / "release/a.new2.ipynb").read_text() == "version 3"


def test_an_untouched_newer_version_is_renewed_in_its_place(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (work / "release/a.ipynb").write_text("my answers")
    for version in ("version 2", "version 3"):
        (source / "release/a.ipynb").write_text(version)
        assert lab.prepare(work, source)["beside"] == ["release/a.new.ipynb"]
    assert (work / "release/a.new.ipynb").read_text() == "version 3"
    assert not (work / "release/a.new2.ipynb").exists()


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"release/a.ipynb": 3}'])
def test_where_it_is_not_known_what_was_issued_everything_counts_as_work(tmp_path, source, damage):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (work / ".issued.json").write_text(damage)
    (source / "release/a.ipynb").write_text("version 2")
    assert lab.prepare(work, source)["beside"] == ["release/a.new.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "version 1"


def test_evidence_and_checkpoints_beside_our_notebooks_are_not_handed_out(tmp_path, source):
    for name in ("release/evidence/benchmark.json", "release/.ipynb_checkpoints/a-checkpoint.ipynb"):
        (source / name).parent.mkdir()
        (source / name).write_text("{}")
    assert lab.prepare(tmp_path / "work", source)["new"] == ["release/a.ipynb"]


def test_an_installed_library_finds_the_notebooks_of_its_image(tmp_path, monkeypatch):
    monkeypatch.setattr(deep_learning_cases, "__path__", [str(tmp_path / "lib" / "deep_learning_cases")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(FileError, match="make lab"):
        lab.notebooks_folder()
    (tmp_path / "share/deep_learning_cases/labs").mkdir(parents=True)
    assert lab.notebooks_folder() == tmp_path / "share/deep_learning_cases/labs"


JUPYTERLAB = """
import os, pathlib, time
pathlib.Path("started").write_text(f"{os.getpid()} {os.environ['PATH']}")
time.sleep(60)
"""


@pytest.fixture
def started_lab(tmp_path):
    """``dlcases lab`` with a stand-in for JupyterLab; its process, and what the stand-in wrote: its number and PATH."""
    (tmp_path / "jupyterlab.py").write_text(JUPYTERLAB)
    places = os.pathsep.join([str(tmp_path), str(Path(deep_learning_cases.__path__[0]).parent)])
    process = subprocess.Popen(
        [sys.executable, "-m", "deep_learning_cases.cli", "lab", "work"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": places},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    note, deadline = tmp_path / "work" / "started", time.monotonic() + 60
    while not (note.exists() and note.read_text()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process, note.read_text()
    process.kill()
    process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no exec")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_command_is_one_to_jupyterlab_and_nothing_of_ours_is_said(started_lab, sent):
    process, note = started_lab
    number, path = note.split(" ", 1)
    assert int(number) == process.pid
    assert path.startswith(str(Path(sys.executable).parent) + os.pathsep)
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert process.returncode == -sent
    assert out.startswith("notebooks in work: ")
    assert "dlcases:" not in err


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to its parent")
def test_where_there_is_no_exec_ctrl_c_is_left_to_the_child_and_its_exit_code_returned(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    code = "import os, signal; os.kill(os.getppid(), signal.SIGINT); raise SystemExit(7)"
    assert lab._child([sys.executable, "-c", code], tmp_path, dict(os.environ)) == 7
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_jupyterlab_answers_on_loopback_and_only_with_its_token(tmp_path, source):
    pytest.importorskip("jupyterlab")
    work = tmp_path / "work"
    lab.prepare(work, source)
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "HOME": str(tmp_path)}
    environment.pop("JUPYTER_TOKEN", None)
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [*lab.command(), "--no-browser", "--ServerApp.port=0"], cwd=work, env=environment, stderr=log
        )
    try:
        url, token = _announced(tmp_path / "log", server)
        assert url.startswith(("http://127.0.0.1:", "http://localhost:"))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{url}api/contents", timeout=30)
        with urllib.request.urlopen(f"{url}api/contents?token={token}", timeout=30) as answer:
            assert b'"name": "release"' in answer.read()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def _announced(log: Path, server: subprocess.Popen) -> tuple[str, str]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        found = re.search(r"(http://127\.0\.0\.1:[1-9]\d*/)lab\?token=(\w+)", log.read_text())
        if found:
            return found.group(1), found.group(2)
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-2000:])
