"""The fork server inside the wall: clean, single-threaded, warmed; one forked child per submission.

It never runs anything of a student's, reads nothing that a student's process wrote, and holds nothing of the course:
whatever its children inherit is only the installed libraries.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from typing import Any

CODE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, CODE)

from behind_wall import frames, landlock, privileges, slot  # noqa: E402 - found by the line above


def main() -> None:
    """Take the configuration from the descriptor that is named on the command line, and serve."""
    gc.disable()  # until everything is imported: it all stays
    control = socket.socket(fileno=int(sys.argv[1]))
    config, _ = frames.receive(control)
    sys.path[:] = [CODE, *config["path"]]
    sys.prefix = sys.exec_prefix = config["prefix"]
    sys.executable = config["executable"]
    Server(control, config).start()


class Server:
    """Forks children on request; ``warm`` decides what they find loaded."""

    def __init__(self, control: socket.socket, config: dict[str, Any]) -> None:

        self.control, self.config = control, config
        self.child: int | None = None
        self.handle: int | None = None
        self.status: int | None = None
        self.processor = 0.0
        self.spawned: list[int] = []
        self.kernel: Any = None
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        """Give up what is not needed, load what every submission needs, and serve until the grader goes away."""
        privileges.hide_memory()
        if self.config["kind"] != "bubblewrap":
            privileges.die_with_parent()
        privileges.adopt_orphans()
        privileges.no_new_privileges()
        if self.config["change_user"]:
            needed = [privileges.CAP_KILL, privileges.CAP_SETGID, privileges.CAP_SETUID]
            needed += [privileges.CAP_DAC_READ_SEARCH] if self.config["keep_search"] else []
            privileges.shrink(sum(1 << number for number in needed))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.environment = dict(os.environ)
        os.environ.update(self.config["environment"])
        os.umask(0o022)
        frames.send(self.control, {"booting": os.getpid()})
        self._warm_kernel()
        frames.send(self.control, {"ready": self._report()})
        self.serve()

    def _warm_kernel(self) -> None:
        # rfc3987_syntax (a format checker of jsonschema) takes 1.2 s to import and is not needed to run cells.
        sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
        import numpy.random
        import numpy.testing  # noqa: F401

        with contextlib.suppress(ImportError):
            import deep_learning_cases.measuring.stats  # noqa: F401
        from behind_wall import cold, compute, kernel, report  # noqa: F401 - loaded before the path is hidden

        sys.path.pop(0)
        os.makedirs(os.environ["HOME"], exist_ok=True)
        home = os.getcwd()
        os.chdir("/")
        self.kernel = kernel.Kernel()
        self.kernel.warm()
        os.chdir(home)
        # Where server and submissions share a user, this folder is writable for both: it is emptied like the others.
        slot.empty_folder(self.config["server_home"], [])
        gc.collect()
        gc.freeze()
        gc.enable()

    def serve(self) -> None:
        """Requests of the grader, and the end of a child, until the grader goes away."""
        while True:
            waiting = [self.control] + ([self.handle] if self.handle is not None else [])
            ready = select.select(waiting, [], [], self._tick())[0]
            if self.handle is not None and self.handle in ready:
                self._collect()
                frames.send(self.control, {"event": "exited", "status": self.status})
            if self.control in ready:
                try:
                    request, fds = frames.receive(self.control)
                except (frames.Closed, OSError):
                    break
                getattr(self, f"do_{request['op']}")(request, fds)
            elif not ready:
                self._watch()
        self._end_child()
        self._sweep()

    # Requests -----------------------------------------------------------------------------------------------------

    def do_run(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork the child of one submission: channel, stdout and stderr come as descriptors."""
        self._fork(fds, lambda channel: self._child_kernel(channel, request))

    def do_cold(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a child that starts a fresh kernel over ipc and passes its messages on."""
        self._fork(fds, lambda channel: self._child_cold(channel, request))

    def do_compute(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a child that runs one function of the installed library."""
        self._fork(fds, lambda channel: self._child_compute(channel, request))

    def do_spawn(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a second server, on its own descriptor, with further modules loaded."""
        pid = os.fork()
        if pid == 0:
            self.control.close()
            self.control = socket.socket(fileno=fds[0])
            self.spawned, self.child, self.handle = [], None, None
            if self.config["kind"] != "bubblewrap":
                privileges.die_with_parent()
            privileges.hide_memory()
            import importlib

            failed = {}
            for name in request["modules"]:
                try:
                    importlib.import_module(name)
                except Exception as error:
                    failed[name] = f"{type(error).__name__}: {error}"[:300]
            gc.collect()
            gc.freeze()
            try:
                # A process with a second thread must not fork: its children could wait for ever for that thread.
                threads = len(os.listdir("/proc/self/task"))
                frames.send(self.control, {"ready": {"failed": failed, "threads": threads}})
                if threads == 1:
                    self.serve()
            finally:
                os._exit(0)
        os.close(fds[0])
        self.spawned.append(pid)
        frames.send(self.control, {"spawned": pid})

    def do_interrupt(self, _request: dict[str, Any], _fds: list[int]) -> None:
        """Ctrl-C for the child."""
        self._signal(signal.SIGINT)

    def do_kill(self, _request: dict[str, Any], _fds: list[int]) -> None:
        """End the child at once."""
        self._signal(signal.SIGKILL)

    def do_end(self, _request: dict[str, Any], _fds: list[int]) -> None:
        """End the submission: its processes first, then its files."""
        self._end_child()
        swept = self._sweep()
        emptied = self._empty() if swept else False
        frames.send(self.control, {"event": "ended", "clean": swept and emptied, "cpu_seconds": self.processor})
        self.status, self.processor = None, 0.0

    # The child ----------------------------------------------------------------------------------------------------

    def _fork(self, fds: list[int], body: Any) -> None:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self.control.close()
                channel = socket.socket(fileno=fds[0])
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                os.dup2(fds[1], 1)
                os.dup2(fds[2], 2)
                for number in (null, *fds[1:]):
                    os.close(number)
                self._confine()
                body(channel)
                status = 0
            except BaseException as error:
                with contextlib.suppress(Exception):
                    os.write(2, f"{type(error).__name__}: {error}\n".encode()[:500])
            finally:
                os._exit(status)
        for number in fds:
            os.close(number)
        self.child, self.status = pid, None
        self.handle = os.pidfd_open(pid)
        frames.send(self.control, {"event": "started", "pid": pid})

    def _confine(self) -> None:
        """Everything that is given up before the first line of a student's runs."""
        config = self.config
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
        if config["kind"] != "bubblewrap":
            privileges.die_with_parent()
        privileges.limit_resources(config["limits"], config["processes_now"])
        rules = self._landlock_rules()
        if config["change_user"]:
            privileges.become(config["uid"], config["gid"], config["keep_search"])
        privileges.adopt_orphans()
        if rules is not None:
            landlock.restrict(rules)
            os.close(rules)
        if config["filter"]:
            privileges.install_filter(bytes.fromhex(config["filter"]))
        os.makedirs(config["work"], exist_ok=True)
        os.makedirs(config["temporary"], 0o700, exist_ok=True)
        os.chdir(config["work"])
        for name in self.config["environment"]:
            os.environ.pop(name, None)
        os.environ.update(self.environment)
        tempfile.tempdir = None  # found anew, from the environment that holds from here on

    def _landlock_rules(self) -> int | None:
        """Made in each child: /proc/self is then the child's own folder and nobody else's."""
        if self.config["kind"] != "landlock":
            return None
        paths = self.config["landlock"]
        return landlock.ruleset(paths["read_only"], paths["read_write"], paths["devices"])

    def _child_kernel(self, channel: socket.socket, request: dict[str, Any]) -> None:
        self.kernel.run(channel, request | {"shielded": self.config["shielded"]})

    def _child_cold(self, channel: socket.socket, request: dict[str, Any]) -> None:
        from behind_wall import cold

        cold.run(channel, request | {"shielded": self.config["shielded"]})

    def _child_compute(self, channel: socket.socket, request: dict[str, Any]) -> None:
        from behind_wall import compute

        compute.run(channel, request)

    # Ending ---------------------------------------------------------------------------------------------------------

    def _signal(self, number: int) -> None:
        if self.child is not None:
            with contextlib.suppress(OSError):
                os.kill(self.child, number)

    def _end_child(self) -> None:
        if self.child is None:
            return
        self._signal(signal.SIGKILL)
        self._collect()

    def _collect(self) -> None:
        if self.child is None:
            return
        with contextlib.suppress(ChildProcessError):
            _, status, usage = os.wait4(self.child, 0)
            self.status, self.processor = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        if self.handle is not None:
            os.close(self.handle)
        self.child = self.handle = None

    def _sweep(self) -> bool:
        """Kill every process of the submission, also the ones that left its session; True when none is left."""
        deadline = time.monotonic() + 2.0
        rounds = 0
        while time.monotonic() < deadline:
            self._reap()
            left = self._strangers()
            if not left:
                self._reap()
                return True
            rounds += 1
            if rounds > 2 and self.config["change_user"]:
                # One system call that no fork can overtake, made as the student's user.
                self._as_student(os.kill, -1, signal.SIGKILL)
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001 * rounds)
        return not self._strangers()

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.spawned:
                self.spawned.remove(pid)

    def _empty(self) -> bool:
        """Empty the writable folders, as the student's user; False when something is left."""
        # A library that was loaded late may have written here as the server's user; no link is followed in removing it.
        if os.listdir(self.config["server_home"]):
            slot.empty_folder(self.config["server_home"], [])
        if slot.is_untouched(self.config["work"], self.config["writable"], self.config["kept"]):
            return True
        return self._as_student(slot.empty_folders, self.config["writable"], self.config["kept"])

    def _as_student(self, action: Any, *arguments: Any) -> bool:
        """Do something in a short-lived child that has the student's user and rights; False if it failed or hung."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if self.config["change_user"]:
                    privileges.become(self.config["uid"], self.config["gid"], self.config["keep_search"])
                status = 0 if action(*arguments) is not False else 1
            finally:
                os._exit(status)
        handle = os.pidfd_open(pid)
        if not select.select([handle], [], [], 3.0)[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(handle)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, -signal.SIGKILL if action is os.kill else 0)

    # Watching ------------------------------------------------------------------------------------------------------

    def _tick(self) -> float | None:
        """How long to wait for a request: only a wall without control group or sized mounts has to look around."""
        watched = not self.config["control_group"] or self.config["kind"] != "bubblewrap"
        return 0.2 if self.child is not None and watched else None

    def _watch(self) -> None:
        """Where nothing else bounds them: memory of all processes of a submission together, and its files."""
        limits = self.config["limits"]
        if (
            self.child is not None
            and self.config["kind"] != "bubblewrap"
            and slot.bytes_in(self.config["writable"]) > limits["folder_mb"] * privileges.MEGABYTE
        ):
            frames.send(self.control, {"event": "folder"})
            self._signal(signal.SIGKILL)
            return
        if self.config["control_group"]:
            return
        if self.child is not None and slot.private_bytes(self._strangers()) > (
            (limits["memory_mb"] + limits["shared_mb"]) * privileges.MEGABYTE
        ):
            frames.send(self.control, {"event": "memory"})
            self._signal(signal.SIGKILL)

    def _strangers(self) -> list[int]:
        """Live processes that belong to a submission."""
        uid = self.config["uid"] if self.config["change_user"] else None
        return slot.strangers({1, os.getpid(), os.getppid(), *self.spawned}, uid, self.config["pid_namespace"])

    def _report(self) -> dict[str, Any]:
        """What is in force, seen from a child that has given up what a submission's process gives up."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reader)
                self._confine()
                from behind_wall import report

                os.write(writer, json.dumps(report.look()).encode()[:60000])
            except BaseException as error:
                os.write(writer, json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as stream:
            text = stream.read()
        os.waitpid(pid, 0)
        return json.loads(text)


if __name__ == "__main__":
    main()
