"""The system-call filter, compiled by libseccomp: what a student's process never needs and must not reach.

The list starts from what Flatpak and Docker deny and adds what leaves a trace between two submissions of one slot
(System V and POSIX message queues outlive their process).  Everything else is allowed, native architecture only.
"""

import errno
import os
import socket
import tempfile
from functools import cache
from typing import Any

__all__ = ["DENIED", "compiled_filter"]

DENIED = (
    # other processes' memory and descriptors
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
    # the view of the file system
    "mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "pivot_root", "chroot", "open_by_handle_at", "name_to_handle_at", "fanotify_init", "quotactl", "quotactl_fd",
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
    "mq_open", "mq_unlink",
)  # fmt: skip

_NAMESPACE_FLAGS = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX


@cache
def compiled_filter(own_mounts: bool = True) -> bytes:
    """The filter as BPF, ready for ``bwrap --seccomp`` or ``prctl``; ImportError or OSError without libseccomp.

    Without ``own_mounts`` the sockets of the machine's services lie in sight, and Landlock does not keep anybody from
    connecting to a path: connecting is denied altogether, and so are datagrams, which need no connection.
    """
    import pyseccomp as seccomp

    rules: Any = seccomp.SyscallFilter(seccomp.ALLOW)
    refuse = seccomp.ERRNO(errno.EPERM)
    for name in DENIED:
        _add(rules, refuse, name)
    for flag in _NAMESPACE_FLAGS:
        _add(rules, refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # clone3 hides its flags behind a pointer; glibc falls back to clone when told that it does not exist.
    _add(rules, seccomp.ERRNO(errno.ENOSYS), "clone3")
    # A network namespace does not cover VSOCK, and netlink or packet sockets are of no use to a notebook.  ZeroMQ
    # aborts its process on other error numbers than this one when it looks for network interfaces.
    _add(rules, seccomp.ERRNO(errno.EOPNOTSUPP), "socket", seccomp.Arg(0, seccomp.NE, int(socket.AF_UNIX)))
    if not own_mounts:
        _add(rules, refuse, "connect")
        _add(rules, refuse, "socket", seccomp.Arg(1, seccomp.MASKED_EQ, 0xF, int(socket.SOCK_DGRAM)))
    for request in _TERMINAL_INJECTION:
        _add(rules, refuse, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    with tempfile.TemporaryFile() as stream:
        rules.export_bpf(stream)
        stream.flush()
        os.lseek(stream.fileno(), 0, os.SEEK_SET)
        return os.read(stream.fileno(), 1 << 20)


def _add(rules: Any, action: Any, name: str, *arguments: Any) -> None:
    """Add a rule; a call that this libseccomp or this architecture does not know cannot be made by name either."""
    try:
        rules.add_rule(action, name, *arguments)
    except (OSError, ValueError, RuntimeError):
        if name in {"ptrace", "mount", "unshare", "setns", "bpf", "clone", "socket"}:
            raise
