"""A box: one slot in which submissions run one after the other, each behind the wall and none seeing another."""

import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from grading.sandbox.behind_wall import frames
from grading.sandbox.conversation import Conversation
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call, Cell, Part, Run
from grading.sandbox.server_link import Lost, ServerLink, Talk
from grading.sandbox.staged import read_folder, send_files
from grading.sandbox.wall.kinds import KINDS
from grading.sandbox.wall.plan import IsolationUnavailable, remove_folder

__all__ = ["Box", "ComputeFailed", "open_box", "weaker"]

_MAX_RESULT_BYTES = 8 << 20
_LOADED_FOR_COMPUTING = ("jsonschema", "onnx", "onnxruntime")
"""What checking evidence imports on first use, 0.2 s that no submission should pay; a missing one is no failure."""


class ComputeFailed(RuntimeError):
    """A function of the library could not be run behind the wall, or gave no usable result."""


def open_box(
    limits: Limits | Mapping[str, Any] | None = None,
    isolation: str = "auto",
    cold: bool = False,
    modules: Iterable[str] = (),
    say: bool = True,
) -> "Box":
    """Start a box; use it as a context manager.

    ``isolation`` is "auto" (bubblewrap, else Landlock), or one kind by name; "none" only ever by name.  That it became
    the weaker one is said on standard error, unless ``say`` is false, and is in ``Box.isolation`` in any case.
    ``cold`` gives every submission a fresh kernel over ipc instead of a forked one.  ``modules`` are loaded beforehand
    for :meth:`Box.compute`.
    Raises :class:`IsolationUnavailable`, one line, where nothing can be put in force.
    """
    if isolation not in ("auto", *KINDS):
        raise ValueError(f"isolation is {isolation!r}: expected auto, {', '.join(KINDS)}; correct the name")
    bounds = limits if isinstance(limits, Limits) else Limits.from_dict(limits or {})
    box = Box(bounds, isolation, cold, tuple(modules))
    if say and box.isolation["not_possible"]:
        print(weaker(box.isolation), file=sys.stderr)
    return box


def weaker(isolation: Mapping[str, Any]) -> str:
    """One line about a wall that is not the strongest."""
    return f"a weaker wall, {isolation['kind']} alone, because {'; '.join(isolation['not_possible'])}"


