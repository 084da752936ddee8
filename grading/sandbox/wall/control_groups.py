"""A control group per slot, where this machine lets us make one: memory and processes of a submission as a whole."""

import contextlib
import itertools
import os
import time
from pathlib import Path

from grading.sandbox.limits import Limits

__all__ = ["ControlGroup", "make_group"]

_ROOT = Path("/sys/fs/cgroup")
_SERVER_MB = 400
_counter = itertools.count()


class ControlGroup:
    """The folders of one group (version 2: one; version 1: one per controller)."""

    def __init__(self, folders: list[Path], version: int) -> None:
        self.folders, self.version = folders, version

    def enter_command(self) -> list[str]:
        """A command prefix that moves itself into the group before it becomes what follows."""
        moves = " ".join(f'echo $$ > "{folder}/cgroup.procs" &&' for folder in self.folders)
        return ["/bin/sh", "-c", f'{moves} exec "$@"', "sh"]

    def out_of_memory(self) -> int:
        """How often the kernel killed a process of the group for memory."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError):
            for line in (self.folders[0] / name).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
        return 0

    def remove(self) -> None:
        """Remove the group; its processes have just been killed and may need a moment."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)


def make_group(limits: Limits) -> ControlGroup | None:
    """A new group, or None where control groups cannot be made (an ordinary user, most containers)."""
    if os.geteuid() != 0:
        return None
    _remove_stale()
    name = f"grading-{os.getpid()}-{next(_counter)}"
    memory = (limits.memory_mb + limits.shared_mb + _SERVER_MB) * 1024 * 1024
    with contextlib.suppress(OSError):
        if (_ROOT / "cgroup.controllers").exists():
            return _version_2(name, memory, limits)
        if (_ROOT / "memory" / "cgroup.procs").exists():
            return _version_1(name, memory, limits)
    return None


def _remove_stale() -> None:
    """Groups of graders that were killed; a folder with a process in it cannot be removed and stays."""
    for folder in [*_ROOT.glob("grading-*-*"), *_ROOT.glob("memory/grading-*-*"), *_ROOT.glob("pids/grading-*-*")]:
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


def _version_2(name: str, memory: int, limits: Limits) -> ControlGroup | None:
    if not {"memory", "pids"} <= set((_ROOT / "cgroup.subtree_control").read_text().split()):
        return None
    folder = _ROOT / name
    folder.mkdir()
    return _set([folder], 2, {folder / "memory.max": memory, folder / "pids.max": limits.processes * 2 + 32})


def _version_1(name: str, memory: int, limits: Limits) -> ControlGroup | None:
    folders = [_ROOT / "memory" / name]
    folders[0].mkdir()
    values = {folders[0] / "memory.limit_in_bytes": memory}
    if (_ROOT / "pids" / "cgroup.procs").exists():
        folders.append(_ROOT / "pids" / name)
        folders[1].mkdir()
        values[folders[1] / "pids.max"] = limits.processes * 2 + 32
    return _set(folders, 1, values)


def _set(folders: list[Path], version: int, values: dict[Path, int]) -> ControlGroup | None:
    group = ControlGroup(folders, version)
    try:
        for path, value in values.items():
            path.write_text(str(value))
        with contextlib.suppress(OSError):
            (folders[0] / "memory.swap.max").write_text("0")
    except OSError:
        group.remove()
        return None
    return group
