"""The system-call filter, compiled by libseccomp: what a student's process never needs and must not reach.

The list starts from what Flatpak and Docker deny and adds what leaves a mark on shared files or shows another's: locks,
leases, attributes, the page cache, queues that outlive their process.  Where honest libraries ask for such a thing as
a favour (a lock, a hint), the call succeeds and does nothing.  Everything else is allowed, native architecture only.
"""

import contextlib
import errno
import os
import socket
import tempfile
from functools import cache
from typing import Any

__all__ = ["DENIED", "compiled_filter"]

DENIED = (
    # other processes' memory and descriptors
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "pidfd_send_signal", "process_madvise",
    "process_mrelease",
    # the view of the file system
    "mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "pivot_root", "chroot", "open_by_handle_at", "name_to_handle_at", "quotactl", "quotactl_fd",
    "open_tree_attr", "file_setattr", "statmount", "listmount",
    # namespaces
    "unshare", "setns",
    # kernel facilities with a history of holes
    "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "memfd_secret", "modify_ldt", "lookup_dcookie",
    # the machine
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff",
    "acct", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog",
    "ioperm", "iopl", "vhangup", "sysfs", "uselib", "ustat", "nfsservctl", "_sysctl",
    # what outlives its process inside one slot
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl",
    "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
)  # fmt: skip

ABSENT = ("clone3", "mincore", "cachestat", "sync_file_range", "inotify_init", "inotify_init1", "inotify_add_watch",
          "fanotify_init", "fanotify_mark")  # fmt: skip
"""Answered as by a kernel that does not have them: glibc falls back from clone3, whose flags hide behind a pointer."""

NO_MARKS = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat",
            "removexattrat")  # fmt: skip
"""Answered as by a file system without attributes, which copying tools take without a word."""

WITHOUT_EFFECT = ("fadvise64", "readahead", "flock")
_NEWER = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "process_mrelease": 448,
    "cachestat": 451, "statmount": 457, "listmount": 458, "setxattrat": 463, "removexattrat": 466,
    "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
"""Numbers, the same on all architectures, of calls that an older libseccomp does not know by name."""

_LOCKING = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
_MARKING = (1024, 1026, 1036, 1038)  # F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT
_ADVICE = (9, 12, 20, 21, 22, 23, 100, 101)  # REMOVE, MERGEABLE, COLD, PAGEOUT, POPULATE_READ and _WRITE, HWPOISON, ...
_WILL_NEED = 3

_INDISPENSABLE = {"ptrace", "mount", "unshare", "setns", "bpf", "clone", "socket", "setxattr", "fcntl", "madvise"}
_NAMESPACE_FLAGS = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_REQUESTS = (0x5412, 0x541C, 0x40086602, 0x401C5820)  # TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR


@cache
def compiled_filter(own_mounts: bool = True) -> bytes:
    """The filter as BPF, ready for ``prctl``; ImportError or OSError without libseccomp.

    Without ``own_mounts`` the sockets and files of the machine lie in sight, and Landlock keeps nobody from connecting
    to a path, from taking a name for a socket, or from setting a file's times to now where everybody may write.
    """
    import pyseccomp as seccomp

    rules: Any = seccomp.SyscallFilter(seccomp.ALLOW)
    refuse, invalid, nothing = seccomp.ERRNO(errno.EPERM), seccomp.ERRNO(errno.EINVAL), seccomp.ERRNO(0)
    for names, action in (
        (DENIED, refuse),
        (ABSENT, seccomp.ERRNO(errno.ENOSYS)),
        (NO_MARKS, seccomp.ERRNO(errno.EOPNOTSUPP)),
        (WITHOUT_EFFECT, nothing),
    ):
        for name in names:
            _add(rules, action, name)
    for flag in _NAMESPACE_FLAGS:
        _add(rules, refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    for command in (*_LOCKING, *_MARKING):
        action = nothing if command in _LOCKING else invalid
        _add(rules, action, "fcntl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, command))
    for advice in (*_ADVICE, _WILL_NEED):
        action = nothing if advice == _WILL_NEED else invalid
        _add(rules, action, "madvise", seccomp.Arg(2, seccomp.MASKED_EQ, 0xFFFFFFFF, advice))
    for name in ("preadv2", "pwritev2"):  # RWF_NOWAIT tells whether a page is cached
        _add(rules, seccomp.ERRNO(errno.EOPNOTSUPP), name, seccomp.Arg(5, seccomp.NE, 0))
    # A network namespace does not cover VSOCK, and netlink or packet sockets are of no use to a notebook.  ZeroMQ
    # aborts its process on other error numbers than this one when it looks for network interfaces.
    _add(rules, seccomp.ERRNO(errno.EOPNOTSUPP), "socket", seccomp.Arg(0, seccomp.NE, int(socket.AF_UNIX)))
    if not own_mounts:
        for name in ("connect", "bind", "listen", "truncate"):
            _add(rules, refuse, name)
        _add(rules, refuse, "socket", seccomp.Arg(1, seccomp.MASKED_EQ, 0xF, int(socket.SOCK_DGRAM)))
        for name in ("utimensat", "futimesat", "utimes", "utime"):
            _add(rules, nothing, name)
    for request in _REQUESTS:
        _add(rules, refuse, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    with tempfile.TemporaryFile() as stream:
        rules.export_bpf(stream)
        stream.flush()
        os.lseek(stream.fileno(), 0, os.SEEK_SET)
        return os.read(stream.fileno(), 1 << 20)


def _add(rules: Any, action: Any, name: str, *arguments: Any) -> None:
    """Add a rule; a call that this libseccomp or this architecture does not know cannot be made by name either."""
    for call in (name, _NEWER.get(name)):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if call is not None:
                rules.add_rule(action, call, *arguments)
                return
    if name in _INDISPENSABLE:
        raise OSError(f"no rule for {name}")
