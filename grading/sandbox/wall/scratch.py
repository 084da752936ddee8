"""Without own mounts: a scratch folder of the machine's, behind Landlock or behind nothing but resource limits."""

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from grading.sandbox.behind_wall import landlock
from grading.sandbox.limits import Limits
from grading.sandbox.wall.places import (
    BEHIND_WALL,
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

__all__ = ["landlock_plan", "unprotected_plan"]

_PREFIX = "grading-sandbox-"
_YOUNG_SECONDS = 60.0


def landlock_plan(_limits: Limits, control_fd: int, program: bytes) -> Plan:
    """How to start the server under Landlock; IsolationUnavailable where the kernel has none."""
    version = landlock.version()
    if version < 1:
        raise IsolationUnavailable(
            "this kernel offers no Landlock: expected Linux 5.13 or later with Landlock on; "
            "use bubblewrap or another machine"
        )
    if os.geteuid() != 0:
        raise IsolationUnavailable(
            "Landlock alone is no wall for an ordinary user (it leaves chmod, chown, times, limits and signals to the "
            "user's own): expected bubblewrap, or root, which changes the user; install bubblewrap and allow user "
            "namespaces, or run as root in a container"
        )
    plan = _plain(control_fd, change_user=True)
    assert plan.folder is not None
    reading = [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/etc/fonts",
        "/etc/alternatives",
        "/etc/ld.so.cache",
    ]
    reading += ["/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/proc/self", "/proc/cpuinfo"]
    reading += ["/proc/meminfo", "/proc/stat", "/proc/version", "/sys/devices/system/cpu"]
    reading += [str(path) for path in python_folders()] + [str(plan.folder / "lib"), str(plan.folder / "code")]
    plan.config |= {
        "filter": program.hex(),
        "landlock": {
            "read_only": reading,
            "devices": [
                "/dev/null",
                "/dev/zero",
                "/dev/full",
                "/dev/random",
                "/dev/urandom",
                "/dev/tty",
                "/dev/ptmx",
                "/dev/pts",
            ],
        },
    }
    plan.notes["landlock_version"] = version
    return plan


def unprotected_plan(_limits: Limits, control_fd: int, _program: bytes) -> Plan:
    """How to start the server behind resource limits alone."""
    return _plain(control_fd, change_user=False)


def _plain(control_fd: int, change_user: bool) -> Plan:
    """A server without own mounts: its work folder is a scratch folder of the machine's."""
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = _locked(folder)
    server_home, library, code = (folder / name for name in ("server", "lib", "code"))
    for path in (server_home, library):
        path.mkdir()
    # Copies, so that no path leads from them to the course that they lie in.
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(library_folder(), library / "deep_learning_cases", ignore=without)
    shutil.copytree(BEHIND_WALL, code / "behind_wall", ignore=without)
    if change_user:
        folder.chmod(0o755)
    command = [tidy(sys.executable), "-I", "-S", "-B", str(code / "behind_wall" / "server.py"), str(control_fd)]
    plan = Plan("landlock", command, {}, {}, folder=folder, lock=lock)
    if change_user:
        plan.new_user = new_uid
    plan.config = {
        "path": module_path(str(library)),
        "environment": server_environment(str(server_home)),
        "server_home": str(server_home),
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "change_user": change_user,
        "keep_search": change_user and not _reachable_by_others(),
        "shielded": change_user,
        "first_place": plan.make_place(),
        "processes_now": 0 if change_user else processes_of_user(),
        "filter": "",
    }
    # The machine's /tmp is not a submission's to write to: tempfile, mktemp and their kin find the submission's own.
    plan.environment = student_environment(str(folder), tidy(sys.prefix))
    return plan


def _locked(folder: Path) -> int | None:
    """A lock on the folder that ends with this process, however it ends; None if another process has it."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return None
    return number


def _remove_stale() -> None:
    """Folders of graders that were killed outright: one in use is locked, a young one may be about to be."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid != os.geteuid() or time.time() - about.st_mtime < _YOUNG_SECONDS:
                continue
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _reachable_by_others() -> bool:
    """Whether an unprivileged user can walk to this Python (a home folder is often closed to others)."""
    folders = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}
    return all(parent.stat().st_mode & 0o001 for folder in folders for parent in (folder, *folder.parents))
