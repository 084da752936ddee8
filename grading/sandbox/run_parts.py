"""What goes into a run and what comes out of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

__all__ = ["CONTAINERS", "Call", "Cell", "Part", "Run"]

CONTAINERS = ("list", "tuple", "numpy", "numpy_int")


@dataclass(frozen=True)
class Cell:
    """A code cell: ``run`` False keeps its place without running it (locked measurement cells)."""

    id: str
    source: str
    run: bool = True

    @classmethod
    def of(cls, value: "Cell | Mapping[str, Any]") -> "Cell":
        """A cell as it is, or from plain values."""
        return (
            value
            if isinstance(value, Cell)
            else cls(str(value["id"]), str(value["source"]), bool(value.get("run", True)))
        )


@dataclass(frozen=True)
class Call:
    """One question: ``function(samples, batch_size)``, or ``function(*arguments)`` where there are any.

    Lists among the arguments are handed over in ``container``.
    """

    id: str
    samples: Any = None
    batch_size: Any = None
    container: str = "list"
    function: str = "latency_stats"
    arguments: tuple[Any, ...] = ()

    def handed_over(self) -> list[Any]:
        """The arguments in their order."""
        return list(self.arguments) or [self.samples, self.batch_size]

    def __post_init__(self) -> None:
        if self.container not in CONTAINERS:
            raise ValueError(
                f"container is {self.container!r}: expected one of {', '.join(CONTAINERS)}; correct the call"
            )

    @classmethod
    def of(cls, value: "Call | Mapping[str, Any]") -> "Call":
        """A call as it is, or from plain values."""
        if isinstance(value, Call):
            return value
        return cls(
            str(value["id"]),
            value.get("samples"),
            value.get("batch_size"),
            str(value.get("container", "list")),
            str(value.get("function", "latency_stats")),
            tuple(value.get("arguments", ())),
        )


@dataclass(frozen=True, eq=False)
class Part:
    """One notebook of a submission: its cells, the files it finds beside it, the questions to its function."""

    cells: tuple[Cell, ...]
    files: Path | None = None
    calls: tuple[Call, ...] = ()

    @classmethod
    def of(
        cls,
        cells: Iterable[Cell | Mapping[str, Any]],
        files: Path | None = None,
        calls: Iterable[Call | Mapping[str, Any]] = (),
    ) -> "Part":
        """A part from cells and calls as they are, or as plain values."""
        return cls(tuple(map(Cell.of, cells)), files, tuple(map(Call.of, calls)))


@dataclass
class Run:
    """One submission's run.

    ``outputs`` and ``execution_counts`` by cell id; ``answers`` by call id; ``stopped`` is None or {"why", "cell",
    "message"}; ``finished`` names the cells that ran to their end; ``asked`` tells whether the calls were reached;
    ``files`` lists what the cells wrote (names and sizes, taken before the first hidden input went in).
    """

    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    execution_counts: dict[str, int | None] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: dict[str, Any] | None = None
    finished: list[str] = field(default_factory=list)
    asked: bool = False
    cut: list[str] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    isolation: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The run as plain JSON; its parts are plain already, and not copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
