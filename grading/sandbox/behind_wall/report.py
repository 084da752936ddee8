"""What is in force, looked at from inside a confined process before any student's code runs."""

import contextlib
import ctypes
import os
import platform
import resource
import socket
import sys
from typing import Any


def look() -> dict[str, Any]:
    """What a process in this place is and may do, as it finds it itself."""
    status = _status()
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "groups": os.getgroups(),
        "capabilities": status.get("CapEff", "?"),
        "bounding_capabilities": status.get("CapBnd", "?"),
        "no_new_privileges": status.get("NoNewPrivs") == "1",
        "seccomp": {"0": "off", "1": "strict", "2": "filter"}.get(status.get("Seccomp", "0"), "?"),
        "namespaces": _namespaces(),
        "network": _network(),
        "nested_user_namespace": _nested(),
        "ptrace": _ptrace(),
        "signals_to_the_server": _signals(),
        "root_folder": sorted(os.listdir("/"))[:40] if _readable("/") else "unreadable",
        "shadow_readable": _readable_file("/etc/shadow"),
        "limits_in_force": {
            "address_space_bytes": resource.getrlimit(resource.RLIMIT_AS)[1],
            "file_bytes": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
            "processes": resource.getrlimit(resource.RLIMIT_NPROC)[1],
            "cpu_seconds": resource.getrlimit(resource.RLIMIT_CPU)[1],
        },
        "versions": {
            "python": platform.python_version(),
            "kernel": platform.release(),
            **{name: _version(name) for name in ("ipykernel", "IPython", "numpy", "matplotlib")},
        },
    }


def _status() -> dict[str, str]:
    with open("/proc/self/status") as stream:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in stream)}


def _namespaces() -> dict[str, str]:
    found = {}
    for name in ("user", "pid", "net", "mnt", "ipc", "uts", "cgroup"):
        with contextlib.suppress(OSError):
            found[name] = os.readlink(f"/proc/self/ns/{name}").partition("[")[2].rstrip("]")
    return found


def _network() -> str:
    """Whether a connection can be tried at all: "closed (reason)" or "open"."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.settimeout(0.2)
            sock.connect(("127.0.0.1", 9))
    except ConnectionRefusedError:
        return "open (refused)"
    except OSError as error:
        return f"closed ({type(error).__name__})"
    return "open"


def _nested() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
    return "possible" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 else "denied"


def _ptrace() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.ptrace(0, 0, None, None) == 0 else 1)
    return "possible" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 else "denied"


def _signals() -> str:
    """Whether this process may signal the one that forked it; losing that costs one submission, no more."""
    try:
        os.kill(os.getppid(), 0)
    except OSError:
        return "denied"
    return "possible"


def _readable(path: str) -> bool:
    try:
        os.listdir(path)
    except OSError:
        return False
    return True


def _readable_file(path: str) -> bool:
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name), "__version__", "not loaded"))
