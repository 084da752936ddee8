"""Faults made on purpose, each with the message that must come and the work that must stay."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.classroom.browser import Person
from tests.classroom.hub import Hub
from tests.classroom.kernels import run_everywhere
from tests.classroom.machine import Machine

__all__ = [
    "exchange_gone",
    "exchange_missing",
    "exchange_read_only",
    "home_full",
    "no_proxy",
    "server_killed",
    "two_tabs",
]

_QUERY = "course_id=deep-learning-cases&assignment_id=release"
_LINE = "faster_at_batch_1 ="
NOTEBOOK = "release/step7_latency_stats.ipynb"


def _refused(machine: Machine, **settings: str) -> str:
    """Start a hub that must give up at once; returns its last line."""
    hub = Hub(machine, **settings)
    hub.log = machine.run / "refused.log"
    hub.log.unlink(missing_ok=True)
    hub.start()
    try:
        assert hub.process.wait(90) != 0
    finally:
        hub.stop()
    line = hub.tail(1)
    assert line.startswith("jupyterhub_config.py: "), hub.tail()
    return line


def no_proxy(machine: Machine) -> str:
    """Without the proxy's command the hub names it and the way to install it."""
    line = _refused(machine, DLCASES_PROXY="no-such-proxy")
    assert "no-such-proxy" in line
    assert "npm install" in line
    return line


def exchange_missing(machine: Machine) -> str:
    """Without an exchange the hub does not start, rather than let a class find out at the first fetch."""
    line = _refused(machine, DLCASES_EXCHANGE=str(machine.run / "nowhere"))
    assert "no exchange at" in line
    assert "install -d -m 1777" in line
    return line


@contextlib.contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def exchange_read_only(machine: Machine, hub: Hub, user: str) -> str:
    """Handing in says that the exchange cannot be written, and the work stays where it was; so does a hub's start."""
    with _read_only(machine.exchange):
        message = _refused_submission(machine, hub, user)
        assert "Unwritable directory" in message, message
        line = _refused(machine)
        assert "read-only" in line, line
    _submit(hub, user)
    return f"{message} | {line}"


def exchange_gone(machine: Machine, hub: Hub, user: str) -> str:
    """An exchange that goes away while the hub runs: handing in says so, the work stays, and it works again after."""
    aside = machine.exchange.with_name("unmounted")
    machine.exchange.rename(aside)
    try:
        message = _refused_submission(machine, hub, user)
        assert "Unwritable directory" in message or "does not exist" in message, message
    finally:
        if machine.exchange.exists():
            shutil.rmtree(machine.exchange)
        aside.rename(machine.exchange)
    _submit(hub, user)
    return message


def _submit(hub: Hub, user: str) -> None:
    status, answer = hub.server("POST", user, f"/assignments/submit?{_QUERY}")
    assert status == 200, answer
    assert answer["success"] is True, answer


def _refused_submission(machine: Machine, hub: Hub, user: str) -> str:
    """Hand in where that is impossible; returns the last line that the student gets to read."""
    notebook = machine.folder(user) / NOTEBOOK
    before = notebook.read_bytes()
    status, answer = hub.server("POST", user, f"/assignments/submit?{_QUERY}")
    assert status == 200, answer
    assert answer["success"] is False, answer
    assert notebook.read_bytes() == before
    return str(answer["value"]).strip().splitlines()[-1]


