"""Start one fresh Python process, give it one job, take one bounded JSON answer, and never leave it behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypeVar

import deep_learning_cases
from deep_learning_cases import errors
from deep_learning_cases.errors import DeepLearningCasesError, EvidenceError, MeasurementError, one_line
from deep_learning_cases.ground import files, machine
from deep_learning_cases.ground.arguments import positive, whole

__all__ = ["COMMAND", "MAX_ANSWER_BYTES", "NoAnswerError", "alternating", "child_environment", "run_fresh"]

# -P keeps a numpy.py in the current folder from being imported instead of the real one.
COMMAND = ("-P", "-c", "from deep_learning_cases.measuring.trial import main; main()")
"""Arguments for the interpreter; ``-m`` would load runpy into the memory that is measured."""

Name = TypeVar("Name")

MAX_ANSWER_BYTES = 4 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_SLICE_S = 0.5


class NoAnswerError(MeasurementError):
    """The process ended, by itself or by a signal, before it had answered."""


def run_fresh(job: Mapping[str, Any], timeout_s: float, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Run ``job`` in a new process and return its answer.

    ``command`` replaces this Python with :data:`COMMAND`.  Whatever happens, Ctrl-C included, the process has ended
    when this function returns or raises.

    Raises:
        The failure that the process itself named (ModelError, EvidenceError, ...).
        MeasurementError: the process could not start, crashed, took longer than ``timeout_s``, or answered with
            anything but one JSON object of at most :data:`MAX_ANSWER_BYTES`.
    """
    timeout_s = positive(timeout_s, "timeout_s")
    if command is None:
        command = (sys.executable or "python", *COMMAND)
    process: subprocess.Popen[bytes] | None = None
    try:
        with _interrupt_held():
            process = _start(command, job)
        answer, complaint = _talk(process, (json.dumps(job) + "\n").encode("ascii"), timeout_s)
    finally:
        if process is not None:
            with _interrupt_held():
                _end(process)
    return _understood(answer, complaint, process.returncode)


def alternating(names: Sequence[Name], rounds: int) -> list[list[Name]]:
    """Who is measured when: as given in odd rounds, reversed in even ones, so that a drift hits nobody always."""
    return [list(names) if number % 2 else list(reversed(names)) for number in range(1, whole(rounds, "rounds") + 1)]


def child_environment(threads: int) -> dict[str, str]:
    """This process's variables with every thread setting at ``threads`` and this library importable."""
    library = str(Path(deep_learning_cases.__path__[0]).resolve().parent)
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([library, inherited] if inherited else [library])
    return os.environ | dict.fromkeys(machine.THREAD_VARIABLES, str(threads)) | {"PYTHONPATH": path}


def _start(command: Sequence[str], job: Mapping[str, Any]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=child_environment(job.get("threads", 1))
        )
    except OSError as error:
        raise MeasurementError(
            f"cannot start {command[0]} ({error.strerror}): expected a Python interpreter; check the installation"
        ) from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):  # the job may still wait in the buffer of a dead process
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def _interrupt_held() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done: inside ``Popen`` it would lose a process that already runs."""
    previous = signal.getsignal(signal.SIGINT)
    # Only the main thread is ever interrupted, and only a handler that Python knows can be put back.
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if held:
            previous(*held[0])


def _talk(process: "subprocess.Popen[bytes]", job: bytes, timeout_s: float) -> tuple[bytes, bytes]:
    """Both outputs of the process, each bounded; MeasurementError after ``timeout_s``.

    Two threads read, asleep until bytes come: waiting must not take time from what is measured.
    """
    assert process.stdin is not None
    answer, complaint = bytearray(), bytearray()
    readers = [
        threading.Thread(target=_read, args=(process.stdout, answer, MAX_ANSWER_BYTES, process.kill), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, complaint, _MAX_ERROR_BYTES, None), daemon=True),
    ]
    for reader in readers:
        reader.start()
    with contextlib.suppress(OSError):  # a process that died at once is judged by what it left
        process.stdin.write(job)
        process.stdin.close()
    deadline = time.monotonic() + timeout_s
    for reader in readers:
        _join(reader, process, deadline)
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise MeasurementError(
            f"the measuring process did not end within {timeout_s:g} s: expected about one second;"
            " close other programs or allow more time with timeout_s"
        ) from None
    return bytes(answer), bytes(complaint)


def _join(reader: threading.Thread, process: "subprocess.Popen[bytes]", deadline: float) -> None:
    """Wait for the end of one output, in slices so that Ctrl-C is noticed on every system.

    An output may stay open after the process has ended, where something it started still holds it: that is not waited
    for.
    """
    while reader.is_alive() and (left_s := deadline - time.monotonic()) > 0:
        ended = process.poll() is not None
        reader.join(min(_SLICE_S, left_s))
        if ended:
            return


def _read(stream: IO[bytes], into: bytearray, limit: int, too_much: Callable[[], None] | None) -> None:
    """Collect at most ``limit`` bytes; beyond it call ``too_much`` once and drop the rest."""
    with contextlib.suppress(OSError, ValueError):
        while part := os.read(stream.fileno(), 1 << 16):
            if len(into) <= limit:
                into += part
                if len(into) > limit and too_much is not None:
                    too_much()


def _understood(answer: bytes, complaint: bytes, code: int) -> dict[str, Any]:
    """The answer as a dictionary, or the failure that it tells of."""
    if len(answer) > MAX_ANSWER_BYTES:
        raise MeasurementError(
            f"the measuring process wrote more than {MAX_ANSWER_BYTES} bytes: expected one JSON object; measure again"
        )
    last_words = _last_line(complaint)
    if not answer:
        # A negative code is the signal that ended the process, as subprocess tells it.
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        raise NoAnswerError(
            f"the measuring process {how} and gave no answer{last_words}: expected a measurement;"
            " run `dlcases doctor`, then measure again"
        )
    try:
        value = files.parse_json(answer, "the answer")
        if not isinstance(value, dict):
            raise EvidenceError("the answer is not an object")
    except EvidenceError as error:
        shown = answer[:60].decode("utf-8", "replace")
        raise MeasurementError(
            f"the measuring process answered {shown!r}{last_words}: expected one JSON object; measure again"
        ) from error
    if "error" in value:
        kind: Any = getattr(errors, str(value["error"]), None)
        named = isinstance(kind, type) and issubclass(kind, DeepLearningCasesError)
        message = str(value.get("message", "unnamed failure"))
        raise kind(message) if kind is not None and named else MeasurementError(message)
    if code != 0:
        raise MeasurementError(
            f"the measuring process ended with code {code} after its answer{last_words}: expected 0; measure again"
        )
    return value


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").split("\n")
    last = next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")
    return f" ({last})" if last else ""
