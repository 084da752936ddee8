"""A real hub on loopback, started from deploy/jupyterhub_config.py as an operator would, and stopped for certain."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

from tests.classroom.machine import INSTRUCTORS, STUDENTS, Machine

__all__ = ["Hub"]

_MORE = """
load_subconfig({config!r})
c = get_config()
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.JupyterHub.services.append({{"name": "teacher", "api_token": {token!r}}})
c.JupyterHub.load_roles.append(
    {{
        "name": "teacher",
        "services": ["teacher"],
        "scopes": ["list:users", "admin:users", "admin:servers", "access:servers"],
    }}
)
"""


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Hub:
    """``with Hub(machine) as hub``: the hub answers at ``hub.url``."""

    def __init__(self, machine: Machine, **settings: str) -> None:
        self.machine = machine
        self.url = f"http://127.0.0.1:{_free_port()}"
        self.token = secrets.token_hex(16)
        self.log = machine.run / "hub.log"
        self.settings = settings

    def __enter__(self) -> "Hub":
        self.start()
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; :meth:`__enter__` waits for its first answer as well."""
        machine = self.machine
        config = machine.run / "hub_config.py"
        more = _MORE.format(
            config=str(machine.etc / "jupyterhub_config.py"),
            hub_port=_free_port(),
            api_port=_free_port(),
            token=self.token,
        )
        config.write_text(more)
        config.chmod(0o600)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DLCASES_HUB_URL": self.url,
            "DLCASES_HUB_STATE": str(machine.run / "state"),
            "DLCASES_EXCHANGE": str(machine.exchange),
            "DLCASES_STUDENTS": STUDENTS,
            "DLCASES_INSTRUCTORS": INSTRUCTORS,
            "DLCASES_PROXY": str(machine.proxy),
            **self.settings,
        }
        self.log.touch(mode=0o600)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [machine.venv / "bin" / "jupyterhub", "-f", config],
                cwd=machine.run,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + 180
        while True:
            try:
                self.api("GET", "/")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the hub did not start:\n{self.tail()}") from None
                time.sleep(0.3)

    def stop(self) -> None:
        """Ask, wait (a hub takes its time), insist."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(90)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def tail(self, lines: int = 30) -> str:
        """The end of the hub's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def api(self, method: str, path: str, timeout: float = 30) -> Any:
        """A call of the hub's REST API as the teacher's service."""
        return self._ask(method, f"{self.url}/hub/api{path}", timeout)[1]

    def server(self, method: str, user: str, path: str, timeout: float = 300, body: bytes = b"") -> tuple[int, Any]:
        """A call of one user's own server: (status, JSON or text)."""
        try:
            return self._ask(method, f"{self.url}/user/{user}{path}", timeout, body)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def _ask(self, method: str, url: str, timeout: float, body: bytes = b"") -> tuple[int, Any]:
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, data=body or None, method=method, headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as answer:
            text = answer.read().decode()
            try:
                return answer.status, json.loads(text) if text else None
            except ValueError:
                return answer.status, text

    def start_server(self, user: str) -> float:
        """Start a user's server and wait until it is ready; returns the seconds it took."""
        began = time.monotonic()
        self.begin_server(user)
        while not self.ready(user):
            if time.monotonic() - began > 180:
                raise RuntimeError(f"the server of {user} is not ready after 180 s:\n{self.tail()}")
            time.sleep(0.3)
        return time.monotonic() - began

    def begin_server(self, user: str) -> None:
        """Ask for a server, if there is none yet, without waiting for it."""
        try:
            self.api("POST", f"/users/{user}", timeout=60)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
        if not self.api("GET", f"/users/{user}")["servers"]:
            self.api("POST", f"/users/{user}/server", timeout=180)

    def ready(self, user: str) -> bool:
        """Whether the user's server answers."""
        return bool(self.api("GET", f"/users/{user}")["servers"].get("", {}).get("ready"))

    def stop_server(self, user: str) -> None:
        """Stop a user's server and wait for its end."""
        self.api("DELETE", f"/users/{user}/server", timeout=120)
        for _ in range(300):
            if not self.api("GET", f"/users/{user}")["servers"]:
                return
            time.sleep(0.2)
