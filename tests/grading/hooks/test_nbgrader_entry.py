"""nbgrader's own command and formgrader's own button end behind the same wall as ours."""

import http.cookiejar
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grading.classroom import ASSIGNMENT, CASES, FULL, STATS, automatic, hand_in, make_course

CHECKOUT = Path(__file__).resolve().parents[3]
FORGED = (CASES / "attacks" / "cell" / "drops_every_later_cell.py").read_text()
TOKEN = "only-for-this-test"

pytestmark = pytest.mark.slow


@pytest.fixture
def course(tmp_path: Path) -> Path:
    course = make_course(tmp_path)
    hand_in(course, "honest")
    hand_in(course, "forger", answer=FORGED, twice="get_ipython().user_ns['twice'] = lambda x: 0\n")
    return course


def environment(home: Path) -> dict[str, str]:
    """Nothing of the developer's own Jupyter configuration, and alembic where nbgrader looks for it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_RUNTIME_DIR": str(home / "run")}
    return os.environ | own | {"PATH": path, "JUPYTER_DATA_DIR": str(home / "data"), "NO_PROXY": "127.0.0.1"}


def deserved(course: Path) -> None:
    found = automatic(course)
    assert found["honest"] == FULL
    assert {item: found["forger"][item] for item in STATS} == dict.fromkeys(STATS, 0.0)
    record = json.loads((course / "autograded" / "honest" / ASSIGNMENT / ".grading.json").read_text())
    assert record["isolation"]["kind"] in ("bubblewrap", "landlock")


def test_the_command_line_of_nbgrader_is_as_safe(course: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT]
    done = subprocess.run(command, cwd=course, env=environment(tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    deserved(course)


def test_the_command_line_of_nbgrader_says_what_is_wrong_in_one_line(course: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nbgrader", "autograde", "nope"]
    done = subprocess.run(command, cwd=course, env=environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "no assignment 'nope'" in done.stderr


def test_feedback_of_nbgrader_is_the_safe_one(course: Path, tmp_path: Path) -> None:
    for command in (["autograde", ASSIGNMENT, "--student", "honest"], ["generate_feedback", ASSIGNMENT]):
        call = [sys.executable, "-m", "nbgrader", *command]
        done = subprocess.run(call, cwd=course, env=environment(tmp_path), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    folder = course / "feedback" / "honest" / ASSIGNMENT
    assert sorted(p.name for p in folder.iterdir()) == ["double.html", "stats.html", "timestamp.txt"]
    assert "-317" not in (folder / "double.html").read_text()


class Formgrader:
    """A Jupyter server with formgrader, and a client that presses its buttons as the page's script does."""

    def __init__(self, course: Path, home: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        settings = {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.formgrader": True}}}
        (home / "config").mkdir(exist_ok=True)
        (home / "config" / "jupyter_server_config.json").write_text(json.dumps(settings))
        command = [
            sys.executable,
            "-m",
            "jupyter_server",
            "--allow-root",
            "--no-browser",
            f"--port={self.url.split(':')[-1]}",
        ]
        command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={course}"]
        command += ["--ServerApp.ip=127.0.0.1"]
        self.log = home / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=course, env=environment(home), stdout=log, stderr=log)
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        )

    def get(self, path: str) -> str:
        with self.opener.open(f"{self.url}{path}?token={TOKEN}", timeout=60) as answer:
            return str(answer.read().decode())

    def post(self, path: str) -> dict[str, object]:
        request = urllib.request.Request(f"{self.url}{path}", data=b"", headers={"Authorization": f"token {TOKEN}"})
        with self.opener.open(request, timeout=300) as answer:
            value: dict[str, object] = json.loads(answer.read())
        return value

    def wait(self) -> None:
        deadline = time.monotonic() + 90
        while True:
            try:
                self.get("/formgrader/manage_assignments")
                return
            except (urllib.error.URLError, ConnectionError):
                assert self.process.poll() is None, self.log.read_text()[-3000:]
                assert time.monotonic() < deadline, self.log.read_text()[-3000:]
                time.sleep(0.3)


@pytest.fixture
def formgrader(course: Path, tmp_path: Path) -> Iterator[Formgrader]:
    server = Formgrader(course, tmp_path)
    try:
        server.wait()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(30)


def test_the_button_of_formgrader_is_as_safe(course: Path, formgrader: Formgrader) -> None:
    for student in ("honest", "forger"):
        answer = formgrader.post(f"/formgrader/api/submission/{ASSIGNMENT}/{student}/autograde")
        assert answer["success"] is True, answer
    deserved(course)
    listed = json.loads(formgrader.get(f"/formgrader/api/submissions/{ASSIGNMENT}"))
    assert {row["student"]: row["score"] for row in listed} == {"honest": 12.0, "forger": 0.0}


def test_the_page_of_formgrader_shows_points_and_messages_and_runs_nothing(
    course: Path, formgrader: Formgrader
) -> None:
    import nbformat

    def add(notebook: nbformat.NotebookNode) -> None:
        notebook.cells.append(nbformat.v4.new_markdown_cell("<script>window.PWNED=1</script><img src=x onerror=PWNED>"))

    script = (CASES / "attacks" / "cell" / "script_in_output.py").read_text()
    hand_in(course, "scripter", answer=script, mutate=add)
    assert formgrader.post(f"/formgrader/api/submission/{ASSIGNMENT}/scripter/autograde")["success"] is True
    listed = json.loads(formgrader.get(f"/formgrader/api/submitted_notebooks/{ASSIGNMENT}/stats"))
    identifier = next(row["id"] for row in listed if row["student"] == "scripter")
    page = formgrader.get(f"/formgrader/submissions/{identifier}/")
    assert "stats_p95" in page
    assert "<script>window.PWNED" not in page
    assert "<img src=x" not in page
    assert '<img src="x' not in page
