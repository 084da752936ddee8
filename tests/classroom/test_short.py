"""The classroom's short form: a real hub starts, a student fetches and hands in, and nothing is left behind."""

import subprocess
import sys

import pytest

from tests.classroom.machine import CHECKOUT, HOME, left_behind, missing

pytestmark = [pytest.mark.classroom, pytest.mark.slow]


def test_a_student_fetches_and_hands_in_on_a_real_hub() -> None:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    if (HOME / "run").exists():
        pytest.skip(f"{HOME / 'run'} exists: another classroom is being held on this machine")
    command = [sys.executable, "-m", "tests.classroom", "--short"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind() == []
