"""A real IPython kernel whose messages are JSON lines on a socket instead of ZeroMQ frames.

The kernel object is built once in the fork server; a forked child gives it a socket and runs cells.  Everything from
input transformation to display formatting is ipykernel's own code.
"""

import _sitebuiltins
import asyncio
import builtins
import contextlib
import datetime
import functools
import gc
import logging
import os
import random
import signal
import socket
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

from behind_wall import calls, frames, slot
from behind_wall.messages import LineSession, Stream

# The debugger wants threads and a port of its own; a graded notebook is not debugged.
_no_debugger = ModuleType("ipykernel.debugger")
_no_debugger._is_debugpy_available = False
_no_debugger.Debugger = type("Debugger", (), {})
sys.modules.setdefault("ipykernel.debugger", _no_debugger)

from ipykernel import eventloops  # noqa: E402 - after the debugger was taken out
from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from traitlets.config import Config  # noqa: E402


class Kernel:
    """The prepared kernel and what a child does with it."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        IPythonKernel._execute_sleep.default_value = 0.0
        self.session = LineSession(key=b"", config=config)
        # An outlet that is never written to: displayhook and publisher insist on one.
        self.kernel = IPythonKernel(
            session=self.session, iopub_socket=SimpleNamespace(), log=_quiet_log(), config=config
        )
        self.kernel._execute_sleep = 0.0
        self.kernel.shell_channel_thread = SimpleNamespace(
            parent_thread=threading.main_thread(), manager=_NoSubshells()
        )
        self.shell = self.kernel.shell
        # `%matplotlib inline` looks for its kernel in the running IPython application; here there is none.
        eventloops.enable_gui = functools.partial(eventloops.enable_gui, kernel=self.kernel)
        with contextlib.suppress(Exception):
            self.shell.extension_manager.load_extension("storemagic")
        # What Python gives to interactive use at its start; the server started without it.
        builtins.help = _sitebuiltins._Helper()
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
        for code in (
            drawing,
            "1 + 1",
            "import asyncio\nawait asyncio.sleep(0)\ndel asyncio",
            "raise ValueError('warm')",
        ):
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
        self.session.attach(channel, budget=0)
        for stream in self.streams:
            stream.adopt()
        sys.stdout, sys.stderr = self.streams
        self.config = config
        seed_afresh()
        # `%cd` and `%store` write there when they are first used; the server's own folder is not theirs to write to.
        self.shell.profile_dir._trait_values["location"] = os.path.expanduser("~/.ipython/profile_default")
        sys.path.insert(0, "")
        gc.freeze = _nothing  # what is frozen could not be found when the library's summary is switched off
        # What reports on the answers is not a name away from the code that it reports on.
        for name in [name for name in sys.modules if name.partition(".")[0] == "behind_wall"]:
            del sys.modules[name]
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
                staged = slot.write_files(channel, request["files"])
                self.session.put({"type": "staged"})
            elif request["op"] == "execute":
                await self._execute(request)
            elif request["op"] == "changed":
                self.session.put({"type": "changed", "files": slot.changed_files(staged)})
            elif request["op"] == "calls":
                self.session.put({"type": "calls"})
                self.session.mute()
                with contextlib.suppress(Exception):  # nobody sees what a call displays: no picture is drawn for it
                    self.shell.display_formatter.active_types = ["text/plain"]
                calls.serve(
                    channel,
                    lambda: self.shell.user_ns,
                    float(request["seconds"]),
                    bool(self.config["shielded"]),
                )
                return

    async def _execute(self, request: dict[str, Any]) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.session.renew(self.config["output_kb"] * 4096)
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


def _nothing() -> None:
    return


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
