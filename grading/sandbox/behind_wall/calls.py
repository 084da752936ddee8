"""Ask a student's function, in forked children of the process that ran the cells.

The parent process receives a descriptor and forks before anybody reads from it: hidden inputs are never in its memory,
and a call that ends or hangs its child loses itself alone.  How many calls share one child is the grader's choice:
a fork of a process with NumPy and matplotlib in it costs more than most calls.
"""

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from behind_wall import coerce, slot

# Bound at import, before anything of a student's: a patched os or json module costs its author the answers, at most.
_fork, _exit, _kill, _waitpid, _close = os.fork, os._exit, os.kill, os.waitpid, os.close
_dumps, _loads, _freeze = json.dumps, json.loads, gc.freeze
_LENGTH = struct.Struct("!I")
MAX_ANSWER_BYTES = 4 << 20
_ITS_OWN = ("_positive", "_median", "_sum", "_of_round")
_MOST_DESCRIPTORS = 1024  # RLIMIT_NOFILE of a submission


def serve(control: socket.socket, namespace: Callable[[], dict[str, Any]], seconds: float, shielded: bool) -> None:
    """Answer calls until the other side closes.  ``shielded``: nobody but the student's processes can be signalled."""
    used = switch_library_off()
    gc.collect()
    _freeze()
    gc.disable()
    end_others(shielded)
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        if not fds:  # a late request to end a child that is gone
            continue
        pid = _fork()
        if pid == 0:
            try:
                control.close()
                _answer(fds[0], namespace(), used)
            finally:
                _exit(0)
        _close(fds[0])
        _reap(pid, control, seconds, shielded)


def _reap(pid: int, control: socket.socket, seconds: float, shielded: bool) -> None:
    """Wait until the child is through, is called off or has had its time; end it and whatever it left behind."""
    handle = os.pidfd_open(pid)
    try:
        ready = select.select([handle, control], [], [], seconds)[0]
        called_off = control in ready and control.recv(1, socket.MSG_PEEK) != b"c"
        if handle not in ready and (called_off or not select.select([handle], [], [], 0.5 if ready else 0.0)[0]):
            with contextlib.suppress(OSError):
                _kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            _waitpid(pid, 0)
    finally:
        _close(handle)
    with contextlib.suppress(ChildProcessError):
        _waitpid(-1, os.WNOHANG)
        end_others(shielded)


def end_others(shielded: bool) -> None:
    """End every other process of this submission: what cells or calls started in the background."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        if shielded:
            with contextlib.suppress(OSError):
                _kill(-1, signal.SIGKILL)
        else:
            for child in slot.descendants(os.getpid(), set()):
                with contextlib.suppress(OSError):
                    _kill(child, signal.SIGKILL)
        try:
            while _waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def switch_library_off() -> dict[str, bool]:
    """Make the library's own summary raise, also through names that were imported before; return the mark it leaves."""
    used = {"library": False}
    stats = sys.modules.get("deep_learning_cases.measuring.stats")
    if stats is None:
        try:
            import deep_learning_cases.measuring.stats as stats
        except Exception:
            return used
    original = getattr(stats, "latency_summary", None)

    def switched_off(*_arguments: Any, **_named: Any) -> Any:
        used["library"] = True
        raise LibrarySummaryOff("the library's own summary is switched off here: write the statistics yourself")

    stats.latency_summary = switched_off  # type: ignore[attr-defined]
    stats.__dict__["_switched_off"] = switched_off
    if isinstance(original, FunctionType):
        _refuse_rebuilding(original.__code__, used)
        # Names bound by an earlier `from ... import latency_summary` still point at the function object itself; other
        # functions may have been built around its code. What only it and its kin call is switched off as well.
        codes = [original.__code__]
        codes += [one.__code__ for name in _ITS_OWN if isinstance(one := stats.__dict__.get(name), FunctionType)]
        kin = [stats.__dict__.get(name) for name in _ITS_OWN]
        built = [one for one in gc.get_objects() if type(one) is FunctionType and one.__code__ in codes]
        for function in (original, *kin, *built):
            if isinstance(function, FunctionType) and not function.__code__.co_freevars:
                function.__code__ = _forward.__code__
                function.__defaults__ = function.__kwdefaults__ = None
    return used


