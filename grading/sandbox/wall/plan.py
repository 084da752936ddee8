"""How one kind of wall is started, and the failure to build it."""

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["IsolationUnavailable", "Plan"]


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

    def close(self) -> None:
        """Close what the start needed and remove a scratch folder."""
        for number in self.pass_fds:
            with contextlib.suppress(OSError):
                os.close(number)
        self.pass_fds = ()

    def remove(self) -> None:
        """Remove the scratch folder of a kind without own mounts."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None
