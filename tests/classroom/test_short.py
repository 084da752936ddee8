"""The classroom's short form: one student's way through a real hub in a real browser, and nothing is left behind."""

import subprocess
import sys

import pytest

from tests.classroom.machine import CHECKOUT, HOME, left_behind, unfit, unprepared

pytestmark = [pytest.mark.classroom, pytest.mark.slow, pytest.mark.timeout(1200)]


def test_a_student_goes_from_the_first_login_to_the_feedback() -> None:
    if (reason := unfit() or unprepared()) is not None:
        pytest.skip(reason)
    if (HOME / "run").exists():
        pytest.skip(f"{HOME / 'run'} exists: another classroom is being held on this machine")
    command = [sys.executable, "-m", "tests.classroom", "--short"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=1100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind() == []
