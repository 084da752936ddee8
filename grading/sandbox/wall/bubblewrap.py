"""The wall of bubblewrap: own namespaces and an allow-list of read-only folders around a fork server.

Started as root, bubblewrap makes no user namespace: the server keeps what it needs to become another user, and each
child really changes to one.  Started as an ordinary user, a user namespace does the same within what that user may do.
In both the server makes every submission a world of its own (``behind_wall/world.py``).
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path

from grading.sandbox.limits import Limits
from grading.sandbox.wall.places import (
    BEHIND_WALL,
    course_folder,
    library_folder,
    module_path,
    new_uid,
    processes_of_user,
    python_folders,
    server_environment,
    student_environment,
    tidy,
)
from grading.sandbox.wall.plan import IsolationUnavailable, Plan

__all__ = ["bubblewrap_plan"]

_HOME = "/home/student"
_SERVER_HOME = "/run/server"
_CODE, _LIBRARY = "/lab/sandbox", "/lab/lib"
_STUDENT = 1000
_WRITABLE = [_HOME, "/tmp", "/dev/shm", _SERVER_HOME]


def bubblewrap_plan(limits: Limits, control_fd: int, program: bytes) -> Plan:
    """How to start the server inside bubblewrap; IsolationUnavailable where there is no such command."""
    tool = shutil.which("bwrap")
    if tool is None:
        raise IsolationUnavailable(
            "bubblewrap is not installed: expected the command bwrap; apt-get install bubblewrap"
        )
    root = os.geteuid() == 0
    uid = new_uid() if root else _STUDENT
    files = _EtcFiles(uid)
    command = [tool, "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    # Kept by the server alone, to make each submission a world of its own and, as root, to become the student's user;
    # its children lose them before anything of a student's runs.
    kept = (
        "CAP_SETPCAP",
        "CAP_SYS_ADMIN",
        "CAP_SYS_CHROOT",
        *(("CAP_SETUID", "CAP_SETGID", "CAP_KILL") if root else ()),
    )
    command += ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]
    if not root:
        command += ["--unshare-user", "--uid", str(uid), "--gid", str(uid)]
    command += _mounts(limits, files)
    environment = student_environment(_HOME, tidy(sys.prefix))
    for name, value in environment.items():
        command += ["--setenv", name, value]
    server = [tidy(sys.executable), "-I", "-S", "-B", f"{_CODE}/behind_wall/server.py", str(control_fd)]
    command += ["--chdir", "/", "--", *server]
    config = {
        "path": module_path(_LIBRARY),
        "environment": server_environment(_SERVER_HOME),
        "home": _HOME,
        "work": f"{_HOME}/work",
        "temporary": "/tmp",
        "sizes": {_HOME: _bytes(limits), "/tmp": _bytes(limits), "/dev/shm": 64 << 20},
        "covered": [_SERVER_HOME],
        "kept": _kept(),
        "server_home": _SERVER_HOME,
        "uid": uid,
        "gid": uid,
        "change_user": root,
        "keep_search": False,
        "shielded": True,
        "first_place": {},
        "processes_now": 0 if root else processes_of_user(),
        "filter": program.hex(),
    }
    return Plan("bubblewrap", command, {}, config, files.descriptors)


def _bytes(limits: Limits) -> int:
    return limits.folder_mb * 1024 * 1024


def _mounts(limits: Limits, files: "_EtcFiles") -> list[str]:
    size = str(_bytes(limits))
    arguments = ["--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc"]
    # Before the folders of Python: a checkout may itself lie in /tmp, and is then laid over this one.
    arguments += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in ("fonts", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += files.arguments()
    for folder in _parents(Path(_CODE, "x"), Path(_LIBRARY, "x"), *python_folders()):
        arguments += ["--perms", "0755", "--dir", str(folder)]
    for folder in python_folders():
        arguments += ["--ro-bind", str(folder), str(folder)]
    course = course_folder()
    if any(folder in course.parents or folder == course for folder in (Path("/usr"), *python_folders())):
        arguments += ["--tmpfs", str(course)]
    arguments += [
        "--ro-bind",
        str(BEHIND_WALL),
        f"{_CODE}/behind_wall",
        "--ro-bind",
        str(library_folder()),
        f"{_LIBRARY}/deep_learning_cases",
    ]
    arguments += [
        "--proc",
        "/proc",
        *_devices(),
        "--perms",
        "1777",
        "--size",
        str(64 << 20),
        "--tmpfs",
        "/dev/shm",
    ]
    arguments += [
        "--perms",
        "1777",
        "--size",
        size,
        "--tmpfs",
        _HOME,
    ]
    arguments += ["--perms", "0755", "--size", str(32 << 20), "--tmpfs", _SERVER_HOME]
    arguments += files.font_cache_arguments()
    return [*arguments, "--remount-ro", "/"]


def _devices() -> list[str]:
    """A /dev by hand: bubblewrap's own would take a second user namespace, out of whose sight the first one's PID
    namespace would be.  Each world mounts its own /dev/pts."""
    arguments = ["--perms", "0755", "--tmpfs", "/dev", "--dir", "/dev/pts", "--dir", "/dev/shm"]
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    links = {"fd": "/proc/self/fd", "ptmx": "pts/ptmx", "core": "/proc/kcore"}
    links |= {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
    for name, target in links.items():
        arguments += ["--symlink", target, f"/dev/{name}"]
    return [*arguments, "--remount-ro", "/dev"]


def _kept() -> list[str]:
    """What each world finds again in its own folders: a Python that lies in one of them, and the way to it."""
    ways = {way for folder in python_folders() for way in (folder, *folder.parents)}
    return sorted(str(way) for way in ways if any(Path(folder) in way.parents for folder in _WRITABLE))


def _parents(*paths: Path) -> list[Path]:
    """Every folder above these, the highest first: bubblewrap would make them for its own user alone."""
    return sorted({parent for path in paths for parent in path.parents if len(parent.parts) > 1})


class _EtcFiles:
    """The few files of /etc that a Python process asks for, written for this wall."""

    def __init__(self, uid: int) -> None:
        self._contents = {
            "/etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"student:x:{uid}:{uid}:student:{_HOME}:/bin/bash\n",
            "/etc/group": f"root:x:0:\nstudent:x:{uid}:\n",
            "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
            "/etc/hosts": "127.0.0.1 localhost sandbox\n",
        }
        self._numbers = {path: _memory_file(text.encode()) for path, text in self._contents.items()}
        cache = _font_cache()
        self._fonts = (cache.name, _memory_file(cache.read_bytes())) if cache is not None else None
        self.descriptors = tuple(self._numbers.values()) + ((self._fonts[1],) if self._fonts else ())

    def arguments(self) -> list[str]:
        parts: list[str] = []
        for path, number in self._numbers.items():
            parts += ["--perms", "0644", "--ro-bind-data", str(number), path]
        return parts

    def font_cache_arguments(self) -> list[str]:
        if self._fonts is None:
            return []
        name, number = self._fonts
        return ["--perms", "0644", "--file", str(number), f"{_SERVER_HOME}/matplotlib/{name}"]


def _memory_file(content: bytes) -> int:
    number = os.memfd_create("sandbox", 0)
    os.write(number, content)
    os.lseek(number, 0, os.SEEK_SET)
    os.set_inheritable(number, True)
    return number


def _font_cache() -> Path | None:
    """matplotlib's list of fonts, if this machine has made one: it saves the server a second at its start."""
    with contextlib.suppress(Exception):
        import matplotlib

        found = sorted(Path(matplotlib.get_cachedir()).glob("fontlist-v*.json"))
        if found and found[-1].is_file() and found[-1].stat().st_size < 16 << 20:
            return found[-1]
    return None
