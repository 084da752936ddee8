"""Remarks for a person: never shown as a verdict, never worth a point."""

import re
from dataclasses import asdict, dataclass
from typing import TypedDict, cast

__all__ = ["Flag", "FlagRecord", "source_flags"]


class FlagRecord(TypedDict):
    """A flag as JSON."""

    id: str
    reason: str
    where: str


@dataclass(frozen=True)
class Flag:
    """``id`` in the style of the mistakes, ``reason`` a line for the instructor, ``where`` a JSON pointer or a cell."""

    id: str
    reason: str
    where: str = ""

    def record(self) -> FlagRecord:
        """This flag as JSON."""
        return cast(FlagRecord, asdict(self))


# Every expression takes time that grows with the text alone: none begins again within a word that another took.
_LOOKS_AROUND = {
    "reads-frames": (
        r"_getframe|\bf_back\b|\bf_globals\b|inspect\.(stack|currentframe)",
        "looks at its caller's frames",
    ),
    "searches-memory": (r"gc\.get_(objects|refer\w+)|\bctypes\b", "searches the process's memory"),
    "starts-processes": (r"\bsubprocess\b|os\.(system|popen|fork|exec|spawn)", "starts processes"),
    "uses-the-network": (r"\bsocket\b|\burllib\b|\brequests\b|\bhttp\.client\b", "uses the network"),
    "changes-the-kernel": (
        r"ast_transformers|input_transformers|displayhook|run_cell_hook",
        "changes how cells are run",
    ),
    "copies-the-library": (
        r"(?s)\A(?=.*latency_summary)(?=.*(getsource|__code__|spec_from_file_location|\bexec\(|\breload\(|\bmarshal\b|FunctionType))",
        "takes the library's own function apart or loads it a second time",
    ),
    "patches-comparisons": (r"\b(assert_\w++|isclose|allclose)\s*+=[^=]", "replaces functions that compare numbers"),
}


def source_flags(source: str) -> list[Flag]:
    """What a student's code contains that the task has no use for: worth a look, and no proof of anything."""
    return [
        Flag(key, f"the code {what}, which the task does not need; its points follow from its answers alone", "source")
        for key, (pattern, what) in _LOOKS_AROUND.items()
        if re.search(pattern, source)
    ]
