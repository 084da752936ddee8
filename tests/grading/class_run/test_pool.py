"""Many jobs, any order, dying workers: every submission gets one outcome, and only the guilty one fails."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep_learning_cases.errors import FileError, InputError
from grading.class_run.pool import LocalBackend, Outcome, run_all

CHECKOUT = Path(__file__).resolve().parents[3]
Future = concurrent.futures.Future[dict[str, Any]]


class Scripted:
    """A backend that answers each job at once by a function; it may raise."""

    ships_files = False

    def __init__(self, answer: Callable[[str, int], dict[str, Any]], slots: int = 2) -> None:
        self.answer, self.slots = answer, slots
        self.tries: dict[str, int] = {}
        self.restarts = 0
        self.most, self.open = 0, 0

    def submit(self, job: dict[str, Any]) -> Future:
        key = job["key"]
        self.tries[key] = self.tries.get(key, 0) + 1
        future: Future = concurrent.futures.Future()
        try:
            future.set_result(self.answer(key, self.tries[key]))
        except BaseException as error:
            future.set_exception(error)
        return future

    def restart(self) -> None:
        self.restarts += 1

    def close(self) -> None:
        """Nothing to close."""


def outcomes(backend: Any, keys: list[str], make: Any = None) -> dict[str, Outcome]:
    jobs = make or (lambda key: {"key": key})
    found = list(run_all(backend, keys, jobs, lambda _: 30.0))
    assert len(found) == len(keys), "one outcome each"
    return {outcome.key: outcome for outcome in found}


def test_every_job_gets_its_result() -> None:
    found = outcomes(Scripted(lambda key, _: {"result": {"of": key}}), list("abcde"))
    assert {key: outcome.result for key, outcome in found.items()} == {key: {"of": key} for key in "abcde"}


def test_a_failing_job_fails_alone() -> None:
    def answer(key: str, _: int) -> dict[str, Any]:
        if key == "b":
            raise ValueError("no\nway")
        return {"error": "its own fault"} if key == "c" else {"result": {}}

    found = outcomes(Scripted(answer), list("abcd"))
    assert (found["b"].error or "").startswith(
        "could not be graded (ValueError: no way): the grader did not expect this"
    )
    assert found["c"].error == "its own fault"
    assert found["a"].result == found["d"].result == {}


def test_a_submission_that_cannot_be_staged_fails_alone() -> None:
    def make(key: str) -> dict[str, Any]:
        if key == "b":
            raise FileError("gone")
        return {"key": key}

    found = outcomes(Scripted(lambda *_: {"result": {}}), list("abc"), make)
    assert found["b"].error == "gone"
    assert found["c"].result == {}


def test_a_failure_that_all_would_meet_stops_at_once() -> None:
    with pytest.raises(InputError, match="no wall"):
        list(run_all(Scripted(lambda *_: {"fatal": "no wall"}), "abc", lambda key: {"key": key}, lambda _: 1.0))


def test_only_the_job_that_kills_workers_is_given_up() -> None:
    def answer(key: str, _: int) -> dict[str, Any]:
        if key == "killer":
            raise concurrent.futures.BrokenExecutor
        return {"result": {}}

    backend = Scripted(answer)
    found = outcomes(backend, ["a", "killer", "b", "c"])
    assert "worker was lost" in str(found["killer"].error)
    assert backend.tries["killer"] == 3
    assert all(found[key].result == {} for key in "abc")
    assert backend.restarts >= 1


def test_a_worker_lost_once_costs_nothing() -> None:
    def answer(key: str, tries: int) -> dict[str, Any]:
        if key == "b" and tries == 1:
            raise concurrent.futures.BrokenExecutor
        return {"result": {"of": key}}

    found = outcomes(Scripted(answer), list("abc"))
    assert all(outcome.result for outcome in found.values())


def test_jobs_are_made_bit_by_bit() -> None:
    made: list[str] = []

    def make(key: str) -> dict[str, Any]:
        made.append(key)
        return {"key": key}

    stream = run_all(Scripted(lambda *_: {"result": {}}, slots=2), [str(n) for n in range(100)], make, lambda _: 1.0)
    next(stream)
    assert len(made) <= 4
    stream.close()


def crash_on_k(job: dict[str, Any]) -> dict[str, Any]:
    """Runs in a worker process; the job named k kills it."""
    if job["key"] == "k":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"result": {"of": job["key"], "pid": os.getpid()}}


def hang_on_h(job: dict[str, Any]) -> dict[str, Any]:
    """Runs in a worker process; the job named h never returns."""
    while job["key"] == "h":
        time.sleep(0.1)
    return {"result": {}}


@pytest.mark.slow
def test_real_processes_survive_a_killer() -> None:
    backend = LocalBackend(2, crash_on_k)
    try:
        found = outcomes(backend, list("abkcd"))
    finally:
        backend.close()
    assert found["k"].result is None
    assert all(found[key].result["of"] == key for key in "abcd")
    assert all(found[key].result["pid"] != os.getpid() for key in "abcd")


@pytest.mark.slow
def test_real_processes_that_hang_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    import grading.class_run.pool

    backend = LocalBackend(2, hang_on_h)
    monkeypatch.setattr(grading.class_run.pool, "GRACE_SECONDS", 1.0)
    try:
        found = {o.key: o for o in run_all(backend, list("ahb"), lambda key: {"key": key}, lambda _: 1.0)}
    finally:
        backend.close()
    assert found["h"].result is None
    assert found["a"].result == found["b"].result == {}


def test_closing_leaves_no_process() -> None:
    backend = LocalBackend(2, crash_on_k)
    found = outcomes(backend, list("ab"))
    backend.close()
    for outcome in found.values():
        assert outcome.result is not None
        with pytest.raises(ProcessLookupError):
            os.kill(outcome.result["pid"], 0)


INTERRUPTED = """import time
from grading.class_run.pool import LocalBackend
backend = LocalBackend(2)
try:
    backend.warm({})
    print("started", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    backend.close()
"""


@pytest.mark.parametrize("seconds", [0, 0.03, 0.06, 0.1, 0.3])
def test_ctrl_c_while_workers_start_says_nothing(seconds: float) -> None:
    """A terminal sends it to all processes: those that are still importing must not print where they were."""
    command = [sys.executable, "-c", INTERRUPTED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=CHECKOUT, start_new_session=True, **pipes) as run:
        assert run.stdout.readline() == "started\n"
        time.sleep(seconds)
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert said == ""
    assert run.returncode == 0
