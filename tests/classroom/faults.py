"""Faults made on purpose, each with the message that must come and the work that must stay."""

import contextlib
import json
import os
import pwd
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

__all__ = ["exchange_missing", "exchange_read_only", "home_full", "no_proxy", "server_killed", "two_tabs"]

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
    notebook = machine.folder(user) / NOTEBOOK
    before = notebook.read_bytes()
    with _read_only(machine.exchange):
        query = "course_id=deep-learning-cases&assignment_id=release"
        status, answer = hub.server("POST", user, f"/assignments/submit?{query}")
        assert status == 200, answer
        assert answer["success"] is False
        message = answer["value"].strip().splitlines()[-1]
        line = _refused(machine)
        assert "read-only" in line, line
    assert notebook.read_bytes() == before
    status, answer = hub.server("POST", user, f"/assignments/submit?{query}")
    assert answer["success"] is True, answer
    return f"{message} | {hub.log.read_text().count('Unwritable directory')} x Unwritable directory | {line}"


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
        assert (notebook.read_bytes(), record.read_bytes()) == before
    finally:
        hub.stop_server(user)
        # Its last kernel may take a moment longer to end than its server.
        subprocess.run(["umount", "--lazy", home], check=True)
    return message


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
    while not (children := _processes(uid, "deep_learning_cases.trial")):
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
