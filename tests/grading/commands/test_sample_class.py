"""The sample class of ``make grade``: every student gets what the table promises."""

import subprocess
import sys
from pathlib import Path

import pytest

from deep_learning_cases.errors import FileError
from grading.commands import sample
from tests.grading.asking import grade as judge

CHECKOUT = Path(__file__).resolve().parents[3]
EXPECTED = {"ada": 9, "boris": 9, "chen": 6, "dana": 7, "emil": 7, "fatima": 4, "mallory": 0}
"""Points of ``latency_stats`` alone, of nine."""


@pytest.mark.parametrize("student", [s for s in sample.STUDENTS if s.answer], ids=lambda s: s.name)
def test_each_answer_has_the_mistake_it_is_there_for(student: sample.Student) -> None:
    assert student.answer is not None
    items, _ = judge(student.answer)
    assert sum(item.points for item in items.values()) == EXPECTED[student.name]


def test_a_folder_that_is_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(FileError, match="not a sample course"):
        sample.build_class(tmp_path, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


@pytest.mark.slow
def test_the_command_builds_grades_and_prints(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grading", "sample", "--to", str(tmp_path / "course"), "--evidence", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "25 of 28" in lines["ada"], "all but the written answer, which waits for a person"
    assert "late: -5" in lines["boris"]
    for nothing in ("george", "mallory", "oscar"):
        assert " 0 of 28" in lines[nothing]
    assert "p95" in lines["chen"]
    for name in ("gradebook.db", "feedback", "report-release.html"):
        assert (tmp_path / "course" / name).exists()
