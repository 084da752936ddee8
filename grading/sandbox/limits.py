"""What a submission may use, and how each limit is called when a student meets it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds of one submission; every number must be positive.

    Sizes are binary (1 MB = 1024 * 1024 bytes).  ``memory_mb`` is what a process may take beyond the libraries that are
    loaded before the student's code; where the machine offers control groups, all processes of a submission together
    may take that and ``shared_mb`` more, files in memory included.
    """

    seconds_per_cell: float = 30.0
    seconds_total: float = 120.0
    seconds_per_call: float = 5.0
    seconds_all_calls: float = 30.0
    memory_mb: int = 1024
    shared_mb: int = 512
    processes: int = 64
    file_mb: int = 64
    folder_mb: int = 256
    output_kb: int = 1024
    files_in: int = 500
    cpu_seconds: int = 180

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
                raise ValueError(f"limit {field.name} is {value!r}: expected a positive number; correct the limits")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Limits":
        """Limits from a configuration; ValueError names a key that is no limit."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not a limit: expected one of {', '.join(sorted(known))}; correct the name"
            )
        return cls(**dict(values))

    def to_dict(self) -> dict[str, float]:
        """The limits as plain numbers, as they are stored with a submission."""
        return asdict(self)

    def sentence(self, why: str) -> str:
        """The words a student reads when the limit ``why`` stopped the work."""
        return {
            "time": f"stopped after {self.seconds_per_cell:g} s: the cell was still running",
            "total": f"stopped after {self.seconds_total:g} s: the notebook as a whole took too long",
            "memory": f"stopped: more than {self.memory_mb} MB of memory were used",
            "processes": f"stopped: more than {self.processes} processes were started",
            "output": f"output cut: more than {self.output_kb} kB were printed",
            "folder": f"stopped: more than {self.folder_mb} MB of files were written",
            "died": "the Python process ended before the notebook was through (a crash or an exit)",
        }[why]
