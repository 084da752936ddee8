"""Where Python, its packages and the library lie, which user a slot has, and the environment inside."""

import contextlib
import functools
import itertools
import os
import sys
from pathlib import Path

from grading.sandbox.wall.plan import IsolationUnavailable

__all__ = [
    "BEHIND_WALL",
    "course_folder",
    "library_folder",
    "module_path",
    "new_uid",
    "processes_of_user",
    "python_folders",
    "server_environment",
    "student_environment",
    "tidy",
]

BEHIND_WALL = Path(__file__).parent.parent / "behind_wall"
# systemd leaves 1879048192 to 2147483647 unused; process ids, unique on a machine, make those of two graders distinct.
_FIRST_UID, _UIDS = 0x70000000, 1 << 28
_users = itertools.count()


def student_environment(home: str, prefix: str) -> dict[str, str]:
    """The variables that a submission finds."""
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
        # ONNX Runtime would start a thread when it is imported.
        "ORT_DISABLE_TELEMETRY": "1",
    }


def server_environment(server_home: str) -> dict[str, str]:
    """Where the server keeps what its libraries write while they are warmed; set for the warming alone."""
    return {
        "HOME": server_home,
        "TMPDIR": server_home,
        "IPYTHONDIR": f"{server_home}/ipython",
        "MPLCONFIGDIR": f"{server_home}/matplotlib",
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def module_path(library: str) -> list[str]:
    """sys.path inside: the library, the standard library, the installed packages; no working folder, no .pth file."""
    roots = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), *_site_folders()]
    entries: list[str] = []
    for text in (tidy(text) if text else "" for text in sys.path):
        path = Path(text) if text else None
        if path is None or not path.exists() or path.resolve() == course_folder():
            continue
        if any(root == path.resolve() or root in path.resolve().parents for root in roots) and text not in entries:
            entries.append(text)
    return [library, *entries]


def _site_folders() -> list[Path]:
    return [Path(text).resolve() for text in sys.path if Path(text).name in {"site-packages", "dist-packages"}]


def tidy(text: str) -> str:
    """A path without ``..``, which would need folders inside the wall that are not there; links at its end stay."""
    path = Path(text)
    return (
        str(path.parent.resolve() / path.name)
        if ".." in path.parts and path.name != ".."
        else str(path.resolve() if ".." in path.parts else path)
    )


@functools.cache
def python_folders() -> tuple[Path, ...]:
    """The interpreter's prefixes and package folders that /usr does not hold."""
    prefixes = (sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)
    wanted = [Path(tidy(text)) for text in prefixes]
    wanted += [Path(tidy(text)) for text in sys.path if Path(text).name in {"site-packages", "dist-packages"}]
    kept: list[Path] = []
    for path in sorted({path for path in wanted if path.is_dir()}, key=lambda path: len(path.parts)):
        covered = any(parent == path or parent in path.parents for parent in (Path("/usr"), *kept))
        if not covered and len(path.parts) > 1:
            kept.append(path)
    return tuple(kept)


def library_folder() -> Path:
    """Where the installed library lies."""
    import deep_learning_cases

    return Path(str(deep_learning_cases.__file__)).resolve().parent


def course_folder() -> Path:
    """The checkout that holds the course, which nothing behind the wall may see."""
    return Path(__file__).resolve().parents[3]


def new_uid() -> int:
    """A user id that nobody else has now, another one each time; inside a container, one that it maps."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    share = max(1, _UIDS // most)
    wanted = (os.getpid() * share + next(_users) % share) % _UIDS
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    if any(first <= _FIRST_UID and first + length >= _FIRST_UID + _UIDS for first, _, length in ranges):
        return _FIRST_UID + wanted
    first, _, length = max(ranges, key=lambda entry: entry[2])
    if length < 30_000:
        raise IsolationUnavailable(
            f"this container maps only {length} user ids: expected at least 30000 to change the user; "
            "start as an ordinary user"
        )
    return first + length - 20_000 + wanted % 20_000


def processes_of_user() -> int:
    """Threads that this user already runs: RLIMIT_NPROC counts them too."""
    count, uid = 0, os.geteuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
