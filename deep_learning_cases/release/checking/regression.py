"""regression.json beside both models run again, and the NumPy weights beside the baseline."""

from typing import Any

from deep_learning_cases.errors import EvidenceError
from deep_learning_cases.ground.expectation import (
    OBJECT,
    ROUNDING,
    TEXT,
    TIME,
    Close,
    Rule,
    compare,
    is_number,
    look,
    unknown,
)
from deep_learning_cases.ground.handed_in import Finding, attempt
from deep_learning_cases.models import artefacts
from deep_learning_cases.models.artefacts import BASELINE, CANDIDATE, MODELS
from deep_learning_cases.release.checking.judge import RELINK, finding, judge
from deep_learning_cases.release.evidence import Evidence

__all__ = ["loss_rule", "regression_findings", "weights_findings"]


def regression_findings(evidence: Evidence) -> list[Finding]:
    """regression.json: every number against both models run again on the test images."""
    recomputed, problem = evidence.recomputed
    if problem:
        known = [Finding("regression", artefacts.REGRESSION, "", f"cannot be recomputed: {problem}", RELINK)]
        document = evidence.documents[artefacts.REGRESSION]
        stated = [
            finding("regression", artefacts.REGRESSION, f"/{place}{pointer}", message)
            for place, expected in _linked(evidence).items()
            for pointer, message in compare(look(document.value, place), expected)
        ]
        return known + (stated if not document.unreadable else [])
    tree = _regression_tree(evidence, recomputed)
    return judge(evidence, artefacts.REGRESSION, "regression", tree, lambda _pointer: "regression", ("regression",))


def _linked(evidence: Evidence) -> dict[str, Any]:
    return {
        "data": evidence.record(artefacts.DATA),
        "models": {name: evidence.record(file) for name, file in MODELS.items()},
    }


def _regression_tree(evidence: Evidence, recomputed: dict[str, Any]) -> dict[str, Any]:
    """The recomputed record; on another machine than the recorded one, numbers that still have to fit together."""
    allowed = evidence.allowance
    stated = evidence.documents[artefacts.REGRESSION].value
    share = allowed / recomputed["images"] + ROUNDING
    interval = recomputed["loss_interval_pp"]
    tree = (
        recomputed
        | _linked(evidence)
        | {
            "created_at": TIME,
            "engine": OBJECT,
            "can_show": TEXT,
            "accuracy": {name: Close(value, share) for name, value in recomputed["accuracy"].items()},
            "agreement": Close(recomputed["agreement"], 2 * share),
            "logit_difference": {
                name: Close(value, 0.5 if allowed else 1e-6) for name, value in recomputed["logit_difference"].items()
            },
            "per_class": [_class_tree(row, allowed) for row in recomputed["per_class"]],
            "loss_pp": Close(recomputed["loss_pp"], 1e-7),
            "loss_interval_pp": interval
            | {"method": TEXT}
            | {end: Close(interval[end], 200 * share if allowed else 1e-6) for end in ("low", "high")},
        }
    )
    if allowed:
        tree["accuracy"] |= {
            name: _from_classes(stated, name, share, value) for name, value in recomputed["accuracy"].items()
        }
        tree["loss_pp"] = loss_rule(look(stated, "accuracy", BASELINE), look(stated, "accuracy", CANDIDATE))
    return tree


def _class_tree(row: dict[str, Any], allowed: int) -> dict[str, Any]:
    shares = {
        name: row[name] if row[name] is None else Close(row[name], allowed / row["images"] + ROUNDING)
        for name in MODELS
    }
    return row | shares


def _from_classes(stated: Any, model: str, share: float, recomputed: float) -> Rule:
    """Accuracy near the recomputed one that the stated per-class table adds up to."""
    rows = look(stated, "per_class")
    parts = [(look(row, model), look(row, "images")) for row in rows] if isinstance(rows, list) else []
    whole = [(part, images) for part, images in parts if is_number(part) and is_number(images)]
    total = sum(images for _part, images in whole)
    from_rows = sum(part * images for part, images in whole) / total if total else -1.0

    def accepts(value: Any) -> bool:
        return is_number(value) and abs(value - recomputed) <= share and abs(value - from_rows) <= 1e-7

    return Rule(f"about {recomputed:.4f}, and the sum of the per-class table", accepts)


def loss_rule(baseline: Any, candidate: Any) -> Any:
    """The loss in percentage points that two stated accuracies give."""
    if is_number(baseline) and is_number(candidate):
        return Close(100 * (baseline - candidate), 1e-7)
    return unknown("the accuracies are not numbers")


def weights_findings(evidence: Evidence) -> list[Finding]:
    """model_fp32.npz: the same weights as the baseline's ONNX file, in the bytes that the library writes."""
    name = artefacts.WEIGHTS
    if name in evidence.absent:
        problem = evidence.absent[name]
    elif evidence.usable[artefacts.FP32]:
        problem = f"cannot be compared: {artefacts.FP32} cannot be used"
    else:
        problem = attempt(lambda: _check_weights(evidence))[1]
    return [finding("weights", name, "", problem)] if problem else []


def _check_weights(evidence: Evidence) -> None:
    import numpy as np
    import onnx

    weights = artefacts.parse_weights(evidence.contents[artefacts.WEIGHTS], evidence.folder / artefacts.WEIGHTS)
    graph = onnx.load_model_from_string(evidence.contents[artefacts.FP32]).graph
    in_model = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name, values in weights.items():
        if name not in in_model or not np.array_equal(in_model[name], values):
            raise EvidenceError(f"its array {name} is not the one in {artefacts.FP32}")
    if artefacts.weights_bytes(weights) != evidence.contents[artefacts.WEIGHTS]:
        raise EvidenceError("its bytes are not those that the library writes for these weights")
