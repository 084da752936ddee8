"""The wall around a submission: what is mounted, who runs, and how it is started, for each kind of isolation.

``bubblewrap``: own namespaces, an allow-list of read-only folders, a changed user, a system-call filter.
``landlock``: where namespaces are refused; an allow-list of paths, the same filter, a changed user if we are root.
``none``: resource limits alone; only when somebody asks for it by name.
"""

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grading.sandbox.filters import compiled_filter
from grading.sandbox.limits import Limits

__all__ = ["KINDS", "IsolationUnavailable", "Plan", "make_plan"]

KINDS = ("bubblewrap", "landlock", "none")

_INSIDE = Path(__file__).parent / "behind_wall"
_HOME = "/home/student"
_SERVER_HOME = "/run/server"
_CODE, _LIBRARY = "/lab/sandbox", "/lab/lib"
_STUDENT = 1000
# systemd leaves 1879048192 to 2147483647 unused; process ids, unique on a machine, make the slots distinct.
_FIRST_UID, _UIDS, _BOXES_PER_PROCESS = 0x7C000000, 1 << 26, 16


class IsolationUnavailable(RuntimeError):
    """No wall of the wanted kind can be built here; one line that says why and what to do."""


@dataclass
class Plan:
    """How to start the fork server of one kind, and what it is told."""

    kind: str
    command: list[str]
    environment: dict[str, str]
    config: dict[str, Any]
    pass_fds: tuple[int, ...] = ()
    folder: Path | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def close(self) -> None:
        """Close what the start needed and remove a scratch folder."""
        for number in self.pass_fds:
            with contextlib.suppress(OSError):
                os.close(number)
        self.pass_fds = ()

    def remove(self) -> None:
        """Remove the scratch folder of a kind without own mounts."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def make_plan(kind: str, limits: Limits, control_fd: int, box: int, control_group: bool) -> Plan:
    """The plan of one kind; IsolationUnavailable where a part that it needs is missing."""
    filter_program = b"" if kind == "none" else _filter()
    builder = {"bubblewrap": _bubblewrap, "landlock": _landlock, "none": _none}[kind]
    plan = builder(limits, control_fd, box, filter_program)
    plan.kind = kind
    plan.config |= {
        "kind": kind,
        "limits": limits.to_dict(),
        "control_group": control_group,
        "prefix": sys.prefix,
        "executable": sys.executable,
    }
    return plan


def _filter() -> bytes:
    try:
        return compiled_filter()
    except (ImportError, OSError, RuntimeError) as error:
        raise IsolationUnavailable(
            f"the system-call filter cannot be built ({error}): expected libseccomp and pyseccomp; "
            "install them (apt-get install libseccomp2; pip install pyseccomp)"
        ) from error


# Bubblewrap ---------------------------------------------------------------------------------------------------------


def _bubblewrap(limits: Limits, control_fd: int, box: int, program: bytes) -> Plan:
    tool = shutil.which("bwrap")
    if tool is None:
        raise IsolationUnavailable("bubblewrap is not installed: expected the command bwrap; apt-get install bubblewrap")
    root = os.geteuid() == 0
    uid = _slot_uid(box) if root else _STUDENT
    files = _EtcFiles(uid)
    filter_fd = _memory_file(program)
    command = [tool, "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"]
    if root:
        # Kept by the server alone, to become the student's user; its children lose them in doing so.
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SETPCAP"):
            command += ["--cap-add", capability]
    else:
        command += ["--unshare-user", "--disable-userns", "--uid", str(uid), "--gid", str(uid)]
    command += ["--seccomp", str(filter_fd), *_mounts(limits, files)]
    environment = _environment(_HOME, sys.prefix)
    for name, value in environment.items():
        command += ["--setenv", name, value]
    command += ["--chdir", "/", "--", sys.executable, "-I", "-S", "-B", f"{_CODE}/behind_wall/server.py", str(control_fd)]
    config = {
        "path": _module_path(_LIBRARY),
        "environment": _server_environment(_SERVER_HOME),
        "home": _HOME,
        "work": f"{_HOME}/work",
        "writable": [_HOME, "/tmp", "/dev/shm", _SERVER_HOME],
        "server_home": _SERVER_HOME,
        "uid": uid,
        "gid": uid,
        "change_user": root,
        "keep_search": False,
        "shielded": root,
        "pid_namespace": True,
        "processes_now": 0 if root else _processes_of_user(),
        "filter": "",
    }
    return Plan("bubblewrap", command, {}, config, (filter_fd, *files.descriptors))


def _mounts(limits: Limits, files: "_EtcFiles") -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in ("fonts", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += files.arguments()
    for folder in _parents(Path(_CODE, "x"), Path(_LIBRARY, "x"), *_python_folders()):
        arguments += ["--perms", "0755", "--dir", str(folder)]
    for folder in _python_folders():
        arguments += ["--ro-bind", str(folder), str(folder)]
    course = _course_folder()
    if any(folder in course.parents or folder == course for folder in (Path("/usr"), *_python_folders())):
        arguments += ["--tmpfs", str(course)]
    arguments += ["--ro-bind", str(_INSIDE), f"{_CODE}/behind_wall", "--ro-bind", str(_library_folder()), f"{_LIBRARY}/deep_learning_cases"]
    size = str(limits.folder_mb * 1024 * 1024)
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--perms", "1777", "--size", str(64 << 20), "--tmpfs", "/dev/shm"]
    arguments += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--perms", "1777", "--size", size, "--tmpfs", _HOME]
    arguments += ["--perms", "0755", "--size", str(32 << 20), "--tmpfs", _SERVER_HOME]
    arguments += files.font_cache_arguments()
    return [*arguments, "--remount-ro", "/"]


def _parents(*paths: Path) -> list[Path]:
    """Every folder above these, the highest first: bubblewrap would make them for its own user alone."""
    return sorted({parent for path in paths for parent in path.parents if len(parent.parts) > 1})


class _EtcFiles:
    """The few files of /etc that a Python process asks for, written for this wall."""

    def __init__(self, uid: int) -> None:
        self._contents = {
            "/etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nstudent:x:{uid}:{uid}:student:{_HOME}:/bin/bash\n",
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


# Landlock and none --------------------------------------------------------------------------------------------------


def _landlock(limits: Limits, control_fd: int, box: int, program: bytes) -> Plan:
    version = _landlock_version()
    if version < 1:
        raise IsolationUnavailable(
            "this kernel offers no Landlock: expected Linux 5.13 or later with Landlock on; use bubblewrap or another machine"
        )
    plan = _plain(limits, control_fd, box, change_user=os.geteuid() == 0)
    assert plan.folder is not None
    reading = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache"]
    reading += ["/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/proc/self", "/proc/cpuinfo"]
    reading += ["/proc/meminfo", "/proc/stat", "/proc/version", "/sys/devices/system/cpu"]
    reading += [str(path) for path in _python_folders()] + [str(plan.folder / "lib"), str(plan.folder / "code")]
    plan.config |= {
        "filter": program.hex(),
        "landlock": {
            "read_only": reading,
            "read_write": [str(plan.folder / "home")],
            "devices": ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"],
        },
    }
    plan.notes["landlock_version"] = version
    return plan


def _none(limits: Limits, control_fd: int, box: int, _program: bytes) -> Plan:
    return _plain(limits, control_fd, box, change_user=False)


def _plain(_limits: Limits, control_fd: int, box: int, change_user: bool) -> Plan:
    """A server without own mounts: its work folder is a scratch folder of the machine's."""
    folder = Path(tempfile.mkdtemp(prefix="grading-sandbox-"))
    home, server_home, library, code = (folder / name for name in ("home", "server", "lib", "code"))
    for path in (home, server_home, library):
        path.mkdir()
    # Copies, so that no path leads from them to the course that they lie in.
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_library_folder(), library / "deep_learning_cases", ignore=without)
    shutil.copytree(_INSIDE, code / "behind_wall", ignore=without)
    uid = _slot_uid(box) if change_user else os.geteuid()
    if change_user:
        os.chown(home, uid, uid)
        folder.chmod(0o755)
    command = [sys.executable, "-I", "-S", "-B", str(code / "behind_wall" / "server.py"), str(control_fd)]
    config = {
        "path": _module_path(str(library)),
        "environment": _server_environment(str(server_home)),
        "home": str(home / "student"),
        "work": str(home / "student" / "work"),
        "writable": [str(home), str(server_home)],
        "server_home": str(server_home),
        "uid": uid,
        "gid": uid if change_user else os.getegid(),
        "change_user": change_user,
        "keep_search": change_user and not _reachable_by_others(),
        "shielded": change_user,
        "pid_namespace": False,
        "processes_now": 0 if change_user else _processes_of_user(),
        "filter": "",
    }
    environment = _environment(str(home / "student"), sys.prefix) | {"TMPDIR": str(home / "student")}
    return Plan("landlock", command, environment, config, folder=folder)


