"""The outside's talk with one submission's process: cells in, messages out, then the calls; always against a clock."""

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections import deque
from typing import Any

from grading.sandbox import answers
from grading.sandbox.asking import Asker
from grading.sandbox.limits import Limits
from grading.sandbox.lines import Lines
from grading.sandbox.outputs import Outputs
from grading.sandbox.run_parts import Call, Cell, Run
from grading.sandbox.server_link import Lost, Talk
from grading.sandbox.staged import send_files

__all__ = ["Conversation"]

_GRACE_SECONDS = 3.0
_START_SECONDS = 60.0
_CHUNK = 1 << 16
_FLOOD_FACTOR = 64
_LENGTH = struct.Struct("!I")


class _Ended(Exception):
    """The submission's process is gone or was stopped; the reason is noted."""


class Conversation:
    """One run; ``result`` is complete whatever happened before."""

    def __init__(self, link: Talk, limits: Limits, cells: list[Cell], calls: list[Call], per_child: int) -> None:
        self.per_child = per_child
        self.link, self.limits, self.cells, self.calls = link, limits, cells, calls
        kilobyte = limits.output_kb * 1024
        self.outputs = Outputs(len(cells), kilobyte, limits.sentence("output"))
        self.lines = Lines(2 * kilobyte + _CHUNK)
        self.run = Run()
        self.current = 0
        self.discarded = 0
        self.pending: deque[tuple[dict[str, Any], int]] = deque()
        self.exited = self.sealed = False
        self.killed_for = ""
        self.channel: socket.socket | None = None
        self.pipes: dict[int, str] = {}
        self.kills_before = link.group.out_of_memory() if link.group else 0
        self.counts: list[int | None] = [None] * len(cells)

    def start(self, staged: list[tuple[str, bytes]], cold: bool, place: dict[str, Any]) -> None:
        """Have the server fork the submission's process and hand it its files."""
        ours, theirs = socket.socketpair()
        out_reader, out_writer = os.pipe()
        error_reader, error_writer = os.pipe()
        self.channel, self.pipes = ours, {out_reader: "stdout", error_reader: "stderr"}
        for number in self.pipes:
            os.set_blocking(number, False)
        try:
            request = {"op": "cold" if cold else "run", "output_kb": self.limits.output_kb, "place": place}
            self.link.request(request, (theirs.fileno(), out_writer, error_writer))
        finally:
            theirs.close()
            os.close(out_writer)
            os.close(error_writer)
        self.link.wait_for("started")
        self.deadline = time.monotonic() + self.limits.seconds_total
        with contextlib.suppress(_Ended):
            self._send_files(staged)
            self._until("staged", time.monotonic() + _START_SECONDS)

    def _send_files(self, staged: list[tuple[str, bytes]]) -> None:
        assert self.channel is not None
        self.channel.settimeout(30.0)
        try:
            send_files(self.channel, {"op": "files"}, staged)
        except OSError:
            self._died()

    def run_cells(self) -> None:
        """Run the cells in order; an exception in one does not keep the next from running."""
        with contextlib.suppress(_Ended):
            for index, cell in enumerate(self.cells):
                if not cell.run:
                    continue
                self.current = index
                self.outputs.begin()
                self._run_cell(index, cell)
                self.run.finished.append(cell.id)
            self._request({"op": "changed"})
            self.run.files = _file_list(self._until("changed", time.monotonic() + 10.0).get("files"))

    def _run_cell(self, index: int, cell: Cell) -> None:
        if self.run.stopped is not None and self.exited:
            raise _Ended
        self._request({"op": "execute", "id": f"cell-{index}", "code": cell.source})
        limit = time.monotonic() + self.limits.seconds_per_cell
        done = self._until("done", min(limit, self.deadline), f"cell-{index}", give_up=False)
        if done is None:
            why = "time" if limit <= self.deadline else "total"
            self._stop(why)
            if why == "total":
                self._kill()
            self.link.request({"op": "interrupt"})
            done = self._until("done", time.monotonic() + _GRACE_SECONDS, f"cell-{index}", give_up=False)
            if done is None:
                self._kill()
        count = done.get("count") if done else None
        self.counts[index] = (
            count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 31 else None
        )
        self._drain_pipes()

    # Calls ----------------------------------------------------------------------------------------------------------

    def seal(self) -> None:
        """From here on nothing that the process writes is read but answers: a hidden input may come to exist."""
        if self.calls and not self.exited and self.channel is not None:
            with contextlib.suppress(_Ended):
                self._request({"op": "calls", "seconds": self.limits.seconds_all_calls + self.limits.seconds_per_call})
                self._until("calls", time.monotonic() + 10.0)
                self.link.request({"op": "hide"})
                self.sealed = self.link.wait_for("hidden").get("done") is True
        self._close_pipes()

    def ask(self) -> None:
        """Ask every call of a run that is sealed."""
        if not self.sealed or self.exited or self.channel is None:
            return
        known = answers.known_names([cell.source for cell in self.cells])
        self.run.asked = True
        self.run.answers = Asker(self.channel, self.limits, self.link.control, self._has_ended).ask(
            self.calls, self.per_child, known
        )

    # Reading --------------------------------------------------------------------------------------------------------

    def _until(self, kind: str, deadline: float, identifier: str | None = None, give_up: bool = True) -> Any:
        """Read until a message of ``kind``; past the deadline None, or the end of the run if ``give_up``."""
        assert self.channel is not None
        while True:
            while self.pending:
                message, size = self.pending.popleft()
                if message["type"] == kind and (identifier is None or message.get("id") == identifier):
                    return message
                self.outputs.message(self.current, message, size)
            left = deadline - time.monotonic()
            if left <= 0:
                if give_up:
                    self._stop("died")
                    self._kill()
                return None
            ready = select.select([self.channel, self.link.control, *self.pipes], [], [], left)[0]
            for number in [n for n in self.pipes if n in ready]:
                self._read_pipe(number)
            if self.channel in ready:
                self._read_channel()
            elif self.link.control in ready:
                self._event()
                if self.exited:
                    self._died()

    def _read_channel(self) -> None:
        assert self.channel is not None
        try:
            chunk = self.channel.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._died()
        before = self.lines.skipped
        self.pending.extend(self.lines.feed(chunk))
        if self.lines.skipped > before:
            self.outputs.message(self.current, {"type": "cut"}, 0)
        self._count(len(chunk))

    def _read_pipe(self, number: int) -> int:
        try:
            chunk = os.read(number, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        if not chunk:
            os.close(number)
            del self.pipes[number]
            return 0
        # Python's own text that was written before is in the socket; it is taken first.
        self.outputs.text(self.current, self.pipes[number], chunk)
        self._count(len(chunk))
        return len(chunk)

    def _drain_pipes(self) -> None:
        for number in list(self.pipes):
            for _ in range(1024):
                if not self._read_pipe(number):
                    break

    def _count(self, size: int) -> None:
        self.discarded += size
        if self.discarded > _FLOOD_FACTOR * self.limits.output_kb * 1024:
            self._stop("output")
            self._kill()

    # Ends -----------------------------------------------------------------------------------------------------------

    def _event(self) -> None:
        event = self.link.event(0.0)
        if event is None:
            return
        if event.get("event") in ("memory", "folder"):
            self.killed_for = str(event["event"])
        elif event.get("event") == "exited":
            self.exited = True

    def _has_ended(self) -> bool:
        """Take an event of the server's; whether it says that the process has ended."""
        self._event()
        return self.exited

    def _request(self, value: dict[str, Any]) -> None:
        assert self.channel is not None
        body = json.dumps(value).encode()
        try:
            self.channel.settimeout(5.0)
            self.channel.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            self._died()

    def _died(self) -> None:
        """The process is gone: take what it still said, find out why."""
        self.exited = True
        self._drain_pipes()
        with contextlib.suppress(Lost):
            while select.select([self.link.control], [], [], 0.05)[0]:
                self._event()
        killed = self.link.group is not None and self.link.group.out_of_memory() > self.kills_before
        self._stop(self.killed_for or ("memory" if killed else "died"))
        raise _Ended

    def _kill(self) -> None:
        self.exited = True
        self.link.request({"op": "kill"})
        raise _Ended

    def lost(self) -> None:
        """The server itself is gone; the submission loses its run, nobody else anything."""
        self.exited = True
        self._stop("died")

    def _stop(self, why: str) -> None:
        if self.run.stopped is None:
            cell = self.cells[self.current].id if self.cells else None
            self.run.stopped = {
                "why": "time" if why == "total" else why,
                "cell": cell,
                "message": self.limits.sentence(why),
            }

    def _close_pipes(self) -> None:
        for number in self.pipes:
            os.close(number)
        self.pipes = {}

    def close(self) -> None:
        """Close this end; the process may live on until the box ends it."""
        self._close_pipes()
        if self.channel is not None:
            self.channel.close()

    def result(self) -> Run:
        """The run; calls that were not reached say so."""
        run = self.run
        for cell, outputs, count, cut in zip(
            self.cells, self.outputs.finished(), self.counts, self.outputs.cut, strict=True
        ):
            run.outputs[cell.id] = outputs
            run.execution_counts[cell.id] = count
            if cut:
                run.cut.append(cell.id)
        for call in self.calls:
            run.answers.setdefault(call.id, answers.failed("NotAsked"))
        return run


def _file_list(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [
        {"file": item["file"][:200], "bytes": item["bytes"]}
        for item in value[:200]
        if isinstance(item, dict) and isinstance(item.get("file"), str) and isinstance(item.get("bytes"), int)
    ]
