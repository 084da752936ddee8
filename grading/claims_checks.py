"""The judge of the quantization lab's evidence: what the library's own check found, made into points and messages.

:func:`claims_record.check` computes everything of ``quantization.json`` again and judges the claims
against its raw samples, behind the wall; the judge gets plain findings and decides outside.  Each of the four claims is
a quarter of ``claims_verdicts``, ``claims_evidence`` and ``claims_scope``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grading.evidence_checks import findings_of, message_of, shorten
from grading.items import COMPARISON_ITEMS, ItemResult

__all__ = ["CHECK", "judge", "judge_folder", "unreadable"]

CHECK = "deep_learning_cases.quantizing.comparison.claims_record:check"
FILE, CLAIMS = "claims.json", 4

PRAISE = {
    "comparison_record": (
        "The record is whole, and all its numbers follow from its samples and predictions. It is a record to review "
        "and no certificate: nothing in a file proves that times were measured."
    ),
    "claims_verdicts": (
        "Each verdict follows from the whole interval and not from its middle. Where it holds 1, or the limit, more "
        "rounds might decide; more samples within a round would not."
    ),
    "claims_evidence": "Every number can be found in the record, so a reader may doubt it and compute it again.",
    "claims_scope": "Each claim says where it ends. Whoever repeats it elsewhere knows what to measure first.",
}


def judge(findings: Sequence[Mapping[str, Any]]) -> list[ItemResult]:
    """Points from findings ({"area", "file", "pointer", "message", "redo"})."""
    items = []
    for item in COMPARISON_ITEMS:
        found = [finding for finding in findings if finding.get("area") == item]
        message = message_of(found) if found else PRAISE[item]
        items.append(ItemResult.of(item, _share(found), message))
    return items


def _share(found: Sequence[Mapping[str, Any]]) -> float:
    """1 without findings; a quarter less for each claim that has one; 0 for a finding about the whole."""
    claims = {_claim(finding) for finding in found}
    return 0.0 if None in claims else 1 - min(len(claims), CLAIMS) / CLAIMS


def _claim(finding: Mapping[str, Any]) -> str | None:
    """The claim that a finding is about, None if it is about the whole."""
    parts = str(finding.get("pointer", "")).split("/")
    named = finding.get("file") == FILE and len(parts) > 2 and parts[1] == "claims"
    return parts[2] if named else None


def judge_folder(folder: str | Path, box: Any) -> list[ItemResult]:
    """Check a staged evidence folder behind ``box``'s wall and judge it here; never raises for what it holds."""
    folder = Path(folder)
    if not folder.is_dir():
        return unreadable("there is no evidence folder: run the notebook's cells from the first to the last")
    findings, failure = findings_of(CHECK, folder, box)
    return unreadable(f"the evidence could not be checked: {failure}") if findings is None else judge(findings)


def unreadable(reason: str) -> list[ItemResult]:
    """Every item at zero, with one reason."""
    return [ItemResult.of(item, 0, shorten(reason)) for item in COMPARISON_ITEMS]
