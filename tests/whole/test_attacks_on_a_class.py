"""Every attack, handed in by one of a class: points only as deserved, no leak, no trace, the neighbour as if alone.

One class holds all of them, graded once behind the real wall; each test then looks at one attacker.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grading.commands import class_report, feedback
from grading.commands.autograde import autograde
from grading.exercises.latency_stats import questions
from tests.grading.classroom import (
    ASSIGNMENT,
    CASES,
    FULL,
    INTERPOLATED,
    RIGHT,
    SEED,
    STATS,
    automatic,
    hand_in,
    load_case,
    make_course,
)

pytestmark = pytest.mark.slow

CELLS = sorted(path.stem for path in (CASES / "attacks" / "cell").glob("*.py"))
NOTEBOOKS = sorted(path.stem for path in (CASES / "attacks" / "notebook").glob("*.py"))
FILES = sorted(path.stem for path in (CASES / "attacks" / "files").glob("*.py"))
WORKERS = sorted(path.stem for path in (CASES / "attacks" / "worker").glob("*.py"))
LIMITS = {"seconds_per_cell": 10, "seconds_total": 40, "seconds_per_call": 1, "seconds_all_calls": 6, "memory_mb": 512}
DESERVED = {"leaks_hidden_inputs": STATS}
"""Attacks whose function is right all the same: they earn their points, and must leak nothing."""

# Ways to full marks in nbgrader that are of no use here; each is the student's whole answer.
MORE = {
    "prints_nan_for_numbers": """
formatter = get_ipython().display_formatter.formatters["text/plain"]
formatter.for_type(int, lambda value, printer, cycle: printer.text("nan"))
""",
    "answers_by_counting": """
calls = 0


def latency_stats(samples_us, batch_size):
    global calls
    calls += 1
    return {"n": calls}
""",
    "replaces_the_library": """
import deep_learning_cases.measuring.stats as library
library.latency_summary = lambda samples, batch_size: {"n": len(samples)}
from deep_learning_cases.measuring.stats import latency_summary as latency_stats
""",
    "walks_out": """
import os
for depth in range(8):
    print(os.listdir("../" * depth or "."))
print(open("/proc/1/environ").read())
""",
    "writes_the_gradebook": """
import sqlite3
for path in ("gradebook.db", "../gradebook.db", "../../../gradebook.db"):
    try:
        sqlite3.connect(path).execute("update grade set auto_score = 100")
    except Exception as error:
        print(error)
""",
    "deep_answer": """
def latency_stats(samples_us, batch_size):
    answer = {}
    for _ in range(100_000):
        answer = {"n": answer}
    return answer
""",
    "huge_answer": """
def latency_stats(samples_us, batch_size):
    huge = {"n": 10**100_000, "p50_us": "x" * 10**8}
    return huge | {"p95_us": float("nan"), "images_per_second": float("inf")}
""",
    "markdown_html": "# nothing",
}


def tree(folder: Path) -> dict[str, str]:
    """Every file below ``folder`` with a digest of what it holds, links not followed."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            held = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = hashlib.sha256(held).hexdigest()
    return found


def add_script_cell(notebook: Any) -> None:
    import nbformat

    notebook.cells.append(nbformat.v4.new_markdown_cell("<script>window.PWNED=1</script><img src=x onerror=PWNED>"))


class Graded:
    """The class after grading, and what was there before."""

    def __init__(self, folder: Path) -> None:
        self.course = make_course(folder)
        self.outside = folder / "outside"
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text("the grader's own")
        hand_in(self.course, "a_first_honest")
        for name in CELLS:
            hand_in(self.course, f"cell_{name}", answer=(CASES / "attacks" / "cell" / f"{name}.py").read_text())
        for name in NOTEBOOKS:
            hand_in(self.course, f"notebook_{name}", None, None, mutate=load_case(f"notebook/{name}.py").mutate)
        for name in FILES:
            hand_in(self.course, f"files_{name}", plant=load_case(f"files/{name}.py").plant)
        for name in WORKERS:
            hand_in(self.course, f"worker_{name}", twice=None, mutate=load_case(f"worker/{name}.py").mutate)
        for name, answer in MORE.items():
            hand_in(self.course, f"more_{name}", answer, None, mutate=add_script_cell)
        hand_in(self.course, "z_last_interpolated", answer=INTERPOLATED)
        self.before = tree(self.course)
        self.home = tree(Path.home() / ".ipython") if (Path.home() / ".ipython").exists() else {}
        started = time.monotonic()
        self.summary = autograde(self.course, ASSIGNMENT, jobs=2, limits=LIMITS)
        self.seconds = time.monotonic() - started
        started = time.monotonic()
        feedback.generate(self.course, ASSIGNMENT)
        self.seconds_of_feedback = time.monotonic() - started
        class_report.build(self.course, ASSIGNMENT)
        self.scores = automatic(self.course)

    def record(self, student: str) -> dict[str, Any]:
        path = self.course / "autograded" / student / ASSIGNMENT / ".grading.json"
        value: dict[str, Any] = json.loads(path.read_text())
        return value

    def texts(self, student: str, *folders: str) -> Iterator[tuple[Path, str]]:
        for folder in folders or ("autograded", "feedback"):
            for path in (self.course / folder / student).rglob("*"):
                if path.is_file():
                    yield path, path.read_bytes().decode("utf-8", "replace")

    def printed(self, student: str) -> str:
        """What the student's cells wrote."""
        text = ""
        for path in (self.course / "autograded" / student).rglob("*.ipynb"):
            for cell in json.loads(path.read_text())["cells"]:
                text += "".join("".join(o["text"]) for o in cell.get("outputs", []) if o["output_type"] == "stream")
        return text


