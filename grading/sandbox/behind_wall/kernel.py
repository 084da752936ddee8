"""A real IPython kernel whose messages are JSON lines on a socket instead of ZeroMQ frames.

The kernel object is built once in the fork server; a forked child gives it a socket and runs cells.  Everything from
input transformation to display formatting is ipykernel's own code.
"""

import asyncio
import contextlib
import datetime
import io
import json
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from behind_wall import calls
from behind_wall import frames

# The debugger wants threads and a port of its own; a graded notebook is not debugged.
_no_debugger = ModuleType("ipykernel.debugger")
_no_debugger._is_debugpy_available = False
_no_debugger.Debugger = type("Debugger", (), {})
sys.modules.setdefault("ipykernel.debugger", _no_debugger)

from ipykernel.ipkernel import IPythonKernel
from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from traitlets.config import Config

_STREAM_FLUSH_CHARACTERS = 16 * 1024
_STREAM_FLUSH_SECONDS = 0.2


class LineSession(Session):
    """A session that writes each message as one JSON line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._channel: socket.socket | None = None
        self._owner = 0
        self._budget = 0
        self._lock = threading.RLock()

    def attach(self, channel: socket.socket, budget: int) -> None:
        """Send on ``channel`` from now on, at most ``budget`` bytes (the reader has its own bound, this one is cheaper)."""
        self._channel, self._owner, self._budget = channel, os.getpid(), budget

    def send(  # noqa: PLR0913 - the signature is jupyter_client's
        self, stream, msg_or_type, content=None, parent=None, ident=None, buffers=None, track=False, header=None, metadata=None
    ):  # fmt: skip
        if isinstance(msg_or_type, dict):
            message = msg_or_type
        else:
            message = self.msg(msg_or_type, content=content, parent=parent, header=header, metadata=metadata)
        if self._channel is not None and self.owned():
            self.put({"type": message["header"]["msg_type"], "content": message["content"]})
        return message

    def owned(self) -> bool:
        """Whether this is the process that was attached, and not one forked from it."""
        return os.getpid() == self._owner

    def mute(self) -> None:
        """Send no more: hidden inputs are about to come in."""
        self._owner = 0

    def put(self, value: dict[str, Any]) -> None:
        """Write one line."""
        line = json.dumps(value, default=json_default).encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            if value["type"] in {"stream", "display_data", "execute_result", "update_display_data"}:
                if self._budget < 0:
                    return
                self._budget -= len(line)
                if self._budget < 0:
                    line = b'{"type": "cut"}\n'
            assert self._channel is not None
            self._channel.sendall(line)


class Stream(io.TextIOBase):
    """sys.stdout and sys.stderr of the kernel: text goes out as stream messages, in the order it was written."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, number: int, session: LineSession) -> None:
        super().__init__()
        self.name = name
        self._number, self._session = number, session
        self._owner = os.getpid()
        self._parts: list[str] = []
        self._characters = 0
        self._flushed = time.monotonic()

    def adopt(self) -> None:
        """The process after the fork owns the stream."""
        self._owner = os.getpid()

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        if os.getpid() != self._owner:  # a process the student forked: its text takes the descriptor
            os.write(self._number, text.encode("utf-8", "replace"))
            return len(text)
        self._parts.append(text)
        self._characters += len(text)
        if self._characters > _STREAM_FLUSH_CHARACTERS or time.monotonic() - self._flushed > _STREAM_FLUSH_SECONDS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if os.getpid() != self._owner or not self._parts:
            return
        text, self._parts, self._characters = "".join(self._parts), [], 0
        self._flushed = time.monotonic()
        self._session.send(None, "stream", {"name": self.name, "text": text})

    def set_parent(self, _parent: Any) -> None:
        """Kept for IPython; the reader knows which cell is running."""


