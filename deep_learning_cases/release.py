"""The gate: limits, hash linkage and claims -> a decision with its reasons, written down as ``release.json``.

:func:`decide` is a pure function of numbers and limits.  :func:`check` recomputes everything from the files of an
evidence folder and says where they do not hang together.  Neither can tell whether the times were really measured, and
no message here says so.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deep_learning_cases.benchmark_check import benchmark_findings
from deep_learning_cases.checks import judge
from deep_learning_cases.errors import EvidenceError, InputError
from deep_learning_cases.evidence import AREAS, OTHER_AREAS, Evidence
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.ground.expectation import ROUNDING, Rule, is_number, look, unknown
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.regression_check import regression_findings, weights_findings
from deep_learning_cases.release_tree import TOPICS, counted_tree, not_claimed_rule, settled
from deep_learning_cases.report_link import report_findings
from deep_learning_cases.target import target_findings

__all__ = [
    "AREAS", "CLAIMS", "LIMITS", "OTHER_AREAS", "TOPICS",
    "Finding", "Reason", "Verdict",
    "check", "collect", "decide", "make", "write",
]  # fmt: skip

LIMITS = {"model_bytes_limit": artefacts.MAX_INT8_BYTES, "loss_limit_pp": 1.0}
"""Of the candidate's file in bytes (not of a process) and of the accuracy lost in percentage points."""

CLAIMS: dict[str, Any] = {
    "target_benchmark_required": True,
    "universally_faster": False,
    "not_claimed": [
        "latency on the real device",
        "memory of the whole process on the real device",
        "power drawn on the real device",
        "a hard real-time bound: p95 is a share of the calls seen, not a deadline that is always met",
        "the authenticity of the times: hashes and sums do not prove that they were measured",
    ],
}
"""What the evidence of one machine supports, and what it leaves open."""

_LINKAGE = (
    "schema", "candidate", "baseline",
    "model_sha256", "baseline_sha256", "data_sha256", "benchmark_sha256", "regression_sha256",
)  # fmt: skip
_LIMITED = ("model_bytes", "model_bytes_limit", "accuracy", "latency", "peak_rss_bytes", "decision")

_SMALLER = "quantize again, then regression and measuring again: every converted file is a new model"
_BETTER = "train or calibrate again, then convert, run the regression and measure again: a new hash is not enough"
_MORE = "collect more labelled test images; 500 leave this open"
_COUNT = "count again from the files"


@dataclass(frozen=True)
class Reason:
    """One limit and what was found: ``outcome`` is pass, fail or inconclusive; ``redo`` is empty for a pass."""

    quantity: str
    outcome: str
    value: float | None
    limit: float
    unit: str
    message: str
    redo: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.message}" + (f"; {self.redo}" if self.redo else "")


@dataclass(frozen=True)
class Verdict:
    """``decision`` is release or reject; every limit has a reason, met or not."""

    decision: str
    reasons: tuple[Reason, ...]

    @property
    def outcome(self) -> str:
        """The worst of the reasons: fail, then inconclusive, then pass."""
        outcomes = {reason.outcome for reason in self.reasons}
        return next(outcome for outcome in ("fail", "inconclusive", "pass") if outcome in outcomes)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"outcome": self.outcome}


def decide(facts: Mapping[str, Any], limits: Mapping[str, float] = LIMITS) -> Verdict:
    """May the candidate be released?  A pure function: numbers and limits in, decision and reasons out.

    Args:
        facts: ``model_bytes`` (of the candidate's file), ``loss_pp`` (accuracy lost, percentage points, negative for a
            gain) and, if known, ``loss_interval_pp`` {``low``, ``high``}.  A fact that is missing or not a finite
            number counts as a limit not met.
        limits: ``model_bytes_limit`` and ``loss_limit_pp``; a value equal to its limit meets it.

    The measured loss decides.  Where its paired interval includes the limit there is an inconclusive reason besides:
    the images that were looked at do not settle on which side the true loss lies.

    Raises InputError for limits that are missing or not finite numbers.
    """
    for name in LIMITS:
        if not is_number(limits.get(name)):
            raise InputError(f"the limit {name} is {limits.get(name)!r}: expected a number; take release.LIMITS")
    reasons = [
        _limit("model_bytes", "the candidate's file has", facts, limits["model_bytes_limit"], "bytes", _SMALLER),
        _limit("loss_pp", "the candidate loses", facts, limits["loss_limit_pp"], "percentage points", _BETTER),
    ]
    low, high = (look(facts.get("loss_interval_pp"), end) for end in ("low", "high"))
    limit = limits["loss_limit_pp"]
    if is_number(low) and is_number(high) and low <= limit <= high:
        message = f"the 95 % interval of the loss, {low:+.2f} to {high:+.2f} percentage points, includes {limit:g}"
        reasons.append(Reason("loss_interval_pp", "inconclusive", high, limit, "percentage points", message, _MORE))
    decision = "reject" if any(reason.outcome == "fail" for reason in reasons) else "release"
    return Verdict(decision, tuple(reasons))