class Box:
    """One slot.  Not for several threads or processes: each worker opens its own."""

    def __init__(self, limits: Limits, isolation: str, cold: bool, modules: tuple[str, ...]) -> None:
        self.limits, self.cold = limits, cold
        self._wanted = isolation
        self._modules = modules
        self._link: ServerLink | None = None
        self._more: list[Talk] = []
        self._compute: socket.socket | None = None
        self.restarts = 0
        self.isolation: dict[str, Any] = {}
        self._open()

    def __enter__(self) -> "Box":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server and everything behind the wall."""
        if self._compute is not None:
            self._compute.close()
            self._compute = None
        for talk in self._more:
            talk.close()
        self._more = []
        if self._link is not None:
            self._link.close()
            self._link = None

    def _open(self) -> ServerLink:
        reasons: list[str] = []
        for kind in ("bubblewrap", "landlock") if self._wanted == "auto" else (self._wanted,):
            if kind == "landlock" and self.cold:
                reasons.append(
                    "a fresh kernel needs sockets that Landlock cannot confine: use bubblewrap, or forked kernels"
                )
                continue
            try:
                link = ServerLink(kind, self.limits)
            except IsolationUnavailable as error:
                reasons.append(str(error))
                continue
            self._link = link
            self._wanted = kind  # a restart must not end up behind a lower wall than the one reported
            self.isolation = self._describe(link, reasons)
            return link
        raise IsolationUnavailable(
            "; ".join(reasons)
            + "; refusing to run students' code unprotected: see the table of walls in docs/security.md"
            if len(reasons) > 1 or self._wanted == "auto"
            else reasons[0]
        )

    def _describe(self, link: ServerLink, reasons: list[str]) -> dict[str, Any]:
        assert link.plan is not None
        memory = (
            f"control group (version {link.group.version}) for all processes, RLIMIT_AS for each"
            if link.group
            else "RLIMIT_AS for each process, private memory of all watched"
        )
        return {
            "kind": link.plan.kind,
            "kernel": "cold" if self.cold else "forked",
            "user_changed": link.plan.config["change_user"],
            "memory": memory,
            **{key: value for key, value in link.plan.notes.items() if key == "landlock_version"},
            "limits": self.limits.to_dict(),
            "not_possible": reasons,
            "boot_seconds": round(link.boot_seconds, 3),
            "seen_from_inside": link.ready,
        }

    # Running --------------------------------------------------------------------------------------------------------

    def run(
        self,
        cells: Iterable[Cell | Mapping[str, Any]],
        files: Path | None = None,
        calls: Iterable[Call | Mapping[str, Any]] = (),
        calls_per_process: int = 10,
    ) -> Run:
        """Run the cells of one notebook in a world of its own, then ask the calls.

        ``files`` is a folder whose regular files are copied into the work folder first.  ``calls_per_process`` calls
        share one forked child; with 1, no call's input is ever in another's memory, for some 7 ms a call.  Never raises
        for anything that the submission does; what ended it early is in ``Run.stopped``.
        """
        return self.run_all([Part.of(cells, files, calls)], calls_per_process)[0]

    def run_all(self, parts: Sequence[Part], calls_per_process: int = 10) -> list[Run]:
        """Run the notebooks of one submission, each in a world of its own, all their cells before the first call.

        Worlds with calls wait until the cells of every notebook have run; then nothing that any of them writes is
        read any more but answers.
        """
        asked = [part for part in parts if part.calls]
        talks = self._talks(max(1, len(asked)))
        runs: dict[int, Run] = {}
        waiting: list[_Session] = []
        for part in sorted(parts, key=lambda part: bool(part.calls)):
            session = _Session(self, talks[len(waiting)], part, calls_per_process)
            session.run_cells()
            if part.calls:
                waiting.append(session)
            else:
                runs[id(part)] = session.end()
                if session.unclean:
                    self._discard()
                    talks = self._talks(max(1, len(asked)))
        for session in waiting:
            session.seal()
        for session in waiting:
            session.ask()
            runs[id(session.part)] = session.end()
        if any(session.unclean for session in waiting):
            self._discard()
        return [runs[id(part)] for part in parts]

    def _talks(self, number: int) -> list[Talk]:
        """As many servers as worlds have to exist at a time: the first, and some forked from it."""
        link = self._server()
        while len(self._more) < number - 1:
            control = self._spawn(())
            if control is None:
                self._discard()
                raise ComputeFailed("no second process could be prepared behind the wall: try again")
            self._more.append(Talk(control, link.group))
        return [link, *self._more]

    def _server(self) -> ServerLink:
        """The running server; another one where it was lost between two submissions."""
        if self._link is not None and not self._link.alive():
            self._discard()
        return self._link or self._open()

    def make_place(self) -> dict[str, Any]:
        """A fresh folder and user for one submission, where the wall needs them from outside."""
        plan = self._server().plan
        return plan.make_place() if plan is not None else {}

    def remove_place(self, place: dict[str, Any]) -> None:
        """Remove what :meth:`make_place` made."""
        if place:
            remove_folder(place["folder"])

    def _discard(self) -> None:
        self.close()
        self.restarts += 1

    # Computing ------------------------------------------------------------------------------------------------------

    def compute(
        self,
        name: str,
        files: Path,
        *arguments: Any,
        seconds: float | None = None,
        max_bytes: int = _MAX_RESULT_BYTES,
        **named: Any,
    ) -> Any:
        """Run ``module:function(folder, *arguments, **named)`` of the installed library on a copy of ``files``, inside.

        Returns its result as plain JSON values.  Raises :class:`ComputeFailed` with one line when the function raised,
        hung, died or answered with something else than bounded JSON.
        """
        staged = read_folder(files, self.limits)
        control = self._compute_server(name.partition(":")[0])
        ours, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            place = self.make_place()
            request = {"op": "compute", "name": name, "arguments": list(arguments), "named": named, "place": place}
            with ours:
                try:
                    control.settimeout(10.0)
                    frames.send(control, request, (theirs.fileno(), null, null))
                    theirs.close()
                    ours.settimeout(10.0)
                    send_files(ours, {}, staged)
                    line = _read_line(ours, time.monotonic() + (seconds or self.limits.seconds_total), max_bytes)
                except OSError as error:
                    raise ComputeFailed(
                        f"{name} did not finish behind the wall ({error}): see the limits; try again"
                    ) from error
                finally:
                    self._end_compute(control)
                    self.remove_place(place)
        finally:
            theirs.close()
            os.close(null)
        return _result(name, line)

    def _compute_server(self, module: str) -> socket.socket:
        """A second fork server with the modules that computing needs, forked before it is first used."""
        self._server()
        if self._compute is None:
            # A module that starts a thread when it is imported cannot be loaded before the fork.
            self._compute = self._spawn((*_LOADED_FOR_COMPUTING, *self._modules, module)) or self._spawn(())
        if self._compute is None:
            self._discard()
            raise ComputeFailed(f"no process could be prepared to compute {module} behind the wall: try again")
        return self._compute

    def _spawn(self, modules: tuple[str, ...]) -> socket.socket | None:
        ours, theirs = socket.socketpair()
        link = self._server()
        try:
            with theirs:
                link.request({"op": "spawn", "modules": list(dict.fromkeys(modules))}, (theirs.fileno(),))
            link.wait_for("spawned")
            ours.settimeout(60.0)
            if frames.receive(ours)[0]["ready"]["threads"] == 1:
                return ours
        except (Lost, frames.Closed, OSError, ValueError, KeyError, TypeError):
            pass
        ours.close()
        return None

    def _end_compute(self, control: socket.socket) -> None:
        try:
            control.settimeout(10.0)
            frames.send(control, {"op": "end"})
            while True:
                event, _ = frames.receive(control)
                if event.get("event") == "ended":
                    if event.get("clean") is not True:
                        self._discard()
                    return
        except (frames.Closed, OSError, ValueError, AttributeError):
            self._discard()


class _Session:
    """One notebook's conversation, from its world's first moment to its last."""

    def __init__(self, box: Box, talk: Talk, part: Part, per_process: int) -> None:
        self.box, self.talk, self.part = box, talk, part
        self.started = time.monotonic()
        self.seconds = 0.0
        self.unclean = False
        self.conversation = Conversation(talk, box.limits, list(part.cells), list(part.calls), per_process)
        self.place = box.make_place()

    def run_cells(self) -> None:
        staged = read_folder(self.part.files, self.box.limits) if self.part.files is not None else []
        with self._going():
            self.conversation.start(staged, self.box.cold, self.place)
            self.conversation.run_cells()

    def seal(self) -> None:
        with self._going():
            self.conversation.seal()

    def ask(self) -> None:
        with self._going():
            self.conversation.ask()

    @contextlib.contextmanager
    def _going(self) -> Iterator[None]:
        """The time it takes is the notebook's; a server that is gone ends it."""
        started = time.monotonic()
        try:
            yield
        except Lost:
            self.conversation.lost()
            self.unclean = True
        finally:
            self.seconds += time.monotonic() - started

    def end(self) -> Run:
        """End the world; a server that does not say that it did so is not used again."""
        processor = 0.0
        with self._going():
            self.conversation.close()
            self.talk.request({"op": "end"})
            ended = self.talk.wait_for("ended")
            processor = float(ended.get("cpu_seconds", 0.0))
            self.unclean = self.unclean or ended.get("clean") is not True
        self.box.remove_place(self.place)
        run = self.conversation.result()
        run.cpu_seconds, run.seconds, run.isolation = processor, self.seconds, self.box.isolation
        return run


def _read_line(sock: socket.socket, deadline: float, max_bytes: int) -> bytes:
    """One line of at most ``max_bytes``; what came so far if the other side closed or the time is over."""
    held = bytearray()
    while (left := deadline - time.monotonic()) > 0 and len(held) <= max_bytes:
        if not select.select([sock], [], [], left)[0]:
            break
        with contextlib.suppress(BlockingIOError):
            chunk = sock.recv(1 << 16, socket.MSG_DONTWAIT)
            if not chunk:
                break
            head, end, _ = chunk.partition(b"\n")
            held += head
            if end:
                return bytes(held)
    return b""


def _result(name: str, line: bytes) -> Any:
    try:
        reply = json.loads(line)
        if reply["ok"] is True:
            return reply["value"]
        kind, message = str(reply["error"]["type"]), " ".join(str(reply["error"]["message"]).split())
    except (ValueError, RecursionError, KeyError, TypeError):
        raise ComputeFailed(
            f"{name} gave no result behind the wall (it hung, died or wrote too much): check the files"
        ) from None
    raise ComputeFailed(f"{name} raised {kind[:80]}: {message[:500]}")
