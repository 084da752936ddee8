"""The graded items: their ids, points and results, as notebooks, checks, gradebook and command line share them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, cast

__all__ = [
    "BENCHMARK_ITEMS",
    "COMPARISON_ITEMS",
    "EVIDENCE_ITEMS",
    "EXERCISE_ITEMS",
    "MAX_POINTS",
    "PER_CLASS_ITEMS",
    "POLICY_ITEMS",
    "RELEASE_ITEMS",
    "STATS_ITEMS",
    "STEP7_ITEMS",
    "ItemRecord",
    "ItemResult",
    "Judge",
    "as_json",
]

STATS_ITEMS = {"stats_p50": 2, "stats_p95": 3, "stats_throughput": 2, "stats_pure": 1, "stats_errors": 1}
BENCHMARK_ITEMS = {"benchmark_record": 3, "benchmark_linkage": 3, "benchmark_summary": 2}
RELEASE_ITEMS = {"release_linkage": 3, "release_limits": 3, "release_claims": 2}
"""``release_scope`` (3, a written answer) is graded by hand and has no automatic result."""

STEP7_ITEMS = STATS_ITEMS | BENCHMARK_ITEMS
EVIDENCE_ITEMS = BENCHMARK_ITEMS | RELEASE_ITEMS
MAX_POINTS = STEP7_ITEMS | RELEASE_ITEMS
"""Of the assignment ``release``."""

PER_CLASS_ITEMS = {"per_class_values": 4, "per_class_empty": 2, "per_class_manners": 1}
COMPARISON_ITEMS = {"comparison_record": 3, "claims_verdicts": 4, "claims_evidence": 2, "claims_scope": 2}
"""``review_answer`` (4, a written answer) is graded by hand."""

POLICY_ITEMS = {"latency_record": 3, "policy_prediction": 3, "policy_claims": 2}
"""``latency_report`` and ``policy_defence`` (4 each, written answers) are graded by hand."""

EXERCISE_ITEMS = {"latency_stats": STATS_ITEMS, "per_class_accuracy": PER_CLASS_ITEMS}
"""Folder in ``grading/exercises``, where the hidden questions and their judge are found -> its items."""

_POINTS = MAX_POINTS | PER_CLASS_ITEMS | COMPARISON_ITEMS | POLICY_ITEMS


class ItemRecord(TypedDict):
    """An item's result as JSON."""

    id: str
    points: float
    max_points: float
    passed: bool
    message: str
    mistake: str | None


@dataclass(frozen=True)
class ItemResult:
    """One item judged: its points and the sentence the student reads. No hidden number may stand in ``message``."""

    id: str
    points: float
    max_points: float
    passed: bool
    message: str
    mistake: str | None = None

    @classmethod
    def of(cls, item: str, fraction: float, message: str, mistake: str | None = None) -> "ItemResult":
        """Points as a fraction of the item's maximum, rounded down to halves so that rounding never gives more."""
        maximum = _POINTS[item]
        points = int(2 * maximum * fraction) / 2
        return cls(item, points, maximum, points == maximum, message, mistake)

    def record(self) -> ItemRecord:
        """This result as JSON."""
        return cast(ItemRecord, asdict(self))


@dataclass(frozen=True, eq=False)
class Judge:
    """Whoever judges ``items``, with their points."""

    items: Mapping[str, float]

    def concerns(self, wanted: Mapping[str, float]) -> bool:
        """Whether any of these items is this judge's."""
        return bool(set(wanted) & set(self.items))


def as_json(items: list[ItemResult], isolation: dict[str, Any]) -> dict[str, Any]:
    """The answer of ``try --json`` and ``check-evidence --json``."""
    return {
        "items": [item.record() for item in items],
        "points": sum(item.points for item in items),
        "max_points": sum(item.max_points for item in items),
        "isolation": isolation,
    }
