"""How one kind of wall is started, and the failure to build it."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["IsolationUnavailable", "Plan", "remove_folder"]


class IsolationUnavailable(RuntimeError):
    """No wall of the wanted kind can be built here; one line that says why and what to do."""


@dataclass
class Plan:
    """How to start the fork server of one kind, and what it is told."""

    kind: str
    command: list[str]
    environment: dict[str, str]
    config: dict[str, Any]
    pass_fds: tuple[int, ...] = ()
    folder: Path | None = None
    lock: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    new_user: Callable[[], int] | None = None

    def make_place(self) -> dict[str, Any]:
        """A fresh folder for one submission, and its user; nothing where the wall makes a world of its own inside."""
        if self.folder is None:
            return {}
        folder = tempfile.mkdtemp(prefix="one-", dir=self.folder)
        place: dict[str, Any] = {
            "folder": folder,
            "home": f"{folder}/student",
            "work": f"{folder}/student/work",
            "temporary": f"{folder}/tmp",
        }
        if self.new_user is not None:
            place["uid"] = place["gid"] = uid = self.new_user()
            os.chown(folder, uid, uid)
        return place

    def close(self) -> None:
        """Close what the start needed and remove a scratch folder."""
        for number in self.pass_fds:
            with contextlib.suppress(OSError):
                os.close(number)
        self.pass_fds = ()

    def remove(self) -> None:
        """Remove the scratch folder of a kind without own mounts."""
        if self.folder is not None:
            remove_folder(str(self.folder))
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


def remove_folder(folder: str) -> None:
    """By a tool that neither follows links nor minds how deep a tree is; folders without rights are given them back."""
    command = ["rm", "-rf", "--one-file-system", "--", folder]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode and os.path.isdir(folder):
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], capture_output=True, check=False)
        done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        print(f"could not remove {folder}: remove it by hand", file=sys.stderr)
