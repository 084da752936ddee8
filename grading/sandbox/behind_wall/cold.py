"""The compatibility path: a fresh kernel over ipc sockets, its messages passed on as lines."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import Empty
from types import FrameType
from typing import Any

from behind_wall import frames, slot

_START_SECONDS = 60.0
_POLL_SECONDS = 0.2
_PASSED_ON = {"stream", "display_data", "execute_result", "update_display_data", "error", "clear_output"}
_CODE = str(Path(__file__).resolve().parents[1])

# Runs in the kernel, silently, once the cells are through; {} are the descriptor, the seconds and the code's folder.
_SERVE = """
import sys as _sys
_sys.path.insert(0, {code!r})
from behind_wall import calls as _calls, privileges as _privileges
_sys.path.remove({code!r})
_privileges.adopt_orphans()
import socket as _socket
_calls.serve(_socket.socket(fileno={number}), lambda: get_ipython().user_ns, {seconds}, False)
"""


def run(channel: socket.socket, request: dict[str, Any]) -> None:
    """Serve one submission with a kernel of its own."""
    Bridge(channel, int(request["output_kb"]) * 4096).serve()


class Bridge:
    """Between the grader's channel and the kernel's ZeroMQ sockets; both ends are behind the wall."""

    def __init__(self, channel: socket.socket, budget: int) -> None:
        self.channel, self.cell_budget, self.budget = channel, budget, budget
        # Unix socket paths are short; /tmp or, without own mounts, the scratch folder.
        self.folder = tempfile.mkdtemp(prefix="k")
        self.process: subprocess.Popen[bytes] | None = None
        self.client: Any = None

    def serve(self) -> None:
        """Requests until the calls have been served or the other side goes away."""
        signal.signal(signal.SIGINT, self._interrupt)
        staged: dict[str, tuple[int, int]] = {}
        while True:
            try:
                request, _ = frames.receive(self.channel, max_bytes=64 << 20, max_fds=0)
            except (frames.Closed, OSError):
                return
            if request["op"] == "files":
                staged = slot.write_files(self.channel, request["files"])
                self._start()
                self._put({"type": "staged"})
            elif request["op"] == "execute":
                self._execute(request)
            elif request["op"] == "changed":
                self._put({"type": "changed", "files": slot.changed_files(staged)})
            elif request["op"] == "calls":
                self._put({"type": "calls"})
                self._serve_calls(float(request["seconds"]))
                return

    def _start(self) -> None:
        from jupyter_client import BlockingKernelClient

        connection = {
            "transport": "ipc",
            "ip": os.path.join(self.folder, "s"),
            **{f"{name}_port": number for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)},
            "key": os.urandom(16).hex(),
            "signature_scheme": "hmac-sha256",
            "kernel_name": "python3",
        }
        path = os.path.join(self.folder, "connection.json")
        Path(path).write_text(json.dumps(connection))
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", path, "--HistoryManager.hist_file=:memory:"]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        self.process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(self.channel.fileno(),),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # the kernel replaces both by streams of its own
        self.client = BlockingKernelClient(connection_file=path)
        self.client.load_connection_file()
        # Without the heartbeat: on a loaded machine it calls a kernel dead that is only slow to start.
        self.client.start_channels(hb=False)
        self.client.wait_for_ready(timeout=_START_SECONDS)

    def _execute(self, request: dict[str, Any]) -> None:
        self.budget = self.cell_budget
        identifier = self.client.execute(request["code"], allow_stdin=False, stop_on_error=False)
        while True:
            message = self._next(self.client.get_iopub_msg)
            if message["parent_header"].get("msg_id") not in (identifier, None):
                continue
            kind = message["msg_type"]
            if kind == "status" and message["content"]["execution_state"] == "idle":
                break
            if kind in _PASSED_ON:
                self._put({"type": kind, "content": message["content"]})
        count = None
        with contextlib.suppress(Empty):
            count = self.client.get_shell_msg(timeout=2.0)["content"].get("execution_count")
        self._put({"type": "done", "id": request["id"], "count": count})

    def _serve_calls(self, seconds: float) -> None:
        code = _SERVE.format(code=_CODE, number=self.channel.fileno(), seconds=seconds)
        self.client.execute(code, silent=True, store_history=False)
        while True:
            self._next(self.client.get_shell_msg)

    def _next(self, get: Any) -> Any:
        """The next message; the end of this process where the kernel has ended."""
        while True:
            try:
                return get(timeout=_POLL_SECONDS)
            except Empty:
                if self.process is not None and self.process.poll() is not None:
                    os._exit(1)

    def _put(self, value: dict[str, Any]) -> None:
        if value["type"] == "clear_output":
            self.budget = self.cell_budget
        line = json.dumps(value, default=str).encode("utf-8", "backslashreplace") + b"\n"
        if value["type"] in _PASSED_ON:
            if len(line) > self.budget:
                line = b'{"type": "cut"}\n'
            else:
                self.budget -= len(line)
        self.channel.sendall(line)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.process.send_signal(signal.SIGINT)
