"""No command lets what a student wrote reach a terminal as anything but text: one walk through all of them."""

import ast
import contextlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grading.cli
from deep_learning_cases.ground.command_line import printable
from grading.cli import COMMANDS, main
from tests.grading.classroom import ASSIGNMENT, FakeBackend, hand_in, make_course

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028\rx\x7f"
FOLDER = "a\x1b[31mb\u202ec"


def is_clean(text: str) -> bool:
    return all(one.isprintable() or one == "\n" for one in text)


@given(st.text())
def test_what_is_printable_is_one_line_of_text_and_stays_what_it_is(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


def test_words_stay_words() -> None:
    assert printable("für Zoë: p95 < 3 µs …") == "für Zoë: p95 < 3 µs …"
    assert printable("a\u00a0b") == "a b"
    assert printable("a\nb\tc\x1b[m") == "a\\nb\\tc\\x1b[m"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_through_the_one_function(name: str) -> None:
    import importlib

    for module in (importlib.import_module(COMMANDS[name]), grading.cli):
        called = [node.func for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
        assert not [one for one in called if isinstance(one, ast.Name) and one.id == "print"]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in a folder with such a name, and a student whose every name is one."""
    made = make_course(tmp_path_factory.mktemp("hostile"))
    course = made.rename(made.with_name(FOLDER))
    hand_in(course, "ada")
    hand_in(course, "mallory", answer=f"raise type({HOSTILE!r}, (Exception,), {{}})({HOSTILE!r})", plant=_plant)
    (course / "submitted" / HOSTILE.replace("/", "")).mkdir()
    hand_in(course, HOSTILE)
    return course


def _plant(folder: Path) -> None:
    (folder / HOSTILE).write_text(HOSTILE)
    (folder / "evidence").mkdir()
    (folder / "evidence" / "benchmark.json").write_text(json.dumps({HOSTILE: HOSTILE, "schema": HOSTILE}))
    (folder / "evidence" / HOSTILE).write_text(HOSTILE)


class _Box:
    """Says of every call and every check what hostile code behind the wall could make a real one say."""

    isolation = {"kind": HOSTILE}  # noqa: RUF012

    def __enter__(self) -> "_Box":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, cells: list[Any], calls: list[Any]) -> Any:  # noqa: ARG002
        from grading.sandbox.run_parts import Run

        return Run(outputs={"latency_stats": [{"output_type": "error", "ename": HOSTILE}]})

    def compute(self, *_: Any) -> Any:
        return [{"area": "benchmark_record", "file": HOSTILE, "pointer": HOSTILE, "message": HOSTILE, "redo": HOSTILE}]


def _commands(course: Path, folder: Path) -> dict[str, list[list[str]]]:
    where = ["--course", str(course)]
    answer = folder / f"{FOLDER}.py"
    answer.write_text("x = 1")
    return {
        "build": [["build", "--check", "--labs", str(folder / FOLDER)]],
        "autograde": [["autograde", ASSIGNMENT, *where, *more] for more in ([], ["--json"])],
        "feedback": [["feedback", ASSIGNMENT, *where], ["feedback", HOSTILE, *where]],
        "report": [["report", ASSIGNMENT, *where], ["report", HOSTILE, *where]],
        "export": [["export", ASSIGNMENT, *where], ["export", HOSTILE, *where]],
        "sample": [["sample", "--to", str(course)]],
        "try": [["try", str(answer)], ["try", str(answer), "--json"], ["try", HOSTILE], ["try", str(answer), HOSTILE]],
        "check-evidence": [
            ["check-evidence", str(course / "submitted" / "mallory" / ASSIGNMENT), *more] for more in ([], ["--json"])
        ],
        "fixtures": [["fixtures", "--seed-file", str(folder / f"{FOLDER}.seed")], ["fixtures", HOSTILE]],
        "student-tree": [["student-tree", str(course)]],
    }


@pytest.mark.slow
def test_a_walk_through_all_commands(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from grading.commands import autograde, single_grading
    from grading.course import build

    original: Callable[..., Any] = autograde.autograde
    monkeypatch.setattr(autograde, "autograde", lambda *where, **_: original(*where, backend=FakeBackend()))
    monkeypatch.setattr(single_grading, "open_for", lambda _: _Box())
    monkeypatch.setattr(build, "differences", lambda *_: [HOSTILE])
    commands = _commands(course, tmp_path)
    assert set(commands) == set(COMMANDS), "a new command joins the walk"
    for lines in commands.values():
        for words in lines:
            with contextlib.suppress(SystemExit):
                main(words)
            said = capfd.readouterr()
            assert is_clean(said.out), (words, said.out)
            assert is_clean(said.err), (words, said.err)
            assert said.out or said.err
            if "--json" in words:
                json.loads(said.out)
    page = (course / f"report-{ASSIGNMENT}.html").read_text(encoding="utf-8")
    assert is_clean(page)
