"""Accuracy of one version on the whole test set, and what it lost against another: counted image by image."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, ModelError
from deep_learning_cases.measuring.paired import CONFIDENCE, METHOD, paired_interval

__all__ = ["EVALUATION_BATCH", "accuracy", "loss"]

EVALUATION_BATCH = 128


def accuracy(logits: NDArray[np.float32], labels: NDArray[np.uint8], classes: list[str]) -> dict[str, Any]:
    """Top-1, top-5 and per-class top-1 (fractions) of logits (n, classes) on images with these labels (n,).

    Of two equal logits the one of the lower class counts as larger.  ``change_pp`` of each class is None until
    :func:`loss` fills it.  InputError for shapes that do not match; ModelError for logits that are not finite.
    """
    if logits.shape != (len(labels), len(classes)) or not len(labels):
        raise InputError(
            f"logits are {logits.shape} for {len(labels)} labels of {len(classes)} classes: expected a row each"
        )
    if not np.isfinite(logits).all():
        raise ModelError("the logits hold NaN or Infinity: expected finite numbers; train or quantize again")
    ranked = np.argsort(-logits, axis=1, kind="stable")
    predicted = ranked[:, 0]
    five = min(5, len(classes))
    per_class = []
    for label, name in enumerate(classes):
        rows = labels == label
        images, correct = int(rows.sum()), int((predicted[rows] == label).sum())
        per_class.append({
            "label": label,
            "name": name,
            "images": images,
            "correct": correct,
            "top1": correct / images if images else None,
            "change_pp": None,
        })  # fmt: skip
    return {
        "images": len(labels),
        "batch_size": EVALUATION_BATCH,
        "top1": float((predicted == labels).mean()),
        "top5": float((ranked[:, :five] == labels[:, None]).any(axis=1).mean()),
        "per_class": per_class,
        "predictions": predicted.tolist(),
    }


def loss(baseline: str, before: dict[str, Any], after: dict[str, Any], labels: NDArray[np.uint8]) -> dict[str, Any]:
    """What ``after`` lost against ``before`` (both from :func:`accuracy`, same images), with its paired interval.

    Fills ``change_pp`` of each class in ``after``.  ``worst_class`` is the one that fell most (or rose least); of equal
    ones the first.
    """
    old, new = (np.array(part["predictions"]) for part in (before, after))
    lost = int(((old == labels) & (new != labels)).sum())
    gained = int(((old != labels) & (new == labels)).sum())
    low, high = paired_interval(lost, gained, len(labels))
    for was, row in zip(before["per_class"], after["per_class"], strict=True):
        row["change_pp"] = 100 * (row["correct"] - was["correct"]) / row["images"] if row["images"] else None
    worst = min((row for row in after["per_class"] if row["images"]), key=lambda row: row["change_pp"])
    return {
        "baseline": baseline,
        "loss_pp": 100 * (lost - gained) / len(labels),
        "interval_pp": {"low": 100 * low, "high": 100 * high, "confidence": CONFIDENCE, "method": METHOD},
        "lost": lost,
        "gained": gained,
        "agreement": float((old == new).mean()),
        "worst_class": {key: worst[key] for key in ("label", "name", "change_pp")},
    }
