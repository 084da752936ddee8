"""Inference regression: do the predictions survive quantization?  Two models, the same test images, compared in pairs.

The pairs matter: 500 images fix an accuracy only to within a point or two, but the two models agree on nearly all of
them, so the few images on which just one is right fix the difference much better.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, MeasurementError, ModelError, one_line
from deep_learning_cases.ground import files, machine, out_folder, schemas
from deep_learning_cases.measuring.paired import CONFIDENCE, METHOD, paired_interval
from deep_learning_cases.models import artefacts, data, engines
from deep_learning_cases.models.artefacts import MODELS

__all__ = ["compare_logits", "paired_interval", "recompute", "recompute_bytes", "regress"]

SCHEMA = "deep-learning-cases/regression/1"


def regress(folder: str | Path) -> dict[str, Any]:
    """Compare the two models of ``folder`` on its test split and write ``regression.json``; returns its content.

    Raises FileError, EvidenceError and ModelError as :func:`recompute`; then an older regression.json stays as it was.
    """
    record = recompute(folder)
    schemas.validate(record, "regression", artefacts.REGRESSION)
    out_folder.keep(Path(folder) / artefacts.REGRESSION, files.json_bytes(record))
    files.write_json(Path(folder) / artefacts.REGRESSION, record)
    return record


def recompute(folder: str | Path) -> dict[str, Any]:
    """The content that ``regression.json`` should have, by running both models; nothing is written.

    The same files give the same values (except ``created_at``) on one machine; on another the logit differences may
    change in their last digits.  Raises FileError for a missing file, EvidenceError for a damaged ``data.npz``,
    ModelError for a model that may not be loaded or whose logits are not finite, MeasurementError if a file changed
    meanwhile.
    """
    folder = Path(folder)
    # Bounded: the files may have been handed in.
    contents = {
        name: files.read_bytes(folder / name, data.MAX_ARCHIVE_BYTES) for name in (artefacts.DATA, *MODELS.values())
    }
    record = recompute_bytes(contents, folder)
    for name, content in contents.items():
        if files.read_bytes(folder / name, data.MAX_ARCHIVE_BYTES) != content:
            raise MeasurementError(
                f"{folder / name} changed while it was read: expected it to rest; run the regression again"
            )
    return record


def recompute_bytes(contents: Mapping[str, bytes], folder: Path) -> dict[str, Any]:
    """As :func:`recompute`, from the bytes of the three files by name; ``folder`` stands in the messages."""
    test = data.parse_data(contents[artefacts.DATA], folder / artefacts.DATA)["test"]
    images = data.normalise(test.images)
    logits, engine = {}, {}
    for name, file in MODELS.items():
        artefacts.check_onnx_bytes(contents[file], folder / file)
        opened = engines.OnnxRuntimeEngine()
        opened.load_bytes(contents[file], folder / file)
        logits[name], engine = _run(opened, images, folder / file), opened.describe()
    return {
        "schema": SCHEMA,
        "created_at": machine.utc_now(),
        "data": files.bytes_record(artefacts.DATA, contents[artefacts.DATA]),
        "models": {name: files.bytes_record(file, contents[file]) for name, file in MODELS.items()},
        "split": "test",
        "engine": engine,
        **compare_logits(logits["fp32"], logits["int8"], test.labels),
    }


def _read(folder: Path) -> dict[str, bytes]:
    names = (artefacts.DATA, *MODELS.values())  # bounded: the files may have been handed in
    return {name: files.read_bytes(folder / name, data.MAX_ARCHIVE_BYTES) for name in names}


def compare_logits(
    baseline_logits: NDArray[np.float32], candidate_logits: NDArray[np.float32], labels: NDArray[np.uint8]
) -> dict[str, Any]:
    """What changed between two models' logits (n, 10) on images with these ``labels`` (n,); a pure function.

    Returns ``images``, ``accuracy`` {fp32, int8} (fractions), ``loss_pp`` (100 (fp32 - int8), negative for a gain),
    ``loss_interval_pp`` (:func:`paired_interval`), ``agreement`` (fraction of images with the same prediction),
    ``logit_difference`` {largest, mean} (absolute), ``per_class`` (accuracy of each digit, None without images) and
    ``can_show`` (in words).  InputError for shapes that do not match, no images, labels above 9 or logits that are not
    finite.
    """
    baseline, candidate = np.asarray(baseline_logits, np.float64), np.asarray(candidate_logits, np.float64)
    labels = np.asarray(labels)
    _check(baseline, candidate, labels)
    predicted = {"fp32": baseline.argmax(axis=1), "int8": candidate.argmax(axis=1)}
    right = {name: classes == labels for name, classes in predicted.items()}
    n = len(labels)
    lost = int((right["fp32"] & ~right["int8"]).sum())
    gained = int((right["int8"] & ~right["fp32"]).sum())
    low, high = paired_interval(lost, gained, n)
    difference = np.abs(baseline - candidate)
    return {
        "images": n,
        "accuracy": {name: int(hits.sum()) / n for name, hits in right.items()},
        "loss_pp": 100 * (lost - gained) / n,
        "loss_interval_pp": {"low": 100 * low, "high": 100 * high, "confidence": CONFIDENCE, "method": METHOD},
        "agreement": int((predicted["fp32"] == predicted["int8"]).sum()) / n,
        "logit_difference": {"largest": float(difference.max()), "mean": float(difference.mean())},
        "per_class": [_one_class(label, labels == label, right) for label in range(data.CLASSES)],
        "can_show": _can_show(n, lost, gained, low, high),
    }


def _one_class(label: int, rows: NDArray[np.bool_], right: dict[str, NDArray[np.bool_]]) -> dict[str, Any]:
    n = int(rows.sum())
    fractions = {name: int(hits[rows].sum()) / n if n else None for name, hits in right.items()}
    return {"label": label, "images": n, **fractions}


def _can_show(n: int, lost: int, gained: int, low: float, high: float) -> str:
    """The reach of ``n`` images, in words and with this comparison's own numbers."""
    # If every changed image is a loss, this many are needed before "no loss" is rejected.
    least = next((count for count in range(1, n + 1) if paired_interval(count, 0, n)[0] > 0), None)
    smallest = "no loss at all" if least is None else f"a loss of {least} images ({100 * least / n:.2g} points)"
    return (
        f"One of {n} images is {100 / n:.2g} percentage points, so 1 point is {n / 100:g} images. "
        f"The int8 model lost {lost} and gained {gained}; with 95 % confidence its true loss lies between "
        f"{100 * low:+.2f} and {100 * high:+.2f} points. "
        f"The smallest difference that {n} images can tell from none is {smallest}, and only if no image changes the "
        "other way; a smaller loss, the fate of one digit class and images of another source are beyond them."
    )