def _limit(quantity: str, words: str, facts: Mapping[str, Any], limit: float, unit: str, redo: str) -> Reason:
    value = facts.get(quantity)
    if not is_number(value):
        return Reason(
            quantity, "fail", None, limit, unit, f"{quantity} is not known: expected at most {limit:g}", _COUNT
        )
    number: float = value if value is not None else math.nan
    # 5 of 500 images are 1 point, and 100 * (0.990 - 0.980) is a little more than 1.
    met = number <= limit + ROUNDING
    shown, bound = (f"{number:,.4g}", f"{limit:g}") if unit != "bytes" else (f"{number:,.0f}", f"{limit:,.0f}")
    message = f"{words} {shown} {unit}, limit {bound}"
    return Reason(quantity, "pass" if met else "fail", number, limit, unit, message, "" if met else redo)


def check(folder: str | Path) -> list[Finding]:
    """Everything in an evidence folder that does not follow from its files, each place by itself.

    Hashes and sizes are taken again, both models run again, the summary and the decision computed again.  An empty list
    means that the files hang together and the numbers follow from the raw samples; it does not mean that anybody
    measured them.  Fields that no other file fixes are listed in :data:`deep_learning_cases.checks.FREE`.

    Damage of any kind is a finding, not an exception; FileError only if ``folder`` is not a folder.
    """
    evidence = Evidence.open(folder)
    return [
        *benchmark_findings(evidence),
        *regression_findings(evidence),
        *release_findings(evidence),
        *weights_findings(evidence),
        *report_findings(evidence),
        *target_findings(evidence),
    ]


def collect(folder: str | Path) -> dict[str, Any]:
    """Every part of ``release.json`` that is counted from the files; decision and claims are left to the author.

    FileError or EvidenceError, with what to redo, where a file is missing, stale or damaged.
    """
    evidence = Evidence.open(folder)
    # The summary is left out: latency is counted from the raw samples here, whatever the stated summary says.
    blocking = [one for one in benchmark_findings(evidence) if one.area != "benchmark_summary"]
    blocking += regression_findings(evidence)
    if blocking:
        more = f" (and {len(blocking) - 1} more reasons)" if len(blocking) > 1 else ""
        raise EvidenceError(f"{folder} cannot be judged: {blocking[0]}{more}")
    tree = settled(counted_tree(evidence, LIMITS))
    return {key: value for key, value in tree.items() if not isinstance(value, Rule)}


def make(folder: str | Path) -> dict[str, Any]:
    """The whole ``release.json``: what :func:`collect` counts, the decision of :func:`decide`, and :data:`CLAIMS`."""
    record = collect(folder)
    interval = files.read_json(Path(folder) / artefacts.REGRESSION)["loss_interval_pp"]
    verdict = decide(
        {"model_bytes": record["model_bytes"], "loss_pp": record["accuracy"]["loss_pp"], "loss_interval_pp": interval}
    )
    return record | {"decision": verdict.decision} | copy.deepcopy(CLAIMS)


def write(folder: str | Path, record: dict[str, Any]) -> Path:
    """Write ``release.json`` whole; EvidenceError if it breaks the schema, FileError if it cannot be written."""
    path = Path(folder) / artefacts.RELEASE
    schemas.validate(record, "release", artefacts.RELEASE)
    files.write_json(path, record)
    return path


def release_area(pointer: str) -> str:
    """Which part of the evidence a place in release.json belongs to; a key that nobody knows is a claim."""
    top = pointer.split("/")[1] if "/" in pointer else ""
    return "release_linkage" if top in _LINKAGE else "release_limits" if top in _LIMITED else "release_claims"


def release_findings(evidence: Evidence) -> list[Finding]:
    """release.json: hashes, numbers, decision and claims, each against what the files give."""
    stated = evidence.documents[artefacts.RELEASE].value
    tree = counted_tree(evidence, LIMITS, look(stated, "accuracy"))
    tree |= {
        "decision": _decision(tree),
        "target_benchmark_required": True,
        "universally_faster": False,
        "not_claimed": not_claimed_rule(look(stated, "not_claimed")),
    }
    areas = ("release_linkage", "release_limits", "release_claims")
    return judge(evidence, artefacts.RELEASE, "release", tree, release_area, areas)


def _decision(tree: dict[str, Any]) -> Any:
    if isinstance(tree["model_bytes"], Rule) or isinstance(tree["accuracy"]["loss_pp"], Rule):
        return unknown("size or accuracy cannot be recomputed")
    return decide({"model_bytes": tree["model_bytes"], "loss_pp": tree["accuracy"]["loss_pp"].value}).decision