def _landlock_version() -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def _reachable_by_others() -> bool:
    """Whether an unprivileged user can walk to this Python (a home folder is often closed to others)."""
    folders = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}
    return all(parent.stat().st_mode & 0o001 for folder in folders for parent in (folder, *folder.parents))


# What all kinds share -----------------------------------------------------------------------------------------------


def _environment(home: str, prefix: str) -> dict[str, str]:
    return {
        "HOME": home,
        "USER": "student",
        "LOGNAME": "student",
        "PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "xterm-color",
        "CLICOLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONDONTWRITEBYTECODE": "1",
        # More threads than one would break the fork, and a grader's cores belong to many submissions.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _server_environment(server_home: str) -> dict[str, str]:
    """Where the server keeps what its libraries write while they are warmed; set for the warming alone."""
    return {
        "HOME": server_home,
        "IPYTHONDIR": f"{server_home}/ipython",
        "MPLCONFIGDIR": f"{server_home}/matplotlib",
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def _module_path(library: str) -> list[str]:
    """sys.path inside: the library, the standard library, the installed packages; no working folder, no .pth file."""
    roots = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), *_site_folders()]
    entries = []
    for text in sys.path:
        path = Path(text) if text else None
        if path is None or not path.exists() or path.resolve() == _course_folder():
            continue
        if any(root == path.resolve() or root in path.resolve().parents for root in roots) and text not in entries:
            entries.append(text)
    return [library, *entries]