@contextlib.contextmanager
def _full(home: Path) -> Iterator[None]:
    """Fill the file system of this home to its last byte."""
    filler = home / "filler"
    with filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x" * 65536)
    with filler.open("ab", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x")
    try:
        yield
    finally:
        filler.unlink()


_FILL_AND_MEASURE = """
import contextlib, os
from deep_learning_cases import bench
with open("filler", "wb", buffering=0) as stream, contextlib.suppress(OSError):
    while True:
        stream.write(b"x" * 4096)
try:
    print(bench.run("release/evidence"))
except Exception as error:
    print(type(error).__name__, error)
os.remove("filler")
"""


def home_full(machine: Machine, hub: Hub, user: str) -> str:
    """Saving and measuring say that there is no space; what was saved and measured before is still whole."""
    home = machine.folder(user)
    hub.stop_server(user)
    saved = machine.run / "saved-home"
    subprocess.run(["cp", "-a", home, saved], check=True)
    entry = pwd.getpwnam(user)
    options = f"size=40m,mode=0700,uid={entry.pw_uid},gid={entry.pw_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", home], check=True)
    try:
        subprocess.run(["cp", "-a", f"{saved}/.", home], check=True)
        hub.start_server(user)
        notebook, record = home / NOTEBOOK, home / "release/evidence/benchmark.json"
        before = notebook.read_bytes(), record.read_bytes()
        # A kernel needs a few files of its own, so it starts while there is room.
        run_everywhere(hub, [user], "1")
        status, document = hub.server("GET", user, f"/api/contents/{NOTEBOOK}")
        assert status == 200, document
        document["content"]["cells"][0]["source"] += "\n" + "more " * 20_000
        with _full(home):
            body = json.dumps({"type": "notebook", "content": document["content"]}).encode()
            status, answer = hub.server("PUT", user, f"/api/contents/{NOTEBOOK}", body=body)
            assert status >= 400, "a full home took the notebook"
            message = str(answer)[:400]
            assert "No space left" in message, message
        # The kernel fills the home itself: in a full one, another kernel would not even start.
        measured = run_everywhere(hub, [user], _FILL_AND_MEASURE)[user].strip()
        assert "No space left" in measured, measured
        assert len(measured.splitlines()) == 1, measured
        assert (notebook.read_bytes(), record.read_bytes()) == before
    finally:
        hub.stop_server(user)
        # Its last kernel may take a moment longer to end than its server.
        subprocess.run(["umount", "--lazy", home], check=True)
    return f"{measured} | {message}"


def server_killed(machine: Machine, hub: Hub, user: str) -> str:
    """A server killed in mid-bench: no half record, everything as it was, and the next run goes through."""
    folder = machine.folder(user) / "release"
    record = folder / "evidence" / "benchmark.json"
    measured = record.read_bytes()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path != record}
    many = "rounds=9, repetitions=400"
    source = f"from deep_learning_cases import bench\nbench.run('release/evidence', {many})\nprint('done')"
    hub.start_server(user)
    said: dict[str, str] = {}
    thread = threading.Thread(target=lambda: said.update(_patient(hub, user, source)))
    thread.start()
    uid = pwd.getpwnam(user).pw_uid
    deadline = time.monotonic() + 120
    while not (children := _processes(uid, "deep_learning_cases.measuring.trial")):
        assert time.monotonic() < deadline, f"no measuring process of {user}: {said}"
        time.sleep(0.05)
    for number in _processes(uid, ""):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    thread.join(60)
    assert "done" not in said.get(user, ""), said
    assert record.read_bytes() == measured, "benchmark.json changed"
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path != record}
    assert after == before, sorted(set(after) ^ set(before))
    with contextlib.suppress(Exception):
        hub.stop_server(user)
    hub.start_server(user)
    again = run_everywhere(hub, [user], source.replace(many, "rounds=3"))
    assert "done" in again[user], again
    return f"killed with {len(children)} measuring process(es) alive; old record kept, the next run went through"


def _patient(hub: Hub, user: str, source: str) -> dict[str, str]:
    with contextlib.suppress(Exception):
        return run_everywhere(hub, [user], source)
    return {user: "connection lost"}


def _processes(uid: int, word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == uid and word in (path / "cmdline").read_bytes().decode():
                found.append(int(path.name))
    return found


def two_tabs(person: Person, name: str) -> str:
    """One notebook in two tabs: whoever saves second is asked, and nothing is overwritten unasked."""
    first = person.page
    person.open_notebook(NOTEBOOK)
    second = person.context.new_page()
    person.page = second
    try:
        person.open_notebook(NOTEBOOK)
        person.type_into(
            "faster_at_batch_1 =", 'faster_at_batch_1 = "from the second tab"\nfaster_at_batch_32 = "same"'
        )
        person.save()
        person.page = first
        person.type_into(_LINE, f'{_LINE} "from the first tab"\nfaster_at_batch_32 = "same"')
        first.keyboard.press("Escape")
        first.keyboard.press("Control+s")
        dialog = first.locator(".jp-Dialog")
        dialog.wait_for()
        text = dialog.inner_text()
        person.photograph(name)
        assert "changed on disk" in text, text
        dialog.get_by_role("button", name="Revert").click()
        first.locator(".jp-Dialog").wait_for(state="detached")
    except BaseException:
        person.photograph(f"{name}-failed")
        raise
    finally:
        person.page = first
        second.close()
    return " ".join(text.split())