def _run(engine: engines.Engine, images: NDArray[np.float32], path: Path) -> NDArray[np.float32]:
    try:
        logits = engine.run(images)
    except Exception as error:  # the runtime's own classes, one for each status code
        raise ModelError(f"{path} fails on the test images ({one_line(error)}): build the models again") from error
    if logits.shape != (len(images), data.CLASSES) or not np.isfinite(logits).all():
        raise ModelError(
            f"{path} gives logits of shape {logits.shape}, finite: {bool(np.isfinite(logits).all())}: expected finite "
            f"numbers of shape ({len(images)}, {data.CLASSES}); build the models again"
        )
    return logits


def _check(baseline: NDArray[np.float64], candidate: NDArray[np.float64], labels: NDArray[Any]) -> None:
    shape = (len(labels) if labels.ndim == 1 else -1, data.CLASSES)
    if baseline.shape != shape or candidate.shape != shape or shape[0] < 1:
        raise InputError(
            f"logits are {baseline.shape} and {candidate.shape} with labels {labels.shape}: expected (n, 10) twice and "
            "(n,) with n >= 1; compare outputs on the same images"
        )
    if not (np.isfinite(baseline).all() and np.isfinite(candidate).all()):
        raise InputError("the logits hold NaN or Infinity: expected finite numbers; build the models again")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= data.CLASSES:
        raise InputError(
            f"the labels are {labels.dtype} from {labels.min()} to {labels.max()}: expected whole numbers from 0 to 9; "
            "check the data"
        )
