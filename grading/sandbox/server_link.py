"""The outside end of one fork server: starts the wall, keeps its control socket, ends it."""

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
import time
from typing import Any

from grading.sandbox.behind_wall import frames
from grading.sandbox.limits import Limits
from grading.sandbox.wall.control_groups import ControlGroup, make_group
from grading.sandbox.wall.kinds import make_plan
from grading.sandbox.wall.plan import IsolationUnavailable, Plan, remove_folder

__all__ = ["Lost", "ServerLink", "Talk"]

_BOOT_SECONDS = 60.0
_ANSWER_SECONDS = 15.0


class Lost(Exception):
    """The server inside the wall is gone or does not answer; the box starts another."""


class Talk:
    """Requests to one fork server and events of it."""

    def __init__(self, control: socket.socket, group: ControlGroup | None) -> None:
        self.control, self.group = control, group

    def request(self, value: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        """Send a request; Lost if nobody is there."""
        try:
            self.control.settimeout(_ANSWER_SECONDS)
            frames.send(self.control, value, fds)
        except OSError as error:
            raise Lost(str(error)) from error

    def event(self, seconds: float = _ANSWER_SECONDS) -> dict[str, Any] | None:
        """The next event, or None if none comes within ``seconds``; Lost if the server is gone."""
        try:
            if not select.select([self.control], [], [], seconds)[0]:
                return None
            self.control.settimeout(_ANSWER_SECONDS)
            value, fds = frames.receive(self.control)
        except (frames.Closed, OSError, ValueError, json.JSONDecodeError) as error:
            raise Lost(str(error)) from error
        for number in fds:
            os.close(number)
        if not isinstance(value, dict):
            raise Lost("not an event")
        return value

    def wait_for(self, name: str, seconds: float = _ANSWER_SECONDS) -> dict[str, Any]:
        """Read events until the one called ``name`` comes; Lost if it does not."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            event = self.event(left)
            if event is not None and (event.get("event") == name or name in event):
                return event
        raise Lost(f"no {name}")

    def close(self) -> None:
        """Close this end; a server that was forked from another ends by that."""
        with contextlib.suppress(OSError):
            self.control.close()


class ServerLink(Talk):
    """A running fork server behind a wall of one kind, which this end has started."""

    def __init__(self, kind: str, limits: Limits) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours, make_group(limits) if kind != "none" else None)
        self.process: subprocess.Popen[bytes] | None = None
        self.plan: Plan | None = None
        started = time.monotonic()
        try:
            with theirs:
                self._start(kind, limits, theirs)
            self.ready = self._boot()
        except BaseException:
            self.close()
            raise
        self.boot_seconds = time.monotonic() - started

    def _start(self, kind: str, limits: Limits, theirs: socket.socket) -> None:
        self.plan = plan = make_plan(kind, limits, theirs.fileno(), self.group is not None)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        command = (self.group.enter_command() if self.group else []) + plan.command
        try:
            self.process = subprocess.Popen(
                command,
                env=plan.environment,
                pass_fds=(theirs.fileno(), *plan.pass_fds),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise IsolationUnavailable(
                f"{plan.command[0]} does not start ({error.strerror}): install it anew"
            ) from error
        finally:
            plan.close()

    def _boot(self) -> dict[str, Any]:
        assert self.plan is not None
        try:
            self.control.settimeout(_BOOT_SECONDS)
            frames.send(self.control, self.plan.config)
            frames.receive(self.control)
            ready: dict[str, Any] = frames.receive(self.control)[0]["ready"]
        except (frames.Closed, OSError, ValueError, KeyError, TypeError) as error:
            raise IsolationUnavailable(
                f"isolation by {self.plan.kind} does not start ({self._complaint() or error}): expected a kernel that "
                "permits it; install bubblewrap, permit user namespaces, or name another isolation"
            ) from error
        finally:
            if self.plan.config["first_place"]:
                remove_folder(self.plan.config["first_place"]["folder"])
        if "failed" in ready:
            raise IsolationUnavailable(
                f"isolation by {self.plan.kind} cannot be put in force ({ready['failed']}): expected a kernel that "
                "permits mount and PID namespaces to it; permit them (docs/security.md), or name another isolation"
            )
        return ready

    def _complaint(self) -> str:
        """The last line that bubblewrap or the server wrote about its failure."""
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2.0)
        self.errors.seek(max(0, os.fstat(self.errors.fileno()).st_size - 4000))
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def alive(self) -> bool:
        """Whether the server's process is still there."""
        return self.process is not None and self.process.poll() is None

    def close(self) -> None:
        """End the server and everything behind its wall."""
        super().close()
        if self.process is not None:
            try:
                # A server without a PID namespace hunts its children when it sees the end; bubblewrap is just killed.
                self.process.wait(3.0 if self.plan and self.plan.kind != "bubblewrap" else 0.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.errors.close()
        if self.plan is not None:
            self.plan.remove()
        if self.group is not None:
            self.group.remove()
