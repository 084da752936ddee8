"""Hidden inputs go in, answers come out: one at a time, against a clock, over a socket pair per forked child."""

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from grading.sandbox import answers
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call

__all__ = ["Asker"]

_CHUNK = 1 << 16
_HANGS_UNTIL_GIVING_UP = 3
_LENGTH = struct.Struct("!I")


class Asker:
    """Asks over ``channel`` of a process that serves calls; ``control`` and ``has_ended`` tell of its end."""

    def __init__(
        self, channel: socket.socket, limits: Limits, control: socket.socket, has_ended: Callable[[], bool]
    ) -> None:
        self.channel, self.limits, self.control, self.has_ended = channel, limits, control, has_ended
        self.exited = False

    def ask(self, calls: list[Call], per_child: int, known: frozenset[str]) -> dict[str, dict[str, Any]]:
        """In groups of one child each; a call that ends or hangs its child is lost, the next one gets a new child."""
        deadline = time.monotonic() + self.limits.seconds_all_calls
        given: dict[str, dict[str, Any]] = {}
        group: socket.socket | None = None
        hangs = in_group = 0
        for call in calls:
            if time.monotonic() > deadline or hangs >= _HANGS_UNTIL_GIVING_UP or self.exited:
                given[call.id] = answers.failed("Died" if self.exited else "TimeLimit")
                continue
            if group is None or in_group >= per_child:
                group, in_group = self._new_group(group), 0
            if group is None:
                given[call.id] = answers.failed("Died")
                continue
            answer, alive = self._ask_one(group, call, known)
            given[call.id] = answer
            in_group += 1
            if not alive:
                hangs += answer["error"]["type"] == "TimeLimit"
                group = self._new_group(group, ended=True)
        if group is not None:
            group.close()
        return given

    def _new_group(self, old: socket.socket | None, ended: bool = False) -> socket.socket | None:
        """Have the process fork the child of the next calls; after ``ended`` the old child is called off first."""
        if old is not None:
            old.close()
        try:
            if ended:
                self.channel.send(b"k")
                return None
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self.channel, [b"c"], [theirs.fileno()])
        except OSError:
            self.exited = True
            return None
        return ours

    def _ask_one(self, sock: socket.socket, call: Call, known: frozenset[str]) -> tuple[dict[str, Any], bool]:
        """The answer, and whether the child that gave it can be asked again."""
        question = {
            "function": call.function,
            "arguments": call.handed_over(),
            "container": call.container,
        }
        body = json.dumps(question).encode()
        most = sum(len(one) for one in call.handed_over() if isinstance(one, list | tuple))
        started = time.monotonic()
        try:
            sock.settimeout(self.limits.seconds_per_call)
            sock.sendall(_LENGTH.pack(len(body)) + body)
            line = self._answer_line(sock, started + self.limits.seconds_per_call, 65536 + 64 * most)
        except OSError:
            line = b""
        if line:
            return answers.checked(line, known, most), True
        late = time.monotonic() - started >= self.limits.seconds_per_call and not self.exited
        return answers.failed("TimeLimit" if late else "Died"), False

    def _answer_line(self, sock: socket.socket, deadline: float, most: int) -> bytes:
        held = bytearray()
        while (left := deadline - time.monotonic()) > 0 and len(held) <= most:
            ready = select.select([sock, self.control], [], [], left)[0]
            if sock in ready:
                chunk = sock.recv(_CHUNK, socket.MSG_DONTWAIT)
                head, end, _ = chunk.partition(b"\n")
                held += head
                if end:
                    return bytes(held)
                if not chunk:
                    return b""
            elif ready:
                self.exited = self.has_ended()
                if self.exited:
                    return b""
        return b""
