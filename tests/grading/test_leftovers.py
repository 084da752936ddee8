"""The check that the tests of grading leave nothing behind can fail, and blames the right one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading.leftovers import Leftovers

CHECKOUT = Path(__file__).resolve().parents[2]


def test_what_a_test_leaves_is_named_with_it(tmp_path: Path) -> None:
    found = Leftovers(tmp_path)
    (tmp_path / "older").mkdir()
    found.before("test_a")
    for name in ("classroom-x", "grading-sandbox-y", "torchinductor_root"):
        (tmp_path / name).mkdir()
    found.after()
    found.before("test_b")
    found.after()
    (tmp_path / "grading-sandbox-y").rmdir()
    assert found.lines() == [f"{tmp_path / 'classroom-x'} is left, first seen after test_a"]


@pytest.mark.slow
def test_a_run_that_leaves_a_folder_fails(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text((Path(__file__).with_name("conftest.py")).read_text())
    (folder / "test_it.py").write_text(
        "import tempfile\n\ndef test_clean():\n    tempfile.TemporaryDirectory().cleanup()\n\n"
        "def test_untidy():\n    tempfile.mkdtemp(prefix='attacks-')\n"
    )
    environment = os.environ | {"PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(CHECKOUT), str(folder)]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    left = [line for line in done.stdout.splitlines() if "is left, first seen after" in line]
    assert left
    assert all("attacks-" in line and "test_untidy" in line and "test_clean" not in line for line in left)
