"""The judges of evidence folders: what the library's own check of each lab found, made into points and messages.

A check recomputes everything from the files and may run models, so it runs behind the wall; its judge gets plain
findings ({"area", "file", "pointer", "message", "redo"}) and decides outside.  An item counts if its area has none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError
from deep_learning_cases.ground.files import parse_json
from grading.judging.flags import Flag
from grading.judging.items import COMPARISON_ITEMS, EVIDENCE_ITEMS, POLICY_ITEMS, ItemResult, Judge
from grading.judging.suspicion import evidence_flags
from grading.submission.stage import read_file

__all__ = ["LATENCY", "QUANTIZATION", "RELEASE", "FolderJudge"]

BENCHMARK = "benchmark.json"
MAX_RECORD_BYTES = 4 * 1024 * 1024
CLAIMS_FILE, CLAIMS = "claims.json", 4
MAX_MESSAGE = 400
SHOWN = 3

Findings = Sequence[Mapping[str, Any]]


def _nothing_left(found: Findings) -> float:
    return 0.0 if found else 1.0


def _claims_left(found: Findings) -> float:
    """1 without findings; a quarter less for each claim that has one; 0 for a finding about the whole."""
    claims = {_claim(finding) for finding in found}
    return 0.0 if None in claims else 1 - min(len(claims), CLAIMS) / CLAIMS


def _claim(finding: Mapping[str, Any]) -> str | None:
    """The claim that a finding is about, None if it is about the whole."""
    parts = str(finding.get("pointer", "")).split("/")
    named = finding.get("file") == CLAIMS_FILE and len(parts) > 2 and parts[1] == "claims"
    return parts[2] if named else None


@dataclass(frozen=True, eq=False)
class FolderJudge(Judge):
    """The judge of one lab's evidence.

    ``check`` ("module:function") runs behind the wall, ``praise`` is what a whole item is told, ``to_run`` what to run
    where there is no folder, ``share`` the part of an item's points that findings about it leave.
    """

    check: str
    praise: Mapping[str, str]
    to_run: str = "the notebooks' cells"
    share: Callable[[Findings], float] = _nothing_left

    def judge(self, folder: str | Path, box: Any) -> tuple[list[ItemResult], list[Flag]]:
        """Check a staged evidence folder behind ``box``'s wall and judge it here; never raises for what it holds."""
        folder = Path(folder)
        if not folder.is_dir():
            return self.unreadable(f"there is no evidence folder: run {self.to_run} from the first to the last"), []
        findings, failure = _findings_of(self.check, folder, box)
        if findings is None:
            reason = f"the evidence could not be checked: {failure}"
            return self.unreadable(reason), self._not_checked(reason)
        return self._judge_checked(findings, folder)

    def items_for(self, findings: Findings) -> list[ItemResult]:
        """Points and messages."""
        items = []
        for item in self.items:
            found = [finding for finding in findings if self._item_of(finding) == item]
            items.append(ItemResult.of(item, self.share(found), _message_of(found) if found else self.praise[item]))
        return items

    def unreadable(self, reason: str) -> list[ItemResult]:
        """Every item at zero, with one reason."""
        return [ItemResult.of(item, 0, _shorten(reason)) for item in self.items]

    def _item_of(self, finding: Mapping[str, Any]) -> Any:
        return finding.get("area")

    def _judge_checked(self, findings: Findings, _folder: Path) -> tuple[list[ItemResult], list[Flag]]:
        return self.items_for(findings), []

    def _not_checked(self, _reason: str) -> list[Flag]:
        return []


class _ReleaseJudge(FolderJudge):
    """Looks at ``benchmark.json`` itself as well: what is odd in it is a remark for a person."""

    def judge_record(self, findings: Findings, record: Mapping[str, Any] | None) -> tuple[list[ItemResult], list[Flag]]:
        """Points from findings; flags from ``record``, the benchmark.json.

        ``record`` is None where it could not be read; a check that says nothing of that has not looked.
        """
        if record is None and not any(str(finding.get("area")).startswith("benchmark") for finding in findings):
            gone = {"file": BENCHMARK, "message": "cannot be read", "redo": "run the measurement again"}
            findings = [*findings, *({"area": area, **gone} for area in self.items if area.startswith("benchmark"))]
        return self.items_for(findings), evidence_flags(record) if record is not None else []

    def _item_of(self, finding: Mapping[str, Any]) -> Any:
        # The accuracies of the limits come from the regression.
        area = finding.get("area")
        return "release_limits" if area == "regression" else area

    def _judge_checked(self, findings: Findings, folder: Path) -> tuple[list[ItemResult], list[Flag]]:
        return self.judge_record(findings, _record(folder))

    def _not_checked(self, reason: str) -> list[Flag]:
        return [Flag("evidence-not-checked", _shorten(f"{reason}; grade it again or by hand"))]


def _findings_of(check: str, folder: Path, box: Any) -> tuple[list[dict[str, Any]] | None, str]:
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


def _message_of(found: Findings) -> str:
    """The first findings as sentences, and how many more there are."""
    parts = [_sentence(finding) for finding in found[:SHOWN]]
    more = len(found) - SHOWN
    return " ".join(parts) + (f" And {more} more like this." if more > 0 else "")


def _sentence(finding: Mapping[str, Any]) -> str:
    place = str(finding.get("file", ""))
    if finding.get("pointer"):
        place += f" at {finding['pointer']}"
    redo = f"; {finding['redo']}" if finding.get("redo") else ""
    return _shorten(f"{place}: {finding.get('message', '')}{redo}") + "."


def _shorten(text: str) -> str:
    """One line without control characters: files' own words may stand in it."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split()).rstrip(".")
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


_RELEASE_PRAISE = {
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
_LATENCY_PRAISE = {
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
_QUANTIZATION_PRAISE = {
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

RELEASE = _ReleaseJudge(
    EVIDENCE_ITEMS,
    "deep_learning_cases.release:check",
    praise=_RELEASE_PRAISE,
)
LATENCY = FolderJudge(
    POLICY_ITEMS,
    "deep_learning_cases.latency.policy_record:check",
    praise=_LATENCY_PRAISE,
)
QUANTIZATION = FolderJudge(
    COMPARISON_ITEMS,
    "deep_learning_cases.quantizing.comparison.claims_record:check",
    praise=_QUANTIZATION_PRAISE,
    to_run="the notebook's cells",
    share=_claims_left,
)
"""Each of its four claims is a quarter of ``claims_verdicts``, ``claims_evidence`` and ``claims_scope``."""