class Kernel:
    """The prepared kernel and what a child does with it."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        IPythonKernel._execute_sleep.default_value = 0.0
        self.session = LineSession(key=b"", config=config)
        # An outlet that is never written to: displayhook and publisher insist on one.
        self.kernel = IPythonKernel(session=self.session, iopub_socket=SimpleNamespace(), log=_quiet_log(), config=config)
        self.kernel._execute_sleep = 0.0
        self.kernel.shell_channel_thread = SimpleNamespace(parent_thread=threading.main_thread(), manager=_NoSubshells())
        self.shell = self.kernel.shell
        with contextlib.suppress(Exception):
            self.shell.extension_manager.load_extension("storemagic")
        self.streams = (Stream("stdout", 1, self.session), Stream("stderr", 2, self.session))

    def warm(self) -> None:
        """Run one silent cell and draw one figure, so that no child pays for what happens only once."""
        saved = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.streams
        try:
            asyncio.run(self._warm_cells())
        finally:
            sys.stdout, sys.stderr = saved
        for stream in self.streams:
            stream._parts.clear()
        self.shell.history_manager.reset()
        self.shell.execution_count = 1
        for name in ("plt", "numpy", "_figure", "_axes"):
            self.shell.user_ns.pop(name, None)

    async def _warm_cells(self) -> None:
        import tornado.ioloop

        self.kernel.io_loop = tornado.ioloop.IOLoop.current()
        drawing = (
            "import matplotlib.pyplot as plt, numpy\n_figure, _axes = plt.subplots()\n"
            "_axes.plot([1, 2], label='a')\n_axes.set_title('t')\n_axes.legend()"
        )
        for code in (drawing, "1 + 1", "import asyncio\nawait asyncio.sleep(0)\ndel asyncio", "raise ValueError('warm')"):
            await self.execute("warm", code)

    async def execute(self, identifier: str, code: str) -> None:
        """One execute_request, as ipykernel would get it from a front end."""
        request = {
            "header": {
                "msg_id": identifier,
                "msg_type": "execute_request",
                "session": "grading",
                "username": "grading",
                "version": "5.3",
                "date": datetime.datetime.now(datetime.UTC),
            },
            "parent_header": {},
            "metadata": {"cellId": identifier},
            "content": {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
            "buffers": [],
        }
        request |= {"msg_id": identifier, "msg_type": "execute_request"}
        self.kernel.set_parent([], request, channel="shell")
        await self.kernel.execute_request(None, [], request)

    # In the forked child ------------------------------------------------------------------------------------------

    def run(self, channel: socket.socket, config: dict[str, Any]) -> None:
        """Serve one submission on ``channel`` until its end."""
        self.session.attach(channel, budget=4 * int(config["output_kb"]) * 1024)
        for stream in self.streams:
            stream.adopt()
        sys.stdout, sys.stderr = self.streams
        self.config = config
        seed_afresh()
        sys.path.insert(0, "")
        self.shell.user_ns["__session__"] = "grading"
        asyncio.run(self._serve(channel))

    async def _serve(self, channel: socket.socket) -> None:
        import tornado.ioloop

        self.kernel.io_loop = tornado.ioloop.IOLoop.current()
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        staged: dict[str, tuple[int, int]] = {}
        while True:
            # Waiting in the loop and not in recv lets the student's background tasks go on between two cells.
            readable = loop.create_future()
            loop.add_reader(channel.fileno(), _set_once, readable)
            await readable
            loop.remove_reader(channel.fileno())
            try:
                request, _ = frames.receive(channel, max_bytes=64 << 20, max_fds=0)
            except (frames.Closed, OSError):
                return
            if request["op"] == "files":
                staged = write_files(channel, request["files"])
                self.session.put({"type": "staged"})
            elif request["op"] == "execute":
                await self._execute(request)
            elif request["op"] == "changed":
                self.session.put({"type": "changed", "files": changed_files(staged)})
            elif request["op"] == "calls":
                self.session.put({"type": "calls"})
                self.session.mute()
                calls.serve(channel, lambda: self.shell.user_ns, float(request["seconds"]), bool(self.config["shielded"]))
                return

    async def _execute(self, request: dict[str, Any]) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            await self.execute(request["id"], request["code"])
        except (KeyboardInterrupt, asyncio.CancelledError):
            with contextlib.suppress(Exception):
                self.session.send(
                    None, "error", {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt"]}
                )
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not self.session.owned():  # a process that the cell forked and that fell through to here
            os._exit(1)
        for stream in self.streams:
            stream.flush()
        self.session.put({"type": "done", "id": request["id"], "count": self.shell.execution_count - 1})


def _quiet_log() -> logging.Logger:
    """The kernel logs tracebacks of the student's errors; they are in the outputs already."""
    log = logging.getLogger("kernel")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    log.setLevel(logging.CRITICAL)
    return log


class _NoSubshells:
    """ipykernel asks its subshell manager about queues; there are none."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments: None


def _set_once(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def seed_afresh() -> None:
    """A forked process must not repeat the random numbers of its siblings."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def write_files(channel: socket.socket, listing: list[list[Any]]) -> dict[str, tuple[int, int]]:
    """Write the staged files, whose bytes follow the request, into the work folder."""
    staged = {}
    for name, size in listing:
        path = Path(name)
        content = frames.read_exactly(channel, size)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        about = path.stat()
        staged[str(path)] = (about.st_size, about.st_mtime_ns)
    return staged


def changed_files(staged: dict[str, tuple[int, int]], most: int = 200) -> list[dict[str, Any]]:
    """Names and sizes of regular files that the cells wrote or changed, at most ``most``."""
    found: list[dict[str, Any]] = []
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name))
            with contextlib.suppress(OSError):
                about = os.lstat(path)
                if staged.get(path) != (about.st_size, about.st_mtime_ns) and len(found) < most:
                    found.append({"file": path[:200], "bytes": about.st_size})
        if len(found) >= most:
            break
    return found
