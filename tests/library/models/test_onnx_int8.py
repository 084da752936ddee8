"""The int8 model is small, its own, and made from what it was given."""

import logging
import os

import numpy as np
import onnx
import pytest

from deep_learning_cases import quantization
from deep_learning_cases.errors import FileError, InputError, ModelError
from deep_learning_cases.models import artefacts


@pytest.fixture(scope="module")
def fp32(random_weights):
    return artefacts.onnx_bytes(random_weights)


def test_the_same_input_gives_the_same_bytes_within_the_limit(random_images, random_models):
    again = quantization.quantize_static(random_models / artefacts.FP32, random_images)
    assert again == (random_models / artefacts.INT8).read_bytes()
    assert len(again) <= 32_768


def test_weights_are_int8_per_channel_in_qdq_form(random_models):
    graph = onnx.load(random_models / artefacts.INT8).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    weights = [
        tensor for tensor in tensors.values() if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) > 1
    ]
    assert sorted(tuple(tensor.dims) for tensor in weights) == [(10, 96), (16, 1, 3, 3), (32, 16, 3, 3), (96, 128)]
    for tensor in weights:
        node = next(node for node in graph.node if tensor.name in node.input)
        assert node.op_type == "DequantizeLinear"
        assert tuple(tensors[node.input[1]].dims) == (tensor.dims[0],)  # one scale a channel


def test_calibration_decides_and_no_cache_carries_over(fp32, random_images):
    narrow = quantization.quantize_static(fp32, random_images * np.float32(0.1))
    assert narrow != quantization.quantize_static(fp32, random_images)
    assert narrow == quantization.quantize_static(fp32, random_images * np.float32(0.1))


def test_nothing_is_left_behind(fp32, random_images, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    level = logging.getLogger().level
    quantization.quantize_static(fp32, random_images)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden files count as well
    assert logging.getLogger().level == level
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((4, 1, 8, 8), np.uint8),
        np.zeros((4, 1, 8, 8)),
        np.zeros((0, 1, 8, 8), np.float32),
        np.zeros((4, 64), np.float32),
        np.float32(1),
        [[0.0]],
    ],
)
def test_other_calibration_images_are_refused(fp32, images):
    with pytest.raises(InputError, match=r"the calibration images are .*: expected float32 of shape \(n, 1, 8, 8\)"):
        quantization.quantize_static(fp32, images)


def test_a_file_that_is_no_model_or_too_large_a_result_is_refused(fp32, random_images, tmp_path):
    with pytest.raises(ModelError, match="the model to quantize is not an ONNX model"):
        quantization.quantize_static(b"nonsense", random_images)
    with pytest.raises(FileError):
        quantization.quantize_static(tmp_path / "nothing.onnx", random_images)
    with pytest.raises(ModelError, match=r"the int8 model has .* bytes: expected at most 20000"):
        quantization.quantize_static(fp32, random_images, max_bytes=20_000)


def test_no_room_for_temporary_files_is_named(fp32, random_images, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(FileError, match="no room for temporary files"):
        quantization.quantize_static(fp32, random_images)


def test_what_the_quantizer_cannot_do_is_one_clear_error(fp32, random_images, monkeypatch):
    from onnxruntime import quantization as ort

    def fail(*_arguments, **_settings):
        raise RuntimeError("no\nway")

    monkeypatch.setattr(ort, "quantize_static", fail)
    with pytest.raises(ModelError, match=r"cannot be quantized \(no way\)"):
        quantization.quantize_static(fp32, random_images)


def test_a_missing_runtime_is_no_fault_of_the_model(monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")

    monkeypatch.setattr(quantization, "_quantize", missing)
    with pytest.raises(ModuleNotFoundError, match="onnxruntime"):
        quantization.quantize_graph(b"", np.zeros((1, 1, 8, 8), np.float32), 1000)