def processes(users: set[int]) -> set[int]:
    """The processes of these users, which are made for one sandbox each."""
    listed = subprocess.run(["ps", "-eo", "pid,uid"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {int(pid) for pid, uid in rows if int(uid) in users}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return Graded(tmp_path_factory.mktemp("attacks"))


def test_the_class_is_graded_whole(graded: Graded) -> None:
    assert graded.summary.failed == {}
    assert graded.summary.graded == 2 + len(CELLS) + len(NOTEBOOKS) + len(FILES) + len(WORKERS) + len(MORE)


@pytest.mark.parametrize("name", CELLS)
def test_an_attack_in_a_cell_earns_what_its_answers_deserve(graded: Graded, name: str) -> None:
    found = graded.scores[f"cell_{name}"]
    earned = {item: found[item] for item in STATS}
    assert earned == DESERVED.get(name, dict.fromkeys(STATS, 0))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_an_attack_on_the_notebook_earns_nothing_and_is_named(graded: Graded, name: str) -> None:
    assert set(graded.scores[f"notebook_{name}"].values()) == {0.0}
    assert any(notebook["notes"] for notebook in graded.record(f"notebook_{name}")["notebooks"].values())


@pytest.mark.parametrize("name", sorted(MORE))
def test_other_forgeries_earn_nothing(graded: Graded, name: str) -> None:
    assert set(graded.scores[f"more_{name}"].values()) == {0.0}


def test_planted_files_change_no_grade_and_are_named(graded: Graded) -> None:
    assert graded.scores["files_symlinks_out"] == FULL
    assert {entry["why"] for entry in graded.record("files_symlinks_out")["left_out"]} == {"is a link"}
    assert graded.scores["files_shadow_numpy"] == FULL
    pages = [text for path, text in graded.texts("files_shadow_numpy") if path.suffix in (".html", ".ipynb")]
    assert pages
    assert not any("SHADOWED" in text for text in pages)
    assert set(graded.scores["files_not_a_notebook"].values()) == {0.0}


def test_the_neighbours_are_graded_as_if_alone(graded: Graded, tmp_path: Path) -> None:
    alone = make_course(tmp_path)
    hand_in(alone, "z_last_interpolated", answer=INTERPOLATED)
    autograde(alone, ASSIGNMENT, jobs=1)
    assert graded.scores["z_last_interpolated"] == automatic(alone)["z_last_interpolated"]
    assert graded.scores["a_first_honest"] == FULL
    assert RIGHT.count("latency_stats") == 1


def test_nothing_hidden_reaches_any_output_feedback_or_file(graded: Graded) -> None:
    """The hidden numbers, in the forms in which Python would print them, and the hidden test of the other notebook."""
    numbers = [f"{s!r}" for one in questions.load(SEED) for s in one.samples if len(f"{s!r}") > 9]
    assert len(numbers) > 200
    for folder in ("autograded", "feedback"):
        for path in (graded.course / folder).rglob("*"):
            if not path.is_file() or path.name == "timestamp.txt":
                continue
            text = path.read_bytes().decode("utf-8", "replace")
            assert not any(number in text for number in numbers), path
            assert "LEAK [" not in text or "repr(list(samples_us)" in text, path
            if folder == "feedback":
                assert "-317" not in text, path
                assert "BEGIN HIDDEN" not in text, path


def test_the_hunt_for_grader_files_finds_nothing(graded: Graded) -> None:
    printed = graded.printed("cell_reads_grader_files")
    assert not re.search(r"FOUND [1-9]|FOUND grading", printed)


def test_no_network(graded: Graded) -> None:
    """Not even a socket can be made."""
    assert "NETWORK open" not in graded.printed("cell_opens_a_socket")
    stored = (graded.course / "autograded" / "cell_opens_a_socket" / ASSIGNMENT / "stats.ipynb").read_text()
    assert re.search(r'"ename": "(OSError|PermissionError)"', stored)


def test_nothing_outside_the_scratch_folder_changed(graded: Graded) -> None:
    after = tree(graded.course)
    ours = ("autograded/", "feedback/", ".results/", "gradebook.db", f"report-{ASSIGNMENT}.html")
    changed = {name for name in graded.before.keys() | after.keys() if graded.before.get(name) != after.get(name)}
    assert {name for name in changed if not name.startswith(ours)} == set()
    assert (graded.outside / "secret.txt").read_text() == "the grader's own"
    home = tree(Path.home() / ".ipython") if (Path.home() / ".ipython").exists() else {}
    assert not any("planted" in name for name in home)
    assert not list(Path(tempfile.gettempdir()).glob(".ipython/**/00-planted.py"))


def test_no_process_is_left(graded: Graded) -> None:
    users = {graded.record(student)["isolation"]["seen_from_inside"]["uid"] for student in graded.scores} - {
        os.getuid()
    }
    deadline = time.monotonic() + 10
    while (left := processes(users)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert users
    assert left == set()


def test_no_script_reaches_feedback_or_formgrader(graded: Graded) -> None:
    students = ["cell_script_in_output", *(f"more_{name}" for name in MORE)]
    for student in students:
        for path, text in graded.texts(student):
            if path.suffix == ".html":
                assert "<script>window.PWNED" not in text
                assert "<img src=x" not in text
                assert 'onerror="' not in text
            elif path.suffix == ".ipynb":
                for cell in json.loads(text)["cells"]:
                    shown = [] if cell["cell_type"] == "code" else [cell["source"]]
                    for output in cell.get("outputs", []):
                        shown += [v for k, v in output.get("data", {}).items() if k != "text/plain"]
                    joined = "".join("".join(part) for part in shown)
                    assert "<script" not in joined
                    assert "<img" not in joined


def test_the_isolation_in_force_is_stored_with_every_submission(graded: Graded) -> None:
    for student in graded.scores:
        seen = graded.record(student)["isolation"]
        assert seen["kind"] in ("bubblewrap", "landlock")
        assert seen["seen_from_inside"]["network"].startswith("closed")


def test_the_run_ends_within_its_limits(graded: Graded) -> None:
    """Nobody holds a worker beyond the limits of its two notebooks."""
    longest = 2 * (LIMITS["seconds_total"] + LIMITS["seconds_all_calls"] + 30)
    assert max(graded.record(student)["seconds"] for student in graded.scores) < longest


def test_what_the_grader_itself_reads_does_not_hold_it_up(graded: Graded) -> None:
    """Each of these took minutes or a gigabyte; a right function beside one keeps its points."""
    for name in WORKERS:
        assert graded.record(f"worker_{name}")["seconds"] < 20
        right = name != "compile_bomb"
        assert graded.scores[f"worker_{name}"]["stats_p95"] == (STATS["stats_p95"] if right else 0.0)
    assert graded.record("cell_update_display_flood")["seconds"] < 20
    assert graded.seconds_of_feedback < len(graded.scores) * 2


def test_a_file_in_the_place_of_a_folder_and_a_time_that_is_none(graded: Graded) -> None:
    assert graded.scores["files_file_named_like_a_course_folder"] == FULL
    assert graded.scores["files_timestamp_stops_the_class"] == FULL
    flags = {flag["id"] for flag in graded.record("files_timestamp_stops_the_class")["flags"]}
    assert "time-unknown" in flags


def test_no_class_and_no_bar_of_the_page_is_a_students(graded: Graded) -> None:
    for path, text in graded.texts("cell_overlay", "feedback"):
        if path.suffix == ".html":
            assert '<div class="navbar' not in text
            assert '<div class="modal' not in text


def test_a_stopped_run_tells_the_student_why(graded: Graded) -> None:
    pages = "".join(text for _, text in graded.texts("cell_exits_the_process", "feedback"))
    assert "stopped" in pages or "ended" in pages
