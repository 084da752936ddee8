"""A small class, whole, in each way that is not the default: the same grades."""

import json
from pathlib import Path
from typing import Any

import pytest

from deep_learning_cases.errors import InputError
from grading.commands.autograde import autograde
from tests.grading.classroom import ASSIGNMENT, FULL, INTERPOLATED, grade, grades, hand_in, make_course

pytestmark = pytest.mark.slow

READS = "import pathlib, tempfile\nnumber = int(pathlib.Path('own.txt').read_text())\n"
READS += "with tempfile.TemporaryFile() as file:\n    file.write(b'x')\ndef twice(x):\n    return number * x"


@pytest.mark.parametrize(
    ("way", "seen"),
    [
        ({"cold": True, "isolation": "bubblewrap"}, ("bubblewrap", "cold")),
        ({"isolation": "landlock"}, ("landlock", "forked")),
        ({"isolation": "bubblewrap"}, ("bubblewrap", "forked")),
    ],
    ids=["cold", "landlock", "bubblewrap"],
)
def test_two_students_are_graded_the_same_way(tmp_path: Path, way: dict[str, Any], seen: tuple[str, str]) -> None:
    def plant(folder: Path) -> None:
        (folder / "own.txt").write_text("2")

    course = make_course(tmp_path)
    hand_in(course, "ada", twice=READS, plant=plant)
    hand_in(course, "ben", answer=INTERPOLATED, twice="def twice(x):\n    return 5", scope="What the timer encloses.")
    try:
        summary = autograde(course, ASSIGNMENT, jobs=2, **way)
    except InputError as error:
        pytest.skip(str(error))
    assert (summary.graded, summary.failed) == (2, {})
    found = grades(course)
    assert {name: auto for name, (auto, _, _) in found["ada"].items()} == FULL | {"scope": 0.0}
    lost = {"stats_p95": 0.0, "double": 0.0, "double_negative": 0.0, "scope": None}
    assert {name: auto for name, (auto, _, _) in found["ben"].items()} == FULL | lost
    for student in ("ada", "ben"):
        record = json.loads((course / "autograded" / student / ASSIGNMENT / ".grading.json").read_text())
        assert (record["isolation"]["kind"], record["isolation"]["kernel"]) == seen
        assert all(notebook["stopped"] is None for notebook in record["notebooks"].values())
    assert grade(course).skipped == 2
