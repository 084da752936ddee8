"""What the Makefile says before it sets anything up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def python(folder: Path, version: str) -> Path:
    """A Python that says of itself that it is another version."""
    numbers = ", ".join(version.split("."))
    program = folder / "python"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -c ] && exec {sys.executable} -c "import sys; sys.version_info = ({numbers}); $2"\n'
        f'[ "$1" = --version ] && echo Python {version} && exit\n'
        "echo set up; exit 3\n"
    )
    program.chmod(0o755)
    return program


def make(folder: Path, program: object) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    words = ["make", "setup", f"PYTHON={program}"]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.parametrize("version", ["3.10.14", "3.14.0", "2.7.18"])
def test_a_python_out_of_range_is_refused_first_and_in_one_line(tmp_path, version):
    done = make(tmp_path, python(tmp_path, version))
    assert done.returncode != 0
    assert done.stdout.count("\n") == 1
    assert f"is Python {version}: expected Python 3.11, 3.12 or 3.13; call make PYTHON=/" in done.stdout


def test_one_that_is_here_and_runs_is_named_and_a_shim_that_leads_nowhere_is_not(tmp_path, monkeypatch):
    (tmp_path / "python3.13").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.12").write_text("#!/bin/sh\n")
    for name in ("python3.13", "python3.12"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert f"call make PYTHON={tmp_path / 'python3.12'}\n" in make(tmp_path, python(tmp_path, "3.14.0")).stdout


def test_no_python_at_all_is_said_as_well(tmp_path):
    assert "is no Python here: expected Python 3.11" in make(tmp_path, "/no/such/python").stdout


@pytest.mark.parametrize("version", ["3.11.0", "3.12.9", "3.13.1"])
def test_a_python_in_range_goes_on(tmp_path, version):
    assert "set up" in make(tmp_path, python(tmp_path, version)).stdout


def test_the_range_is_the_one_that_the_package_states():
    assert 'requires-python = ">=3.11,<3.14"' in (ROOT / "pyproject.toml").read_text()
