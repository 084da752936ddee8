"""A course from the first login to the feedback, as its people live it, each step with what must hold afterwards."""

import contextlib
import json
import pwd
import re
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from playwright.sync_api import Error as PlaywrightError

from tests.classroom.answers import INTERPOLATED, RIGHT, step7, step8
from tests.classroom.browser import Person
from tests.classroom.hub import Hub
from tests.classroom.kernels import run_everywhere
from tests.classroom.machine import CHECKOUT, Machine

__all__ = ["Walk", "all_at_once"]

ASSIGNMENT = "release"
MISTAKE = "is interpolated: it lies between two samples"
"""Words of the message which the interpolated p95 earns; see grading/exercises/latency_stats/mistakes.toml."""


class Walk:
    """The people of one classroom: ``ada`` answers right, ``ben`` interpolates, and the instructor grades both.

    In the short form ``ben`` is the only student.
    """

    def __init__(self, machine: Machine, hub: Hub, browser: Browser, kept: Path) -> None:
        self.machine, self.hub, self.kept = machine, hub, kept
        self.students = [self._person(browser, user) for user in machine.students[:2]]
        self.ada, self.ben = self.students[0], self.students[-1]
        self.grader = self._person(browser, machine.instructor)

    def _person(self, browser: Browser, user: str) -> Person:
        return Person(browser, self.hub.url, user, self.machine.passwords[user], self.kept)

    def photograph_all(self, name: str) -> None:
        """What everybody still has on the screen, after a failure."""
        for person in (*self.students, self.grader):
            with contextlib.suppress(PlaywrightError):
                person.photograph(f"{name}-{person.user}")

    def complaints(self) -> list[str]:
        """What the browsers' consoles reported, without what nbgrader and JupyterLab cause by themselves."""
        lines = [f"{one.user}: {line}" for one in (*self.students, self.grader) for line in one.complaints]
        return [line for line in lines if not re.search(r"status of 404 .*(/api/contents/|favicon|workspaces)", line)]

    # The instructor, before

    def build_course(self) -> None:
        """``python -m grading build`` in the instructor's checkout."""
        checkout = self.machine.folder(self.machine.instructor) / "deep-learning-cases"
        python = self.machine.venv / "bin" / "python"
        done = self.machine.as_user(self.machine.instructor, python, "-m", "grading", "build", cwd=checkout)
        assert done.returncode == 0, done.stderr[-2000:]

    def release_assignment(self) -> None:
        """Formgrader inside JupyterLab is no blank frame; its release button fills the exchange."""
        grader = self.grader
        grader.log_in()
        grader.menu("Nbgrader", "Formgrader")
        frame = grader.page.frame_locator("iframe[src*='formgrader']")
        frame.get_by_role("link", name=ASSIGNMENT, exact=True).wait_for()
        grader.photograph("01-formgrader-in-jupyterlab")
        grader.formgrader("manage_assignments")
        assert "Successfully released" in grader.press(ASSIGNMENT, "release")
        assert (self.machine.exchange / "deep-learning-cases" / "outbound" / ASSIGNMENT).is_dir()

    # The students

    def student_prepares(self, person: Person) -> None:
        """Log in, fetch, and run steps 1 to 6 as they are."""
        person.log_in()
        person.fetch(ASSIGNMENT)
        person.photograph(f"02-fetched-{person.user}")
        notebook = f"{ASSIGNMENT}/step1_to_6_prepare.ipynb"
        person.open_notebook(notebook)
        if person is self.ben:
            # He has no mouse today.
            cells = json.loads((CHECKOUT / "labs" / notebook).read_text())["cells"]
            person.run_with_the_keyboard(len(cells))
            assert (self.machine.folder(person.user) / ASSIGNMENT / "evidence" / "regression.json").exists()
        else:
            person.run_all()
        assert not person.failures(), person.failures()
        assert not person.complaints_of_axe(), person.complaints_of_axe()
        person.picture_of_output("What rounding to 8 bits moved", f"03-plot-of-step-5-{person.user}")
        person.save()

    def ada_answers(self) -> None:
        """Type every solution, measure in the hub, look at the samples, validate; then step 8 to its report."""
        ada = self.ada
        ada.open_notebook(f"{ASSIGNMENT}/step7_latency_stats.ipynb")
        for line, source in step7(RIGHT).items():
            ada.type_into(line, source)
        ada.photograph("04-typed")
        ada.run_all()
        assert not ada.failures(), ada.failures()
        ada.picture_of_output("int8, batch 1: every sample", "05-samples-of-step-7")
        ada.save()
        assert "Success! Your notebook passes all the tests." in ada.validate()
        ada.photograph("06-validated")
        ada.dismiss()
        ada.open_notebook(f"{ASSIGNMENT}/step8_release.ipynb")
        for line, source in step8().items():
            ada.type_into(line, source)
        ada.run_all()
        assert not ada.failures(), ada.failures()
        ada.picture_of_output("report.show(EVIDENCE)", "07-report-of-step-8")
        ada.save()

    def ada_takes_it_with_her(self) -> None:
        """The last cell's link downloads the package, and the package holds up outside the hub."""
        link = self.ada.page.locator(".jp-OutputArea a", has_text="evidence.zip")
        link.scroll_into_view_if_needed()
        with self.ada.page.expect_download() as download:
            link.click()
        package = self.kept / "evidence.zip"
        download.value.save_as(package)
        names = zipfile.ZipFile(package).namelist()
        for wanted in ("evidence/benchmark.json", "evidence/report.html", "notebooks/step7_latency_stats.ipynb"):
            assert wanted in names, names
        checked = subprocess.run(
            [self.machine.venv / "bin" / "dlcases", "check", package], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def ben_interpolates(self) -> None:
        """The visible examples tell him so; he hands in all the same."""
        ben = self.ben
        ben.open_notebook(f"{ASSIGNMENT}/step7_latency_stats.ipynb")
        for line, source in step7(INTERPOLATED).items():
            ben.type_into(line, source)
        ben.run_all()
        assert any("lies between two samples" in line for line in ben.failures()), ben.failures()
        ben.save()
        assert "failed" in ben.validate()
        ben.photograph("08-validation-of-a-mistake")
        ben.dismiss()

    def hand_in(self) -> None:
        """They submit; the copies lie in the exchange."""
        for person in self.students:
            person.submit(ASSIGNMENT)
        self.ada.photograph("09-submitted")
        inbound = self.machine.exchange / "deep-learning-cases" / "inbound"
        assert sorted(path.name.split("+")[0] for path in inbound.iterdir()) == sorted(
            one.user for one in self.students
        )

    # The instructor, afterwards

    def grade(self) -> None:
        """Collect, autograde each with the button; the record says that the sandbox was in force."""
        grader = self.grader
        grader.formgrader("manage_assignments")
        assert "Successfully collected" in grader.press(ASSIGNMENT, "collect")
        grader.formgrader(f"manage_submissions/{ASSIGNMENT}")
        students = [one.user for one in self.students]
        for student in students:
            assert "Successfully autograded" in grader.press(student, "autograde")
        grader.photograph("10-autograded")
        for student in students:
            record = json.loads((self._course() / "autograded" / student / ASSIGNMENT / ".grading.json").read_text())
            assert record["isolation"]["kind"] == "bubblewrap", record["isolation"]
        scores = self.scores()
        # 17 points of step 7 and 8 of step 8; 3 more wait for a person.
        assert 0 < scores[self.ben.user] < 25, scores
        if self.ada is not self.ben:
            assert scores[self.ada.user] == 25, scores
        grader.formgrader(f"gradebook/{ASSIGNMENT}/step7_latency_stats")
        grader.photograph("11-step-7-in-formgrader")
        grader.page.get_by_role("link", name="Submission #1").click()
        grader.page.wait_for_url("**/formgrader/submissions/**")
        grader.page.wait_for_load_state("networkidle")
        grader.photograph("12-one-submission-in-formgrader")

    def scores(self) -> dict[str, float]:
        """{student: points}, from the page that formgrader's own table is filled with."""
        address = self.grader.address(f"/formgrader/api/submissions/{ASSIGNMENT}")
        rows: list[dict[str, Any]] = self.grader.page.request.get(address).json()
        return {row["student"]: row["score"] for row in rows}

    def give_feedback(self) -> None:
        """Generate and release feedback with the buttons."""
        self.grader.formgrader("manage_assignments")
        assert "Successfully generated feedback" in self.grader.press(ASSIGNMENT, "generate-feedback")
        assert "Successfully released feedback" in self.grader.press(ASSIGNMENT, "release-feedback")

    def read_feedback(self) -> None:
        """Ben finds the words that name his mistake, and nobody finds a hidden number."""
        hidden = self._hidden_numbers()
        assert len(hidden) > 50
        for person in self.students:
            listed = person.assignments()
            listed.get_by_role("button", name="Fetch Feedback").click()
            listed.get_by_text("view feedback").wait_for()
            home = self.machine.folder(person.user)
            pages = sorted((home / ASSIGNMENT / "feedback").rglob("*.html"))
            assert len(pages) == 3, pages
            texts = {page.stem: page.read_text() for page in pages}
            found = {number for number in hidden for text in texts.values() if number in text}
            assert not found, found
            for page in pages:
                path = page.relative_to(home).as_posix()
                person.page.goto(person.address(f"/files/{path}"))
                if page.stem == "step7_latency_stats":
                    person.page.get_by_text("stats_p95").first.scroll_into_view_if_needed()
                    shown = person.page.inner_text("body")
                    assert (MISTAKE in shown) == (person is self.ben), shown[-3000:]
                    if person is self.ben:
                        person.page.get_by_text(MISTAKE).first.scroll_into_view_if_needed()
                    person.photograph(f"13-feedback-{person.user}")

    def _hidden_numbers(self) -> set[str]:
        """Every hidden sample and answer that is long enough to be recognised."""
        from grading.exercises.latency_stats import questions

        seed = (self._course() / "fixtures.seed").read_text().strip()
        numbers = {float(one) for fixture in questions.load(seed) for one in fixture.samples if _is_number(one)}
        numbers |= {sum(numbers)}
        return {repr(number) for number in numbers if len(repr(number)) >= 7}

    def _course(self) -> Path:
        return self.machine.folder(self.machine.instructor) / "deep-learning-cases" / "grading"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def all_at_once(hub: Hub, users: list[str]) -> dict[str, float]:
    """Ask for every server at the same moment, then run the first cell in each; seconds of both, and memory."""
    began = time.monotonic()
    for user in users:
        hub.begin_server(user)
    while not all(hub.ready(user) for user in users):
        assert time.monotonic() - began < 300, f"after 300 s: {[user for user in users if not hub.ready(user)]}"
        time.sleep(0.5)
    started = time.monotonic() - began
    began = time.monotonic()
    notebook = CHECKOUT / "labs" / ASSIGNMENT / "step1_to_6_prepare.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    source = "".join(next(cell["source"] for cell in cells if cell["cell_type"] == "code"))
    answers = run_everywhere(hub, users, f"{source}\nprint('ready', EVIDENCE)")
    assert all("ready evidence" in text for text in answers.values()), answers
    first_cell = time.monotonic() - began
    return {"servers_s": round(started, 1), "first_cell_s": round(first_cell, 1), "memory_mb": memory_mb(users)}


def memory_mb(users: list[str]) -> float:
    """Memory that the users' processes hold, shared pages divided among those who share them."""
    uids = {pwd.getpwnam(user).pw_uid for user in users}
    total = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid in uids:
                rollup = (path / "smaps_rollup").read_text()
                total += int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")))
        except (OSError, StopIteration):
            continue
    return round(total / 1024, 1)
