"""What a forked child gives up before anything of a student's runs: user, capabilities, resources, system calls."""

import contextlib
import ctypes
import os
import resource
import struct
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 22, 38, 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _PR_CAP_AMBIENT_CLEAR_ALL, _PR_SET_KEEPCAPS = 47, 2, 4, 8
_PR_CAPBSET_DROP = 24
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_CHROOT, CAP_SYS_ADMIN = (
    2,
    5,
    6,
    7,
    8,
    18,
    21,
)
MEGABYTE = 1024 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: Any) -> None:
    """prctl(2), OSError where it is refused."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    if _libc.prctl(option, *[a if hasattr(a, "_obj") else ctypes.c_ulong(a) for a in padded]) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"prctl({option})")


def die_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends."""
    prctl(_PR_SET_PDEATHSIG, 9)


def hide_memory() -> None:
    """Children of the same user can then neither trace this process nor open its memory or environment."""
    prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Processes whose parent ended become children of this one, which can then end them."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    """No program that this process starts can gain rights, whatever its file says."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_capabilities(capabilities: int) -> None:
    """Make ``capabilities`` (a bit set) the whole of this process's permitted, effective and inheritable set."""
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    data = ctypes.create_string_buffer(struct.pack("=6I", low, low, low, high, high, high))
    if _libc.capset(header, data) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "capset")


def shrink(capabilities: int) -> None:
    """Empty the bounding set, for this process and all it starts, then keep ``capabilities`` alone."""
    # In this order: what is to be inheritable must be named while the bounding set still holds it.
    set_capabilities(capabilities | 1 << CAP_SETPCAP)
    for number in range(64):
        with contextlib.suppress(OSError):
            prctl(_PR_CAPBSET_DROP, number)
    set_capabilities(capabilities)


def become(uid: int, gid: int, keep_search: bool = False) -> None:
    """Change to an unprivileged user for good.

    ``keep_search`` keeps CAP_DAC_READ_SEARCH alone, for a Python installed in another user's private home; it is only
    used under Landlock, whose allow-list holds for that capability too.
    """
    with contextlib.suppress(OSError):
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    if keep_search:
        prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    set_capabilities(1 << CAP_DAC_READ_SEARCH if keep_search else 0)
    if keep_search:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or os.getgroups():
        raise PermissionError("the user could not be changed")


def give_up() -> None:
    """Drop every capability of the own user namespace; the user stays."""
    with contextlib.suppress(OSError):
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    set_capabilities(0)


def install_filter(program: bytes) -> None:
    """Load a compiled seccomp filter for this process and all it starts."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    buffer = ctypes.create_string_buffer(header, len(header))
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(buffer))


def limit_resources(limits: dict[str, Any], processes_now: int) -> None:
    """Hard limits of the child and of each process that it starts."""
    space = address_space() + int(limits["memory_mb"]) * MEGABYTE
    files = int(limits["file_mb"]) * MEGABYTE
    processor = int(limits["cpu_seconds"])
    for kind, value in (
        (resource.RLIMIT_AS, space),
        (resource.RLIMIT_FSIZE, files),
        (resource.RLIMIT_NPROC, int(limits["processes"]) + processes_now),
        (resource.RLIMIT_CPU, processor),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")  # the kernel's choice, where memory runs out, falls on the student's process


def address_space() -> int:
    """Bytes of this process's address space now, the loaded libraries included."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
