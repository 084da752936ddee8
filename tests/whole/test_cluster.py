"""The same class on a Dask cluster: files travel, workers may die, nothing is lost."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep_learning_cases.errors import InputError
from grading.class_run.pool import DaskBackend, run_all
from grading.commands.autograde import autograde
from tests.grading.classroom import ASSIGNMENT, FULL, INTERPOLATED, automatic, grades, hand_in, make_course

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import dask
    from distributed import LocalCluster

    # One death of a worker is enough to suspect what it held; the default of three would take a minute to try out.
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": False}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as started,
    ):
        yield started


def slow_task(job: dict[str, Any]) -> dict[str, Any]:
    """Runs on a worker: long enough to be killed in between."""
    time.sleep(0.3)
    return {"result": {"of": job["key"], "pid": os.getpid()}}


def deadly_task(job: dict[str, Any]) -> dict[str, Any]:
    """Runs on a worker: the job named k kills whichever worker takes it."""
    if job["key"] == "k":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"result": {"of": job["key"]}}


def test_a_class_on_a_cluster_is_graded_as_on_this_machine(cluster: Any, tmp_path: Path) -> None:
    course = make_course(tmp_path)

    def plant(folder: Path) -> None:
        (folder / "data").mkdir()
        (folder / "data" / "own.txt").write_text("42")

    hand_in(course, "ada")
    hand_in(
        course,
        "reader",
        twice="number = int(open('data/own.txt').read())\ndef twice(x):\n    return 2 * x",
        plant=plant,
    )
    hand_in(course, "cleo", answer=INTERPOLATED)
    assert autograde(course, ASSIGNMENT, scheduler=cluster.scheduler_address).failed == {}
    there = grades(course)
    assert automatic(course)["reader"] == FULL
    autograde(course, ASSIGNMENT, force=True, jobs=1)
    assert grades(course) == there


def test_a_worker_killed_in_mid_run_loses_nothing(cluster: Any) -> None:
    keys = [f"s{number}" for number in range(12)]
    backend = DaskBackend(cluster.scheduler_address, slow_task)
    victim = next(iter(cluster.workers.values())).pid
    threading.Timer(0.8, os.kill, (victim, signal.SIGKILL)).start()
    try:
        found = {o.key: o for o in run_all(backend, keys, lambda key: {"key": key}, lambda _: 60.0)}
    finally:
        backend.close()
    assert sorted(found) == sorted(keys)
    assert all(outcome.result is not None and outcome.result["of"] == key for key, outcome in found.items())


def test_a_submission_that_kills_workers_is_the_only_one_that_fails(cluster: Any) -> None:
    backend = DaskBackend(cluster.scheduler_address, deadly_task)
    try:
        found = {o.key: o for o in run_all(backend, list("abkcd"), lambda key: {"key": key}, lambda _: 60.0)}
    finally:
        backend.close()
    assert found["k"].result is None
    assert "worker was lost" in str(found["k"].error)
    assert all(found[key].result == {"of": key} for key in "abcd")


def test_no_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *a, **settings: client(*a, **(settings | {"timeout": 1})))
    course = make_course(tmp_path)
    hand_in(course, "ada")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        autograde(course, ASSIGNMENT, scheduler="tcp://127.0.0.1:9")
