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

from behind_wall import frames, landlock, privileges, slot, world  # noqa: E402 - found by the line above


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
        self.world: world.World | None = None
        self.home = -1
        self.moved: list[tuple[str, str]] = []
        self.place: dict[str, Any] = {}
        self.spawned: list[int] = []
        self.kernel: Any = None
        self.environment: dict[str, str] = {}

    @property
    def own_mounts(self) -> bool:
        """Whether each child mounts folders of its own."""
        return bool(self.config["kind"] == "bubblewrap")

    def start(self) -> None:
        """Give up what is not needed, load what every submission needs, and serve until the grader goes away."""
        privileges.hide_memory()
        if self.config["kind"] != "bubblewrap":
            privileges.die_with_parent()
        privileges.adopt_orphans()
        privileges.no_new_privileges()
        needed = (
            [privileges.CAP_KILL, privileges.CAP_SETGID, privileges.CAP_SETUID] if self.config["change_user"] else []
        )
        needed += [privileges.CAP_SYS_ADMIN, privileges.CAP_SYS_CHROOT] if self.own_mounts else []
        needed += [privileges.CAP_DAC_READ_SEARCH] if self.config["keep_search"] else []
        if needed:
            privileges.shrink(sum(1 << number for number in needed))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.own_mounts:
            self.home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
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
        self._fork(fds, request, lambda channel: self._child_kernel(channel, request))
        frames.send(self.control, {"event": "started"})

    def do_cold(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a child that starts a fresh kernel over ipc and passes its messages on."""
        self._fork(fds, request, lambda channel: self._child_cold(channel, request))
        frames.send(self.control, {"event": "started"})

    def do_compute(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a child that runs one function of the installed library."""
        self._fork(fds, request, lambda channel: self._child_compute(channel, request))
        frames.send(self.control, {"event": "started"})

    def do_spawn(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a second server, on its own descriptor, with further modules loaded."""
        pid = os.fork()
        if pid == 0:
            self.control.close()
            self.control = socket.socket(fileno=fds[0])
            self.spawned, self.child, self.handle = [], None, None
            privileges.adopt_orphans()
            if not self.own_mounts:
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

    def do_hide(self, _request: dict[str, Any], _fds: list[int]) -> None:
        """Take the library's own summary out of the submission's sight: hidden inputs are about to come in."""
        done = False
        if self.world is not None:
            done = self._in_world(world.hide, self._library_summary())
        elif not self.own_mounts:
            for number, path in enumerate(self._library_summary()):
                aside = os.path.join(self.config["server_home"], f"aside-{number}")
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, aside)
                    self.moved.append((aside, path))
            done = True
        frames.send(self.control, {"event": "hidden", "done": done})

    def _library_summary(self) -> list[str]:
        """Where the library's statistics can be read: their source, and what Python keeps of it compiled."""
        found = []
        for entry in self.config["path"]:
            folder = os.path.join(entry, "deep_learning_cases", "measuring")
            found += [
                path for name in ("stats.py", "__pycache__") if os.path.exists(path := os.path.join(folder, name))
            ]
        return found

    def do_end(self, _request: dict[str, Any], _fds: list[int]) -> None:
        """End the submission and every process of its world; its files end with the world, or are the grader's."""
        self._end_child()
        while self.moved:
            os.rename(*self.moved.pop())
        frames.send(self.control, {"event": "ended", "clean": self._sweep(), "cpu_seconds": self.processor})
        self.status, self.processor = None, 0.0

    # The child ----------------------------------------------------------------------------------------------------

    def _fork(self, fds: list[int], request: dict[str, Any], body: Any) -> None:
        self.place = request.get("place") or {}
        if self.own_mounts:
            self.world = world.World(self.home)
        pid = self.world.fork() if self.world is not None else os.fork()
        if pid == 0:
            self._begin(fds, body)
        for number in fds:
            os.close(number)
        self.child, self.status = pid, None
        self.handle = os.pidfd_open(pid)

    def _begin(self, fds: list[int], body: Any) -> None:
        """In the forked child, which ends here: run the body, confined."""
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

    def _confine(self) -> None:
        """Everything that is given up before the first line of a student's runs."""
        config = self.config | self.place
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
        if self.world is not None:
            self.world.leave()
            world.furnish(config)
        else:
            privileges.die_with_parent()
        privileges.limit_resources(config["limits"], config["processes_now"])
        rules = self._landlock_rules(config)
        if config["change_user"]:
            privileges.become(config["uid"], config["gid"], config["keep_search"])
        elif self.own_mounts:
            privileges.give_up()
        privileges.adopt_orphans()
        if rules is not None:
            landlock.restrict(rules)
            os.close(rules)
        os.makedirs(config["work"], exist_ok=True)
        os.makedirs(config["temporary"], 0o700, exist_ok=True)
        os.chdir(config["work"])
        if config["filter"]:
            privileges.install_filter(bytes.fromhex(config["filter"]))
        for name in config["environment"]:
            os.environ.pop(name, None)
        os.environ.update(self.environment | {"HOME": config["home"], "TMPDIR": config["temporary"]})
        tempfile.tempdir = None  # found anew, from the environment that holds from here on

    def _landlock_rules(self, config: dict[str, Any]) -> int | None:
        """Made in each child: /proc/self is then the child's own folder and nobody else's."""
        if config["kind"] != "landlock":
            return None
        paths = config["landlock"]
        return landlock.ruleset(paths["read_only"], [config["folder"]], paths["devices"])

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
        if self.world is not None:  # the end of the submission's process is the end of its world
            self.world.end()
        self.child = self.handle = self.world = None

    def _sweep(self) -> bool:
        """Kill every process of the submission, also the ones that left its session; True when none is left."""
        if self.own_mounts:  # the kernel has ended its PID namespace with its first process
            self._reap()
            return True
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

    def _in_world(self, action: Any, *arguments: Any) -> bool:
        """Do something in a short-lived child among the submission's mounts, with the server's rights."""
        entered = self.world
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                assert entered is not None
                entered.enter_mounts()
                action(*arguments)
                status = 0
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def _as_student(self, action: Any, *arguments: Any) -> bool:
        """Do something in a short-lived child that has the student's user and rights; False if it failed or hung."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if self.config["change_user"]:
                    privileges.become(self.place["uid"], self.place["gid"], self.config["keep_search"])
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
            and slot.bytes_in([self.place["folder"]]) > limits["folder_mb"] * privileges.MEGABYTE
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
        if self.own_mounts:
            return [self.child, *slot.descendants(self.child, set())] if self.child is not None else []
        uid = self.place.get("uid") if self.config["change_user"] else None
        return slot.strangers({os.getpid(), os.getppid(), *self.spawned}, uid)

    def _report(self) -> dict[str, Any]:
        """What is in force, seen from a child that has given up what a submission's process gives up."""
        reader, writer = os.pipe()
        ours, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_WRONLY)

        def look(_channel: socket.socket) -> None:
            from behind_wall import report

            os.write(writer, json.dumps(report.look()).encode()[:60000])

        with ours:
            self._fork([theirs.detach(), null, os.dup(writer)], {"place": self.config["first_place"]}, look)
        os.close(writer)
        with open(reader, "rb") as stream:
            text = stream.read()
        self._end_child()
        self._sweep()
        try:
            return json.loads(text)
        except ValueError:
            return {"failed": text.decode("utf-8", "replace").strip()[:300] or "no report"}


if __name__ == "__main__":
    main()
