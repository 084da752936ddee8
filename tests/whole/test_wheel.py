"""Test what ships: the wheel holds the library only, and the whole lab runs from it in a clean environment."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"deep_learning_cases"}
    assert [name for name in names if name.endswith((".pyc", ".ipynb"))] == []
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "deep_learning_cases").rglob("*.py")}
    assert modules <= set(names)
    assert "deep_learning_cases/py.typed" in names, "without it no type checker reads the library's types"


def test_no_answer_fixture_or_check_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = b"\n".join(archive.read(name) for name in archive.namelist()).lower()
    for word in (b"begin solution", b"import grading", b"from grading", b"stats_p95", b"stats_throughput"):
        assert word not in text


@pytest.mark.slow
def test_the_whole_lab_runs_from_the_wheel_in_a_clean_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    # Python compiles what it imports; all of PyTorch, which pip would compile, is many times that.
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*install, f"{wheel}[torch]"], check=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "dlcases", "run", "evidence", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["release"]["decision"] in {"release", "reject"}
    assert "</html>" in (tmp_path / "evidence" / "report.html").read_text()
