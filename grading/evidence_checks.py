"""The judge of an evidence folder: what the library's own check found, made into points and messages.

The check itself (``deep_learning_cases.release.check``) recomputes everything from the files and runs the models, so it
runs behind the wall; the judge gets plain findings and decides outside.  An item counts if its area has no finding.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError
from deep_learning_cases.files import parse_json
from grading.flags import Flag
from grading.items import EVIDENCE_ITEMS, ItemResult
from grading.submission.stage import read_file
from grading.suspicion import evidence_flags

__all__ = ["findings_of", "judge", "judge_folder", "message_of", "shorten", "unreadable"]

CHECK = "deep_learning_cases.release:check"
BENCHMARK = "benchmark.json"
MAX_RECORD_BYTES = 4 * 1024 * 1024
MAX_MESSAGE = 400
SHOWN = 3

AREAS = {item: {item} for item in EVIDENCE_ITEMS} | {"release_limits": {"release_limits", "regression"}}
"""Item -> the check's areas that count for it: the accuracies of the limits come from the regression."""

PRAISE = {
    "benchmark_record": (
        "The record is whole: every raw sample of every round, the protocol, the order and the machine. It is a record "
        "to review and no certificate, for neither hashes nor statistics can prove that times were measured."
    ),
    "benchmark_linkage": (
        "The record names exactly these models and this data. After another conversion the hash alone would not "
        "do: the samples would belong to a model that is gone."
    ),
    "benchmark_summary": (
        "The summary follows from the raw samples of all rounds. Whoever doubts it can compute it again, which a mean "
        "of rounds would not have allowed."
    ),
    "release_linkage": (
        "release.json names these very files. That finds stale reports; it does not show where the times came from."
    ),
    "release_limits": (
        "Size, accuracy, latency and decision follow from the files. The limit is for the file: the memory of the "
        "process hardly moves with it."
    ),
    "release_claims": "The claims stay within what this evidence can carry; the rest is left to the real device.",
}


def judge(
    findings: Sequence[Mapping[str, Any]], record: Mapping[str, Any] | None
) -> tuple[list[ItemResult], list[Flag]]:
    """Points from findings ({"area", "file", "pointer", "message", "redo"}); flags from ``record``, the benchmark.json.

    ``record`` is None where it could not be read; a check that says nothing of that has not looked.
    """
    if record is None and not any(str(finding.get("area")).startswith("benchmark") for finding in findings):
        gone = {"file": BENCHMARK, "message": "cannot be read", "redo": "run the measurement again"}
        findings = [*findings, *({"area": area, **gone} for area in EVIDENCE_ITEMS if area.startswith("benchmark"))]
    items = []
    for item, areas in AREAS.items():
        found = [finding for finding in findings if finding.get("area") in areas]
        items.append(ItemResult.of(item, 0, message_of(found)) if found else ItemResult.of(item, 1, PRAISE[item]))
    return items, evidence_flags(record) if record is not None else []


def judge_folder(folder: str | Path, box: Any) -> tuple[list[ItemResult], list[Flag]]:
    """Check a staged evidence folder behind ``box``'s wall and judge it here; never raises for what it holds."""
    folder = Path(folder)
    if not folder.is_dir():
        return unreadable("there is no evidence folder: run the notebooks' cells from the first to the last"), []
    findings, failure = findings_of(CHECK, folder, box)
    if findings is None:
        reason = f"the evidence could not be checked: {failure}"
        return unreadable(reason), [Flag("evidence-not-checked", shorten(f"{reason}; grade it again or by hand"))]
    return judge(findings, _record(folder))


def findings_of(check: str, folder: Path, box: Any) -> tuple[list[dict[str, Any]] | None, str]:
    """What ``check`` ("module:function") found behind the wall, or None and why not.

    A second try tells a lost sandbox from files that end every check.
    """
    from grading.sandbox.box import ComputeFailed

    failure = "the check gave no findings"
    for _ in range(2):
        try:
            findings = box.compute(check, folder)
        except ComputeFailed as error:
            failure = str(error)
            continue
        if isinstance(findings, list) and all(isinstance(finding, dict) for finding in findings):
            return findings, ""
    return None, failure


def unreadable(reason: str) -> list[ItemResult]:
    """Every evidence item at zero, with one reason."""
    return [ItemResult.of(item, 0, shorten(reason)) for item in EVIDENCE_ITEMS]


def _record(folder: Path) -> dict[str, Any] | None:
    """benchmark.json as strict, bounded JSON: safe to read out here, unlike archives and models."""
    content = read_file(folder / BENCHMARK, MAX_RECORD_BYTES)
    if content is None:
        return None
    try:
        value = parse_json(content, BENCHMARK)
    except DeepLearningCasesError:
        return None
    return value if isinstance(value, dict) else None


def message_of(found: Sequence[Mapping[str, Any]]) -> str:
    """The first findings as sentences, and how many more there are."""
    parts = [_sentence(finding) for finding in found[:SHOWN]]
    more = len(found) - SHOWN
    return " ".join(parts) + (f" And {more} more like this." if more > 0 else "")


def _sentence(finding: Mapping[str, Any]) -> str:
    place = str(finding.get("file", ""))
    if finding.get("pointer"):
        place += f" at {finding['pointer']}"
    redo = f"; {finding['redo']}" if finding.get("redo") else ""
    return shorten(f"{place}: {finding.get('message', '')}{redo}") + "."


def shorten(text: str) -> str:
    """One line without control characters: files' own words may stand in it."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split()).rstrip(".")
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