def _refuse_rebuilding(own: CodeType, used: dict[str, bool]) -> None:
    """From its text or its code the summary could be made anew: Python itself tells before it does either."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("exec", "function.__new__", "object.__setattr__") and arguments:
            held = arguments[-1] if event == "object.__setattr__" else arguments[0]
            if isinstance(held, CodeType) and _holds(held, own):
                used["library"] = True
                raise LibrarySummaryOff("the library's own summary is switched off here: write the statistics yourself")

    sys.addaudithook(watch)


def _holds(code: CodeType, own: CodeType, depth: int = 3) -> bool:
    if code.co_code == own.co_code and code.co_names == own.co_names:
        return True
    return depth > 0 and any(_holds(one, own, depth - 1) for one in code.co_consts if isinstance(one, CodeType))


def _forward(*arguments: Any, **named: Any) -> Any:
    import deep_learning_cases.measuring.stats as stats

    return stats._switched_off(*arguments, **named)  # type: ignore[attr-defined]


class LibrarySummaryOff(Exception):
    """Raised by ``stats.latency_summary`` while hidden inputs are asked."""


def _answer(fd: int, namespace: dict[str, Any], used: dict[str, bool]) -> None:
    """In the child: read a request, call, write one line, until the other side closes."""
    channel = socket.socket(fileno=fd)
    _silence(keep=channel.fileno())
    while True:
        head = channel.recv(_LENGTH.size, socket.MSG_WAITALL)
        if len(head) < _LENGTH.size:
            return
        request = _loads(channel.recv(_LENGTH.unpack(head)[0], socket.MSG_WAITALL))
        used["library"] = False
        reply = _dumps(_ask(namespace, request, used)).encode()
        if len(reply) > MAX_ANSWER_BYTES:
            return
        channel.sendall(reply + b"\n")


def _ask(namespace: dict[str, Any], request: dict[str, Any], used: dict[str, bool]) -> dict[str, Any]:
    given = request["arguments"]
    sequences = [isinstance(one, list) for one in given]
    held = [_container(one, request["container"]) if many else one for one, many in zip(given, sequences, strict=True)]
    answer: dict[str, Any] = {"ok": False, "value": None, "types": {}, "notes": {}, "returned": None, "error": None}
    function = namespace.get(request["function"])
    if not callable(function):
        answer["error"] = {"type": "NotDefined", "mro": []}
    else:
        try:
            returned = function(*held)
        except BaseException as error:
            answer["error"] = {"type": coerce.type_name(error), "mro": _ancestry(type(error))}
        else:
            answer |= {"ok": True, "returned": coerce.type_name(returned)} | coerce.describe(returned)
            answer["items"] = coerce.items(returned)
    answer["samples_after"] = [
        value
        for after, before, many in zip(held, given, sequences, strict=True)
        if many
        for value in coerce.samples_after(after, len(before))
    ]
    answer["used_library"] = used["library"]
    return answer


def _container(samples: Any, kind: str) -> Any:
    if kind == "tuple":
        return tuple(samples)
    if kind in {"numpy", "numpy_int"}:
        import numpy as np

        return np.array(samples, dtype=np.float64 if kind == "numpy" else np.int64)
    return samples


def _ancestry(kind: type) -> list[str]:
    return [coerce.clean_name(ancestor) for ancestor in type.mro(kind)[:12]]


def _silence(keep: int) -> None:
    """What the function prints goes nowhere, at Python's level and at C's; other descriptors are closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    for number in range(3, _MOST_DESCRIPTORS):
        if number != keep and _is_channel(number):
            with contextlib.suppress(OSError):
                os.dup2(null, number)
    sys.stdout = sys.stderr = _Nowhere()


def _is_channel(number: int) -> bool:
    """Sockets and pipes lead out of this process; files the student opened stay as they are."""
    try:
        kind = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(kind) or stat.S_ISFIFO(kind)


class _Nowhere(io.TextIOBase):
    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True

    def set_parent(self, _parent: Any) -> None:
        return
