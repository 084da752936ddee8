"""The control group of one student's server: memory, cores and processes of it and of all its kernels together."""

import contextlib
import os
import signal
import time
from pathlib import Path

__all__ = ["ServerGroup", "make_group"]

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
PROCESSES = 512
"""Processes and threads of one server: far above what a notebook needs, far below what stops a machine."""

ATTEMPTS = 20
"""How often a group is asked to go, 50 ms apart."""


class ServerGroup:
    """The folders of one server's control group: one in version 2, one per controller in version 1."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders

    def enter(self) -> None:
        """Move the calling process in; what it starts later is born inside."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Kill what still lives in the group (a program left in the background), then remove it."""
        for _ in range(ATTEMPTS):
            self._kill()
            # A killed process leaves its group a moment later; until then the folder is busy.
            if all(_removed(folder) for folder in self.folders):
                return
            time.sleep(0.05)

    def _kill(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                for number in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(number), signal.SIGKILL)


def _removed(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def make_group(name: str, memory_bytes: int | None, cores: float | None, root: Path = ROOT) -> ServerGroup | None:
    """A control group with these limits, made anew or taken over; None where this machine does not let us."""
    try:
        if (root / "cgroup.controllers").exists():
            return _version_2(root / name, memory_bytes, cores)
        return _version_1(root, name, memory_bytes, cores)
    except OSError:
        return None


def _version_2(folder: Path, memory_bytes: int | None, cores: float | None) -> ServerGroup:
    available = (folder.parent / "cgroup.controllers").read_text().split()
    if missing := {"memory", "cpu", "pids"} - set(available):
        raise OSError(f"{folder.parent} does not offer {', '.join(sorted(missing))}")
    (folder.parent / "cgroup.subtree_control").write_text("+memory +cpu +pids")
    folder.mkdir(exist_ok=True)
    (folder / "memory.max").write_text(str(memory_bytes or "max"))
    swap = folder / "memory.swap.max"
    if swap.exists():  # not where the kernel counts no swap
        swap.write_text("0")
    (folder / "cpu.max").write_text(f"{_quota_us(cores) or 'max'} {PERIOD_US}")
    (folder / "pids.max").write_text(str(PROCESSES))
    return ServerGroup([folder])


def _version_1(root: Path, name: str, memory_bytes: int | None, cores: float | None) -> ServerGroup:
    values = {
        "memory": ("memory.limit_in_bytes", memory_bytes or -1),
        "cpu": ("cpu.cfs_quota_us", _quota_us(cores) or -1),
        "pids": ("pids.max", PROCESSES),
    }
    folders = []
    for controller, (file, value) in values.items():
        folder = root / controller / name
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(str(value))
        folders.append(folder)
    return ServerGroup(folders)


def _quota_us(cores: float | None) -> int | None:
    return round(cores * PERIOD_US) if cores else None
