"""Many submissions through one ``concurrent.futures.Executor``: local processes, or a Dask cluster.

Workers only execute.  Results come back in any order, each as soon as it is there; a worker that dies costs the class
nothing: its submissions are tried again, one at a time, until it is known which of them brings a worker down.
"""

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from deep_learning_cases.errors import InputError, MissingDependencyError
from grading.class_run.machine_faults import raise_if_of_all, sentence
from grading.class_run.records import Answer, Job, Result, Settings
from grading.class_run.worker import close, warm, work

__all__ = ["Backend", "DaskBackend", "LocalBackend", "Outcome", "run_all"]

Task = Callable[[Job], Answer]
Pending = concurrent.futures.Future[Answer]

_ALONE = 2
"""How often a submission is tried by itself before it is given up."""

GRACE_SECONDS = 60.0
"""Beyond a job's own limits: starting workers and sandboxes on a busy machine."""


@dataclass(frozen=True)
class Outcome:
    """What became of one submission: its result, or why there is none."""

    key: str
    result: Result | None
    error: str | None = None


class Backend(Protocol):
    """Where jobs run. ``slots`` is how many at a time; ``ships_files`` says whether workers see our file system."""

    slots: int
    ships_files: bool

    def submit(self, job: Job) -> Pending:
        """Start a job."""

    def restart(self) -> None:
        """Begin again with fresh workers, after one was lost."""

    def close(self) -> None:
        """Let the workers go."""


class LocalBackend:
    """Fresh processes on this machine, each with a sandbox of its own."""

    ships_files = False

    def __init__(self, slots: int, task: Task = work) -> None:
        self.slots, self._task = slots, task
        self._executor = self._start()

    def _start(self) -> concurrent.futures.ProcessPoolExecutor:
        # Spawned, not forked: a worker must not inherit the gradebook's connection or anything else of the recorder.
        context = multiprocessing.get_context("spawn")
        return concurrent.futures.ProcessPoolExecutor(self.slots, mp_context=context, initializer=_begin_worker)

    def submit(self, job: Job) -> Pending:
        """Start a job in one of the processes."""
        with _interrupts_held():
            return self._executor.submit(self._task, job)

    def warm(self, settings: Settings) -> None:
        """Start all processes and their sandboxes now, while the recorder is still importing nbgrader."""
        with _interrupts_held():
            for _ in range(self.slots):
                self._executor.submit(warm, settings)

    def restart(self) -> None:
        """Kill all processes and start as many."""
        self._stop()
        self._executor = self._start()

    def close(self) -> None:
        """Idle workers leave by themselves and close their sandbox; busy ones are not waited for."""
        processes = self._processes()
        self._executor.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + 5
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
        self._kill(processes)

    def _stop(self) -> None:
        self._kill(self._processes())
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _processes(self) -> list[Any]:
        # The executor forgets them when it is shut down.
        return list((getattr(self._executor, "_processes", None) or {}).values())

    @staticmethod
    def _kill(processes: list[Any]) -> None:
        for process in processes:
            with contextlib.suppress(Exception):
                process.kill()
                process.join(5)


