"""What release.json should hold: the numbers as the files give them, and the claims as far as words can be checked."""

import re
from collections.abc import Mapping
from typing import Any

from deep_learning_cases.ground.expectation import ROUNDING, Close, Rule, is_number, look, unknown
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.models.artefacts import BASELINE, CANDIDATE, MODELS
from deep_learning_cases.release.checking.benchmark import BATCH_SIZES, summary_tree
from deep_learning_cases.release.checking.judge import judge
from deep_learning_cases.release.checking.regression import loss_rule
from deep_learning_cases.release.evidence import Evidence
from deep_learning_cases.release.gate import LIMITS, decide

__all__ = ["SCHEMA", "TOPICS", "counted_tree", "release_findings", "settled"]

SCHEMA = "deep-learning-cases/release/1"

_LINKAGE = (
    "schema", "candidate", "baseline",
    "model_sha256", "baseline_sha256", "data_sha256", "benchmark_sha256", "regression_sha256",
)  # fmt: skip
_LIMITED = ("model_bytes", "model_bytes_limit", "accuracy", "latency", "peak_rss_bytes", "decision")

TOPICS = {
    "latency on the real device": ("latency", "speed", "response time", "inference time"),
    "memory on the real device": ("memory", "ram", "rss"),
    "power on the real device": ("power", "energy", "battery", "watt"),
    "a hard real-time bound": ("real time", "realtime", "deadline", "worst case"),
    "the authenticity of the times": (
        "authentic", "genuine", "really measured", "actually measured", "proof", "prove", "forge", "invent", "made up",
    ),
}  # fmt: skip
"""What ``not_claimed`` has to name, and the words by which the check finds it (hyphens and case do not matter)."""


def counted_tree(evidence: Evidence, limits: Mapping[str, float], stated_accuracy: Any = None) -> dict[str, Any]:
    """Everything of release.json that the files give, apart from decision and claims.

    ``stated_accuracy`` is the record's own, where one is checked that may come from another machine.
    """
    candidate, baseline = MODELS[CANDIDATE], MODELS[BASELINE]
    return {
        "schema": SCHEMA,
        "candidate": CANDIDATE,
        "baseline": BASELINE,
        "model_sha256": evidence.sha256(candidate),
        "baseline_sha256": evidence.sha256(baseline),
        "data_sha256": evidence.sha256(artefacts.DATA),
        "benchmark_sha256": evidence.sha256(artefacts.BENCHMARK),
        "regression_sha256": evidence.sha256(artefacts.REGRESSION),
        "model_bytes": evidence.size(candidate),
        "model_bytes_limit": limits["model_bytes_limit"],
        "accuracy": _accuracy_tree(evidence, stated_accuracy) | {"loss_limit_pp": limits["loss_limit_pp"]},
        "latency": {
            model: {str(size): summary_tree(evidence.summary(model, size)) for size in BATCH_SIZES} for model in MODELS
        },
        "peak_rss_bytes": _peak_rss(evidence),
    }


def _accuracy_tree(evidence: Evidence, stated: Any) -> dict[str, Any]:
    recomputed, problem = evidence.recomputed
    if problem:
        return dict.fromkeys(("baseline", "candidate", "loss_pp"), unknown(problem))
    share = evidence.allowance / recomputed["images"] + ROUNDING if stated is not None else ROUNDING
    tree: dict[str, Any] = {
        role: Close(recomputed["accuracy"][model], share)
        for role, model in (("baseline", BASELINE), ("candidate", CANDIDATE))
    }
    tree["loss_pp"] = Close(recomputed["loss_pp"], 1e-7)
    if stated is not None and evidence.allowance:
        tree["loss_pp"] = loss_rule(look(stated, "baseline"), look(stated, "candidate"))
    return tree


def _peak_rss(evidence: Evidence) -> Any:
    """The largest peak of the candidate's processes over the rounds."""
    runs = look(evidence.documents[artefacts.BENCHMARK].value, "runs")
    peaks = [
        look(run, "peak_rss_bytes")
        for run in (runs if isinstance(runs, list) else [])
        if look(run, "model") == CANDIDATE
    ]
    if not peaks or not all(is_number(peak) for peak in peaks):
        return unknown(f"{artefacts.BENCHMARK} has no peak memory of {CANDIDATE}")
    return max(peaks)


def settled(tree: Any) -> Any:
    """The plain values of an expected tree."""
    if isinstance(tree, dict):
        return {key: settled(value) for key, value in tree.items()}
    return tree.value if isinstance(tree, Close) else tree


def not_claimed_rule(stated: Any) -> Rule:
    """A list of sentences that together name every topic; the rule says which ones ``stated`` leaves out."""
    missing = _open(stated)
    return Rule(f"a list of sentences that names {missing or 'what stays open'}", lambda _value: not missing)


def _open(not_claimed: Any) -> str:
    """What a list of sentences leaves out, in words; "" if it names everything that stays open."""
    if not isinstance(not_claimed, list) or not not_claimed:
        return _missing_topics([])
    if not all(isinstance(line, str) and line.strip() for line in not_claimed):
        return "only sentences, none of them empty"
    return _missing_topics(not_claimed)


def _missing_topics(lines: list[str]) -> str:
    text = " ; ".join(lines).lower().replace("-", " ").replace("_", " ")
    return ", ".join(topic for topic, words in TOPICS.items() if not any(_says(text, word) for word in words))


def _says(text: str, word: str) -> bool:
    """``word`` begins a word of ``text``, so that "improve" proves nothing; a short one has to be the whole word."""
    return re.search(rf"\b{word}\b" if len(word) <= 3 else rf"\b{word}", text) is not None


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
