"""Landlock (Linux 5.13 and later): an allow-list of paths that holds without any namespace."""

import ctypes
import os
import struct

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_VERSION_FLAG = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_FILESYSTEM_V1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    return max(0, int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))))


def handled(abi: int) -> int:
    """All file-system rights that this version can withhold."""
    return (
        _FILESYSTEM_V1 | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL_DEV if abi >= 5 else 0)
    )


def ruleset(read_only: list[str], read_write: list[str], devices: list[str]) -> int:
    """A ruleset descriptor: only these paths can be reached, the first kind without writing.

    Paths that do not exist are left out.  OSError where the kernel refuses.
    """
    abi = version()
    everything = handled(abi)
    attributes = struct.pack("=Q", everything)
    if abi >= 4:
        attributes += struct.pack("=Q", _NET_BIND | _NET_CONNECT)
    if abi >= 6:
        attributes += struct.pack("=Q", _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    rules = _call(_CREATE, buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    reading = EXECUTE | READ_FILE | READ_DIR
    for paths, rights in ((read_only, reading), (read_write, everything & ~_IOCTL_DEV), (devices, everything)):
        for path in paths:
            if os.path.exists(path):
                _allow(rules, path, rights & everything)
    return rules


def restrict(rules: int) -> None:
    """Confine this process and all it starts; no_new_privs must be set."""
    _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint(0))


def _allow(rules: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        attributes = struct.pack("=Qi", rights, handle)
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        _call(_ADD, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), buffer, ctypes.c_uint(0))
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "Landlock")
    return result