class DaskBackend:
    """A running Dask cluster (``distributed``). Submissions travel as bytes, since workers may be other machines."""

    ships_files = True

    def __init__(self, scheduler: str, task: Task = work) -> None:
        self._task = task
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingDependencyError(
                "distributed is not installed: expected for --scheduler; pip install 'deep_learning_cases[grading]'"
            ) from error
        try:
            self._client = Client(scheduler, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"no Dask scheduler answers at {scheduler}: expected one started by `dask scheduler`; check the address"
            ) from error
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        self.slots = max(1, sum(int(worker["nthreads"]) for worker in workers.values()))
        # Work that fails is reported, not repeated; what a dead worker held is given to another by the scheduler.
        self._executor = self._client.get_executor(pure=False, retries=0)

    def submit(self, job: Job) -> Pending:
        """Hand a job to the cluster."""
        future: Pending = self._executor.submit(self._task, job)
        return future

    def restart(self) -> None:
        """The scheduler replaces workers itself."""

    def close(self) -> None:
        """Leave the cluster as it is."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)


def run_all(
    backend: Backend,
    keys: Iterable[str],
    make_job: Callable[[str], Job],
    seconds: Callable[[Job], float],
) -> Iterator[Outcome]:
    """Run one job a key and yield outcomes as they come; at most twice as many jobs as slots exist at any time.

    ``make_job`` is called when a slot is near, so that a class of any size is staged bit by bit.  ``seconds`` bounds a
    job's running time: beyond it, its worker counts as dead.  A failure that every submission would meet (no sandbox, a
    missing package) is raised at once; any other becomes that submission's outcome.
    """
    waiting, alone = deque(keys), deque[tuple[str, int]]()
    running: dict[Pending, tuple[str, float]] = {}
    while waiting or alone or running:
        while waiting and not alone and len(running) < 2 * backend.slots:
            key = waiting.popleft()
            outcome = _submit(backend, key, make_job, seconds, running)
            if outcome is not None:
                yield outcome
        if alone and not running:
            yield from _run_alone(backend, alone, make_job, seconds)
            continue
        if not running:
            continue
        lost: list[str] = []
        done, _ = concurrent.futures.wait(running, timeout=1.0, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            key, _deadline = running.pop(future)
            outcome = _outcome(key, future)
            if outcome is None:
                lost.append(key)
            else:
                yield outcome
        overdue = [key for key, deadline in running.values() if time.monotonic() > deadline]
        if lost or overdue:
            lost += [key for key, _deadline in running.values()]
            for future in running:
                future.cancel()
            running.clear()
            backend.restart()
            alone.extend((key, 0) for key in lost)


def _submit(
    backend: Backend,
    key: str,
    make_job: Callable[[str], Job],
    seconds: Callable[[Job], float],
    running: dict[Pending, tuple[str, float]],
) -> Outcome | None:
    try:
        job = make_job(key)
    except Exception as error:
        raise_if_of_all(error)
        return Outcome(key, None, sentence(error, "staged"))
    try:
        future = backend.submit(job)
    except concurrent.futures.BrokenExecutor:
        backend.restart()
        future = backend.submit(job)
    # Jobs wait for a slot inside the executor, at most one deep.
    running[future] = (key, time.monotonic() + 2 * seconds(job) + GRACE_SECONDS)
    return None


def _run_alone(
    backend: Backend,
    alone: deque[tuple[str, int]],
    make_job: Callable[[str], Job],
    seconds: Callable[[Job], float],
) -> Iterator[Outcome]:
    """Suspects one by one, so that an innocent neighbour is never blamed."""
    key, tries = alone.popleft()
    try:
        job = make_job(key)
    except Exception as error:
        raise_if_of_all(error)
        yield Outcome(key, None, sentence(error, "staged"))
        return
    future = backend.submit(job)
    concurrent.futures.wait([future], timeout=seconds(job) + GRACE_SECONDS)
    outcome = _outcome(key, future) if future.done() else None
    if outcome is not None:
        yield outcome
        return
    backend.restart()
    if tries + 1 < _ALONE:
        alone.append((key, tries + 1))
    else:
        yield Outcome(key, None, "its worker was lost each time it was tried (killed, or out of memory)")


def _outcome(key: str, future: Pending) -> Outcome | None:
    """The outcome of a finished future; None if it was lost with its worker."""
    try:
        answer = future.result()
    except (concurrent.futures.BrokenExecutor, concurrent.futures.CancelledError):
        return None
    except Exception as error:
        if type(error).__name__ in {"KilledWorker", "CommClosedError", "FutureCancelledError", "LostWorkerError"}:
            return None
        return Outcome(key, None, sentence(error, "graded"))
    if "fatal" in answer:
        raise InputError(answer["fatal"])
    if "error" in answer:
        return Outcome(key, None, answer["error"])
    return Outcome(key, answer["result"])


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits while processes start. They inherit that, or it would hit them amid their first imports."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Ctrl-C at the terminal reaches workers as well: they close their sandbox and leave without a word."""
    _die_with_parent()
    signal.signal(signal.SIGINT, _leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _leave(*_: Any) -> None:
    # No exception: whatever it would meet (a queue, an import) would print it.
    close()
    os._exit(130)


def _die_with_parent() -> None:
    """A recorder killed outright leaves no worker behind, and so no sandbox: those die with their worker."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
