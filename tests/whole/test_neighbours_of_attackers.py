"""Honest students behind attackers get what they would get alone: as root and not, at one worker and two."""

import json
import os
import subprocess
import sys

import pytest

from tests.grading.classroom import FULL
from tests.grading.ordinary_user import CHECKOUT, as_ordinary_user, ordinary_home

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("wall", ["root, bubblewrap", "root, landlock", "ordinary user, bubblewrap"])
def test_the_neighbours_of_attackers_are_graded_as_if_alone(wall: str) -> None:
    user, kind = wall.split(", ")
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(CHECKOUT)!r}); "
        "runpy.run_module('tests.whole.neighbours', run_name='__main__')"
    )
    with ordinary_home() as home:
        command = [sys.executable, "-c", code, str(home), kind]
        if user == "root":
            if os.geteuid() != 0:
                pytest.skip("not root")
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
        else:
            done = as_ordinary_user(command, home)
    assert "TOLD" in done.stdout, done.stderr[-3000:]
    for jobs, told in json.loads(done.stdout.partition("TOLD")[2]).items():
        assert told["failed"] == {}, jobs
        assert told["kinds"] == [kind], jobs
        assert told["leaks"] == [], jobs
        alone = {"honest": FULL, "interpolated": told["scores"]["s01_interpolated"]}
        assert alone["interpolated"] == FULL | {"stats_p95": 0}
        for student, scores in told["scores"].items():
            who = student.split("_")[1]
            if who in alone:
                assert scores == alone[who], (jobs, student)
            elif student.endswith("leak_channels"):
                assert scores == FULL, (jobs, student)
            elif who == "attack":
                assert not any(scores[item] for item in scores if item.startswith("stats")), (jobs, student)
