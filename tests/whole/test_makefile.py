"""``make`` asks first whether it has a Python that the project supports, and says in one line what to do."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.11", "3.12", "3.13")
MAKE = shutil.which("make")


def python(folder: Path, name: str, version: str) -> None:
    """A program that runs what ``-c`` says as if it were that version of Python, and refuses everything else."""
    numbers = ", ".join(version.split("."))
    pretend = f"import sys; sys.version_info = ({numbers}, 0, 'final', 0); exec(sys.argv.pop(1))"
    path = folder / name
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] || exit 9\nexec "{sys.executable}" -c "{pretend}" "$2"\n')
    path.chmod(0o755)


@pytest.fixture
def setup(tmp_path):
    """``make setup`` in an empty folder, with nothing on PATH but the programs in ``bin`` and the shell's own."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(bin_folder), "HOME": str(tmp_path)}
        return subprocess.run([MAKE, "setup", *words], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run, bin_folder


needs_make = pytest.mark.skipif(MAKE is None or os.name != "posix", reason="make is not installed here")


def message(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    return line


@needs_make
@pytest.mark.parametrize("version", ["3.14", "3.10", "2.7", "4.0"])
def test_another_python_is_one_line_before_anything_is_made(version, setup, tmp_path):
    run, bin_folder = setup
    python(bin_folder, "python3", version)
    assert message(run()) == (
        f"python3 is Python {version}: expected Python 3.11, 3.12 or 3.13; "
        "install one and run make again with PYTHON=/path/to/python3.13"
    )
    assert not (tmp_path / ".venv").exists()


@needs_make
def test_the_newest_one_that_is_here_and_runs_is_named(setup):
    run, bin_folder = setup
    python(bin_folder, "python3", "3.14")
    python(bin_folder, "python3.11", "3.11")
    python(bin_folder, "python3.12", "3.12")
    broken = bin_folder / "python3.13"
    broken.write_text("#!/bin/sh\necho 'not installed: python3.13' >&2\nexit 127\n")
    broken.chmod(0o755)
    assert message(run()).endswith("expected Python 3.11, 3.12 or 3.13; run make again with PYTHON=python3.12")


@needs_make
def test_a_python_that_is_not_there_is_told_from_a_wrong_one(setup):
    run, _ = setup
    assert message(run("PYTHON=/no/such/python")).startswith("/no/such/python does not run: expected Python 3.11")


@needs_make
@pytest.mark.parametrize("version", SUPPORTED)
def test_a_supported_one_goes_on(version, setup):
    run, bin_folder = setup
    python(bin_folder, "python3", version)
    done = run()
    assert "expected Python" not in done.stderr
    assert "python3 -m venv .venv" in done.stdout  # the next step, which this one cannot take


def test_the_range_is_the_same_wherever_it_stands():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = (tuple(map(int, one.split("."))) for one in re.findall(r"[\d.]+", project["requires-python"]))
    named = tuple(f"{low[0]}.{minor}" for minor in range(low[1], high[1]))
    assert named == SUPPORTED
    prefix = "Programming Language :: Python :: "
    assert tuple(one.removeprefix(prefix) for one in project["classifiers"] if one.startswith(prefix)) == SUPPORTED
    for name in ("README.md", "Makefile", "docs/instructors.md", "docs/students.md", "binder/student-README.md"):
        assert "Python 3.11, 3.12 or 3.13" in (ROOT / name).read_text(), name
