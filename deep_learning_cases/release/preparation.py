"""Steps 1 to 5 of the release lab in one call: data, training, saving, export, quantization; and that they agree."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import ModelError
from deep_learning_cases.ground import files, out_folder
from deep_learning_cases.models import artefacts, data, engines, network, onnx_int8

__all__ = ["LARGEST_LOGIT_DIFFERENCE", "build"]

LARGEST_LOGIT_DIFFERENCE = 1e-3
"""Between engines on the same float32 weights.  Rounding explains about 1e-5 for logits of this size; a transposed
weight or a forgotten bias gives more than 1."""

LEAST_ACCURACY = 0.97


def build(folder: str | Path, seed: int = 1729, progress: bool | None = None) -> dict[str, Any]:
    """Make ``data.npz``, ``model_fp32.npz``, ``model_fp32.onnx`` and ``model_int8.onnx`` in ``folder``.

    The folder is made if need be; each file is written whole, and none before all of them are known to be good.  The
    same seed gives the same bytes on one machine.  Returns ``{"seed", "images", "parameters", "files": {name: {"file",
    "sha256", "bytes"}}, "accuracy": {"fp32", "int8"} (fractions of the test split), "largest_logit_difference":
    {"onnxruntime", "numpy", "pytorch"}, "logit_difference_limit", "changed_predictions": {engine: images}}``; the
    last three compare each engine's float32 network with the one before it was saved, over all test images.
    Raises FileError, MissingDependencyError without PyTorch, and ModelError if the network is worse than 97 % or the
    engines differ by more than 1e-3.
    """
    data.check_seed(seed)
    with out_folder.made(Path(folder)):
        out_folder.check_room(Path(folder))
        return _build(Path(folder), seed, progress)


def _build(folder: Path, seed: int, progress: bool | None) -> dict[str, Any]:
    dataset = data.load_digits(seed)
    model = network.train(dataset, seed, progress)
    weights = network.weights(model)
    fp32 = artefacts.onnx_bytes(weights)
    contents = {
        artefacts.DATA: data.data_bytes(dataset),
        artefacts.WEIGHTS: artefacts.weights_bytes(weights),
        artefacts.FP32: fp32,
        artefacts.INT8: onnx_int8.quantize_static(fp32, data.normalise(dataset.calibration.images)),
    }
    images, labels = data.normalise(dataset.test.images), dataset.test.labels
    trained = network.logits(model, images)
    with files.scratch_folder() as scratch:
        for name, content in contents.items():
            files.write_bytes(scratch / name, content)
        reloaded = _reloaded(scratch, images)
        int8 = engines.open_engine(scratch / artefacts.INT8).run(images)
    differences = {engine: float(np.abs(logits - trained).max()) for engine, logits in reloaded.items()}
    accuracy = {"fp32": network.accuracy(trained, labels), "int8": network.accuracy(int8, labels)}
    _judge(accuracy["fp32"], differences)
    for name, content in contents.items():
        out_folder.keep(folder / name, content)  # an earlier record belongs to the earlier models
        files.write_bytes(folder / name, content)
    return {
        "seed": seed,
        "images": len(labels),
        "parameters": sum(array.size for array in weights.values()),
        "files": {name: files.file_record(folder / name) for name in contents},
        "accuracy": accuracy,
        "largest_logit_difference": differences,
        "logit_difference_limit": LARGEST_LOGIT_DIFFERENCE,
        "changed_predictions": {
            engine: int((logits.argmax(axis=1) != trained.argmax(axis=1)).sum()) for engine, logits in reloaded.items()
        },
    }


def _reloaded(folder: Path, images: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """The logits of the float32 network as each engine reads it from its file."""
    saved = artefacts.read_weights(folder / artefacts.WEIGHTS)
    return {
        "onnxruntime": engines.open_engine(folder / artefacts.FP32).run(images),
        "numpy": engines.open_engine(folder / artefacts.WEIGHTS, "numpy").run(images),
        # Not through its engine: that would leave PyTorch with one thread in the process that called us.
        "pytorch": network.logits(network.from_weights(saved), images),
    }


def _judge(accuracy: float, differences: dict[str, float]) -> None:
    if accuracy < LEAST_ACCURACY:
        raise ModelError(
            f"the network's test accuracy is {accuracy:.4f}: expected at least {LEAST_ACCURACY}; "
            "train with another seed"
        )
    for engine, largest in differences.items():
        if not largest <= LARGEST_LOGIT_DIFFERENCE:  # so written, NaN fails as well
            raise ModelError(
                f"{engine} differs from the trained network by {largest:.3g} in a logit: expected at most "
                f"{LARGEST_LOGIT_DIFFERENCE}; check that the installed versions fit together (dlcases doctor)"
            )