def _site_folders() -> list[Path]:
    return [Path(text).resolve() for text in sys.path if Path(text).name in {"site-packages", "dist-packages"}]


@functools.cache
def _python_folders() -> tuple[Path, ...]:
    """The interpreter's prefixes and package folders that /usr does not hold."""
    wanted = [Path(text) for text in (sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)]
    wanted += [Path(text) for text in sys.path if Path(text).name in {"site-packages", "dist-packages"}]
    kept: list[Path] = []
    for path in sorted({path for path in wanted if path.is_dir()}, key=lambda path: len(path.parts)):
        covered = any(parent == path or parent in path.parents for parent in (Path("/usr"), *kept))
        if not covered and len(path.parts) > 1:
            kept.append(path)
    return tuple(kept)


def _library_folder() -> Path:
    import deep_learning_cases

    return Path(str(deep_learning_cases.__file__)).resolve().parent


def _course_folder() -> Path:
    return Path(__file__).resolve().parents[2]


def _slot_uid(box: int) -> int:
    """A user id that no other live box has; inside a container, one that its user namespace maps."""
    wanted = (os.getpid() * _BOXES_PER_PROCESS + box % _BOXES_PER_PROCESS) % _UIDS
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    if any(first <= _FIRST_UID and first + length >= _FIRST_UID + _UIDS for first, _, length in ranges):
        return _FIRST_UID + wanted
    first, _, length = max(ranges, key=lambda entry: entry[2])
    if length < 30_000:
        raise IsolationUnavailable(
            f"this container maps only {length} user ids: expected at least 30000 to change the user; start as an ordinary user"
        )
    return first + length - 20_000 + wanted % 20_000


def _processes_of_user() -> int:
    """Threads that this user already runs: RLIMIT_NPROC counts them too."""
    count, uid = 0, os.geteuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
