"""The attacks on the box and on a whole class once more, by a grader who is not root."""

import sys

import pytest

from tests.grading.ordinary_user import CHECKOUT, as_ordinary_user, ordinary_home

FILES = ("tests/grading/sandbox/test_sandbox_attacks.py", "tests/whole/test_attacks_on_a_class.py")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_the_attacks_fare_no_better_behind_an_ordinary_users_wall(file: str) -> None:
    with ordinary_home() as home:
        options = ["-q", "-x", "-p", "no:cacheprovider", "--basetemp", str(home / "pytest"), "--rootdir", str(CHECKOUT)]
        done = as_ordinary_user([sys.executable, "-m", "pytest", *options, str(CHECKOUT / file)], home)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
