"""The judge of the latency lab's evidence: what the library's own check found, made into points and messages.

``deep_learning_cases.policy_record.check`` recomputes the sums of ``latency.json`` and simulates the policy of
``policy.json`` anew, so it runs behind the wall; the judge gets plain findings and decides outside.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grading.items import ItemResult

__all__ = ["CHECK", "POLICY_ITEMS", "judge", "judge_folder", "unreadable"]

CHECK = "deep_learning_cases.policy_record:check"

POLICY_ITEMS = {"latency_record": 3, "policy_prediction": 3, "policy_claims": 2}
"""``latency_report`` and ``policy_defence`` (4 each, written answers) are graded by hand."""

MAX_MESSAGE = 400
SHOWN = 3

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
        message = _message(found) if found else PRAISE[item]
        items.append(ItemResult(item, 0 if found else points, points, not found, message))
    return items


def judge_folder(folder: str | Path, box: Any) -> list[ItemResult]:
    """Check a staged evidence folder behind ``box``'s wall and judge it here; never raises for what it holds."""
    from grading.sandbox import ComputeFailed

    folder = Path(folder)
    if not folder.is_dir():
        return unreadable("there is no evidence folder: run the notebooks' cells from the first to the last")
    failure = "the check gave no findings"
    for _ in range(2):  # a second try tells a lost sandbox from files that end every check
        try:
            findings = box.compute(CHECK, folder)
        except ComputeFailed as error:
            failure = str(error)
            continue
        if isinstance(findings, list) and all(isinstance(finding, dict) for finding in findings):
            return judge(findings)
    return unreadable(f"the evidence could not be checked: {failure}")


def unreadable(reason: str) -> list[ItemResult]:
    """Every item at zero, with one reason."""
    return [ItemResult(item, 0, points, False, _one_line(reason)) for item, points in POLICY_ITEMS.items()]


def _message(found: Sequence[Mapping[str, Any]]) -> str:
    more = len(found) - SHOWN
    return " ".join(map(_sentence, found[:SHOWN])) + (f" And {more} more like this." if more > 0 else "")


def _sentence(finding: Mapping[str, Any]) -> str:
    place = str(finding.get("file", ""))
    if finding.get("pointer"):
        place += f" at {finding['pointer']}"
    redo = f"; {finding['redo']}" if finding.get("redo") else ""
    return _one_line(f"{place}: {finding.get('message', '')}{redo}") + "."


def _one_line(text: str) -> str:
    """Without control characters and bounded: a file's own words may stand in it."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split()).rstrip(".")
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
