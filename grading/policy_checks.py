"""The judge of the latency lab's evidence: what the library's own check found, made into points and messages.

``deep_learning_cases.latency.policy_record.check`` recomputes the sums of ``latency.json`` and simulates the policy of
``policy.json`` anew, so it runs behind the wall; the judge gets plain findings and decides outside.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grading.evidence_checks import findings_of, message_of, shorten
from grading.items import ItemResult

__all__ = ["CHECK", "POLICY_ITEMS", "judge", "judge_folder", "unreadable"]

CHECK = "deep_learning_cases.latency.policy_record:check"

POLICY_ITEMS = {"latency_record": 3, "policy_prediction": 3, "policy_claims": 2}
"""``latency_report`` and ``policy_defence`` (4 each, written answers) are graded by hand."""

PRAISE = {
    "latency_record": (
        "The record is whole and its numbers follow from its samples. It is a record to review and no certificate: "
        "nothing in a file proves that times were measured."
    ),
    "policy_prediction": (
        "The same simulation with other random numbers predicts the same. It repeats the arithmetic, not the world: "
        "whether the declared load will come, no seed can tell."
    ),
    "policy_claims": (
        "The verdict follows from the whole interval, and the record says what it leaves open. With the limit inside "
        "the interval, unsure would have been the right word."
    ),
}


def judge(findings: Sequence[Mapping[str, Any]]) -> list[ItemResult]:
    """Points from findings ({"area", "file", "pointer", "message", "redo"}): an item counts if its area has none."""
    items = []
    for item, points in POLICY_ITEMS.items():
        found = [finding for finding in findings if finding.get("area") == item]
        message = message_of(found) if found else PRAISE[item]
        items.append(ItemResult(item, 0 if found else points, points, not found, message))
    return items


def judge_folder(folder: str | Path, box: Any) -> list[ItemResult]:
    """Check a staged evidence folder behind ``box``'s wall and judge it here; never raises for what it holds."""
    folder = Path(folder)
    if not folder.is_dir():
        return unreadable("there is no evidence folder: run the notebooks' cells from the first to the last")
    findings, failure = findings_of(CHECK, folder, box)
    return unreadable(f"the evidence could not be checked: {failure}") if findings is None else judge(findings)


def unreadable(reason: str) -> list[ItemResult]:
    """Every item at zero, with one reason."""
    return [ItemResult(item, 0, points, False, shorten(reason)) for item, points in POLICY_ITEMS.items()]
