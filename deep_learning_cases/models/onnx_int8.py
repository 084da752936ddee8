"""Static int8 quantization with ONNX Runtime: weights per channel, activations by calibration, written as QDQ nodes."""

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, ModelError, one_line
from deep_learning_cases.ground import files
from deep_learning_cases.models.artefacts import IMAGE_INPUT, MAX_INT8_BYTES, check_onnx_bytes

__all__ = ["CALIBRATION_BATCH", "quantize_graph", "quantize_static"]

CALIBRATION_BATCH = 32


def quantize_static(
    model: bytes | str | Path, calibration_images: NDArray[np.float32], max_bytes: int = MAX_INT8_BYTES
) -> bytes:
    """The int8 model of a float32 one (its bytes, or the path of its file), as bytes that are the same every time.

    ``calibration_images`` float32 (n, 1, 8, 8), normalised and from the calibration split only, fix the range of each
    activation (its smallest and largest value).  No calibration cache is read or written: a cache would hand one
    model's ranges to the next.  InputError for images of another form; ModelError for a file that is no such model or
    a result above ``max_bytes``.  Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
    Integer-Arithmetic-Only Inference", 2018.
    """
    content = model if isinstance(model, bytes) else files.read_bytes(model)
    check_onnx_bytes(content, "the model to quantize" if isinstance(model, bytes) else str(model))
    _check_images(calibration_images)
    return quantize_graph(content, calibration_images, max_bytes)


def quantize_graph(content: bytes, calibration_images: NDArray[np.float32], max_bytes: int) -> bytes:
    """As :func:`quantize_static` for a float32 model of our own making, whatever the shape of its input "images".

    ModelError where the quantizer fails or the result has more than ``max_bytes``.
    """
    with files.scratch_folder() as folder, _quiet():
        try:
            quantized = _quantize(content, calibration_images, folder)
        except (OSError, ModuleNotFoundError):
            raise  # of the folder or of the installation, not of the model
        except Exception as error:  # the quantizer raises whatever its parts raise
            raise ModelError(
                f"the model cannot be quantized ({one_line(error)}): expected a float32 classifier"
            ) from error
    if len(quantized) > max_bytes:
        raise ModelError(
            f"the int8 model has {len(quantized)} bytes: expected at most {max_bytes}; quantize a smaller network"
        )
    return quantized


def _quantize(content: bytes, images: NDArray[np.float32], folder: Path) -> bytes:
    import onnx
    from onnxruntime import quantization as ort

    prepared, result = folder / "prepared.onnx", folder / "int8.onnx"
    ort.quant_pre_process(
        onnx.load_model_from_string(content),
        str(prepared),
        skip_symbolic_shape=True,  # it needs SymPy and finds nothing in a network of fixed shapes
    )
    ort.quantize_static(
        str(prepared),
        str(result),
        _Batches(images),
        quant_format=ort.QuantFormat.QDQ,
        per_channel=True,
        activation_type=ort.QuantType.QUInt8,
        weight_type=ort.QuantType.QInt8,
        calibrate_method=ort.CalibrationMethod.MinMax,
    )
    return bytes(onnx.load_model_from_string(result.read_bytes()).SerializeToString(deterministic=True))


class _Batches:
    """The reader that ONNX Runtime asks for one calibration batch after the other, in fixed order."""

    def __init__(self, images: NDArray[np.float32]) -> None:
        self._batches = iter(range(0, len(images), CALIBRATION_BATCH))
        self._images = images

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        start = next(self._batches, None)
        return None if start is None else {IMAGE_INPUT: self._images[start : start + CALIBRATION_BATCH]}


def _check_images(images: Any) -> None:
    if (
        not isinstance(images, np.ndarray)
        or images.dtype != np.float32
        or images.shape[1:] != (1, 8, 8)
        or not len(images)
    ):
        form = f"{images.dtype} of shape {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise InputError(
            f"the calibration images are {form}: expected float32 of shape (n, 1, 8, 8) with n >= 1; use data.normalise"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The quantizer logs advice through the root logger and prints; neither says anything about this model."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.getLogger().setLevel(level)
