"""A world for one submission: namespaces and empty folders that did not exist before it and end with it.

Its first process, the *anchor*, does nothing but exist: when it is killed, the kernel ends everything else in its PID
namespace.  The submission's process is the second; its parent is the server, outside, which no call inside can name.
"""

import contextlib
import ctypes
import os
import signal
import socket
from typing import Any

_NEW_MOUNTS, _NEW_IPC, _NEW_PID, _NEW_NET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
_SHARED = 0x100 | 0x400  # CLONE_VM, CLONE_FILES
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXEC, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_REMOUNT, _RELATIVE_TIMES = 32, 1 << 21
_INODES = 65536
_STACK_BYTES = 65536
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_COUNTERS = (
    "buddyinfo", "diskstats", "fs", "interrupts", "key-users", "keys", "locks", "pressure", "schedstat", "slabinfo",
    "softirqs", "swaps", "sys/fs", "timer_list", "vmstat", "zoneinfo",
)  # fmt: skip
"""What /proc tells of the whole machine and no library asks for: others' work would show in it."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]


class World:
    """One submission's, as the server holds it."""

    def __init__(self, home: int) -> None:
        """``home`` is a descriptor of the server's own PID namespace."""
        self._home = home
        self._ours, self._theirs = socket.socketpair()
        _checked(_libc.unshare(_NEW_PID), "unshare")  # for children alone
        try:
            self.anchor = self._anchor()
        except OSError:
            self._back_home()
            raise

    def _anchor(self) -> int:
        """It shares the server's memory, so that it costs no copy, and has no handler of any signal, so that from
        inside its namespace none reaches it; its memory is as closed to others as the server's."""
        self._stack = ctypes.create_string_buffer(_STACK_BYTES)
        top = (ctypes.addressof(self._stack) + _STACK_BYTES - 256) & ~15
        waits = ctypes.cast(_libc.pause, ctypes.c_void_p)
        return _checked(int(_libc.clone(waits, top, _SHARED | signal.SIGCHLD, None)), "clone")

    def _back_home(self) -> None:
        _checked(_libc.setns(self._home, _NEW_PID), "setns")

    def fork(self) -> int:
        """Fork the submission's process."""
        try:
            pid = os.fork()
        except OSError:
            self._back_home()
            self.end()
            raise
        if pid:
            self._theirs.close()
            self._back_home()
        return pid

    def leave(self) -> None:
        """In the submission's process: leave the server's other namespaces, and hand it the mounts."""
        _checked(_libc.unshare(_NEW_MOUNTS | _NEW_IPC | _NEW_NET), "unshare")
        number = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        socket.send_fds(self._theirs, [b"m"], [number])
        for one in (number, self._home, self._ours.detach(), self._theirs.detach()):
            os.close(one)

    def enter_mounts(self) -> None:
        """In a process of the server's: see what the submission sees."""
        self._ours.settimeout(5.0)
        _, (number,), _, _ = socket.recv_fds(self._ours, 1, 1)
        _checked(_libc.setns(number, _NEW_MOUNTS), "setns")
        os.close(number)

    def end(self) -> None:
        """Kill the anchor, and with it all that is left; the submission's own process has been waited for."""
        with contextlib.suppress(OSError):
            os.kill(self.anchor, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.anchor, 0)
        self._ours.close()


def furnish(config: dict[str, Any]) -> None:
    """In the submission's process, with the server's capabilities still: folders of its own over all it may write to.

    ``config``: "sizes" {folder: bytes}, "covered" (folders of the server's, empty and read-only here), "kept" (a Python
    that lies in one of the folders, and the way to it).
    """
    _mount("none", "/", None, _PRIVATE | _RECURSIVE)
    for folder, size in config["sizes"].items():
        _fresh(folder, int(size), [path for path in config["kept"] if path.startswith(folder + os.sep)])
    for folder in config["covered"]:
        _mount("tmpfs", folder, "tmpfs", _READ_ONLY | _NO_SETUID | _NO_DEVICES, "size=4k,mode=755")
    for name in _DEVICES:  # they are the machine's own: their times may not be set either
        _write_protect(f"/dev/{name}")
    _mount("devpts", "/dev/pts", "devpts", _NO_SETUID | _NO_EXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("proc", "/proc", "proc", _NO_SETUID | _NO_DEVICES | _NO_EXEC)
    for name in _COUNTERS:
        path = os.path.join("/proc", name)
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _READ_ONLY | _NO_SETUID | _NO_DEVICES, "size=4k,mode=555")
        elif os.path.exists(path):
            _mount("/dev/null", path, None, _BIND)


def _fresh(folder: str, size: int, kept: list[str]) -> None:
    ends = [path for path in kept if not any(other.startswith(path + os.sep) for other in kept)]
    handles = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in ends}
    _mount("tmpfs", folder, "tmpfs", _NO_SETUID | _NO_DEVICES, f"size={size},nr_inodes={_INODES},mode=1777")
    for path, handle in handles.items():
        os.makedirs(path, exist_ok=True)
        _mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)
        os.close(handle)


def _write_protect(path: str) -> None:
    """Read-only for what concerns the file itself; a device is written to as before.  Other restrictions stay."""
    flags = os.statvfs(path).f_flag
    kept = flags & (_NO_SETUID | _NO_DEVICES | _NO_EXEC | os.ST_NOATIME | os.ST_NODIRATIME)
    kept |= _RELATIVE_TIMES if flags & os.ST_RELATIME else 0
    _mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | kept)


def hide(paths: list[str]) -> None:
    """In a process with the server's capabilities that has entered: nothing to be read in these from here on."""
    for path in paths:
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _READ_ONLY | _NO_SETUID | _NO_DEVICES, "size=4k,mode=755")
        else:
            _mount("/dev/null", path, None, _BIND)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _checked(_libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]), f"mount on {target}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return result
