"""The evidence folder: names of its files, the models' bytes, and the check before any runtime loads one.

A model file may come from anybody.  :func:`check_onnx` parses it without running it and refuses whatever a small
classifier has no use for: data in other files, functions of its own, subgraphs, operators that multiply memory.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import EvidenceError, InputError, ModelError, one_line
from deep_learning_cases.ground import files
from deep_learning_cases.models import conv, data

__all__ = [
    "BASELINE",
    "BENCHMARK",
    "CANDIDATE",
    "DATA",
    "FP32",
    "IMAGE_INPUT",
    "INT8",
    "LOGITS_OUTPUT",
    "MAX_INT8_BYTES",
    "MAX_MODEL_BYTES",
    "MODELS",
    "REGRESSION",
    "RELEASE",
    "REPORT",
    "TARGET",
    "WEIGHTS",
    "check_onnx",
    "check_onnx_bytes",
    "onnx_bytes",
    "parse_weights",
    "read_weights",
    "weights_bytes",
]

DATA = "data.npz"
FP32 = "model_fp32.onnx"
INT8 = "model_int8.onnx"
WEIGHTS = "model_fp32.npz"
REGRESSION = "regression.json"
BENCHMARK = "benchmark.json"
RELEASE = "release.json"
REPORT = "report.html"
TARGET = "target_benchmark.json"

BASELINE, CANDIDATE = "fp32", "int8"
MODELS = {BASELINE: FP32, CANDIDATE: INT8}

IMAGE_INPUT, LOGITS_OUTPUT = "images", "logits"
MAX_INT8_BYTES = 32_768
MAX_MODEL_BYTES = 4 * 1024 * 1024
MAX_NODES = 500
MAX_TENSOR_ELEMENTS = 1 << 20
"""Per image.  The lab's largest activation has 1,024."""

_OPSET, _IR_VERSION = 17, 8
"""Of 2022: every runtime of the last years reads them."""

_OPERATORS = frozenset({
    "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Constant", "Conv", "DequantizeLinear", "Div",
    "Dropout", "Elu", "Flatten", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish",
    "Identity", "LayerNormalization", "LeakyRelu", "LogSoftmax", "MatMul", "MaxPool", "Mul", "PRelu", "Pad",
    "QuantizeLinear", "ReduceMean", "Relu", "Reshape", "Sigmoid", "Softmax", "Squeeze", "Sub", "Tanh", "Transpose",
    "Unsqueeze",
})  # fmt: skip


def weights_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """``model_fp32.npz``: the eight arrays of :data:`conv.WEIGHT_SHAPES`; the same weights give the same bytes."""
    conv.check_weights(weights)
    return data.archive_bytes(**weights)


def read_weights(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of a ``model_fp32.npz``; FileError if unreadable, ModelError unless they are the lab's network."""
    return parse_weights(_model_bytes(path), path)


def parse_weights(content: bytes, name: str | Path) -> dict[str, NDArray[Any]]:
    """As :func:`read_weights`, from bytes; ``name`` stands in the message."""
    try:
        arrays = data.parse_archive(content, name, MAX_MODEL_BYTES)
        conv.check_weights(arrays)
    except EvidenceError as error:
        raise ModelError(str(error)) from error
    except InputError as error:
        raise ModelError(f"{name}: {error}") from error
    return dict(arrays)


def onnx_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """The network as an ONNX model: "images" float32 (batch, 1, 8, 8) to "logits" float32 (batch, 10).

    The graph is written node by node, not traced: no clock, path or version of PyTorch gets into the bytes, and
    PyTorch is not needed.
    """
    from onnx import TensorProto, helper, numpy_helper

    conv.check_weights(weights)
    node = helper.make_node
    pads, pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Conv", [IMAGE_INPUT, "conv1_weight", "conv1_bias"], ["conv1"], "conv1", **pads),
        node("Relu", ["conv1"], ["relu1"], "relu1"),
        node("MaxPool", ["relu1"], ["pool1"], "pool1", **pool),
        node("Conv", ["pool1", "conv2_weight", "conv2_bias"], ["conv2"], "conv2", **pads),
        node("Relu", ["conv2"], ["relu2"], "relu2"),
        node("MaxPool", ["relu2"], ["pool2"], "pool2", **pool),
        node("Flatten", ["pool2"], ["flat"], "flatten"),
        node("Gemm", ["flat", "dense1_weight", "dense1_bias"], ["dense1"], "dense1", transB=1),
        node("Relu", ["dense1"], ["relu3"], "relu3"),
        node("Gemm", ["relu3", "dense2_weight", "dense2_bias"], [LOGITS_OUTPUT], "dense2", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info(IMAGE_INPUT, TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info(LOGITS_OUTPUT, TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(weights[name]), name) for name in conv.WEIGHT_SHAPES],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, producer_name="deep_learning_cases", ir_version=_IR_VERSION, opset_imports=opsets)
    return bytes(model.SerializeToString(deterministic=True))


def check_onnx(path: str | Path) -> None:
    """Raise unless the file at ``path`` is an ONNX model that this lab may load.

    FileError if it cannot be read.  ModelError for: more than ``MAX_MODEL_BYTES``; not a model; data outside the file;
    functions, subgraphs or operators that a small classifier does not need; shapes that do not fit together or are
    huge; anything but one input "images" float32 (batch, 1, 8, 8) and one output "logits" float32 (batch, 10).
    Nothing of the model is run.
    """
    check_onnx_bytes(_model_bytes(path), path)


def check_onnx_bytes(content: bytes, name: str | Path) -> None:
    """As :func:`check_onnx`, for bytes; ``name`` stands in the message."""
    if len(content) > MAX_MODEL_BYTES:
        raise ModelError(f"{name} has {len(content)} bytes: expected at most {MAX_MODEL_BYTES}; build the models again")
    fault = _fault(content)
    if fault:
        raise ModelError(f"{name} {fault}; build the models again")


def _model_bytes(path: str | Path) -> bytes:
    try:
        return files.read_bytes(path, MAX_MODEL_BYTES)
    except EvidenceError as error:
        raise ModelError(str(error)) from error


def _fault(content: bytes) -> str | None:
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # protobuf's own class, which onnx does not re-export
        return f"is not an ONNX model ({one_line(error)}): expected one in ONNX format"
    if not model.graph.node:
        return "is not an ONNX model (it has no nodes): expected one in ONNX format"
    fault = _forbidden(model) or _interface(model)
    if fault:
        return fault
    for_one = onnx.ModelProto()
    for_one.CopyFrom(model)
    for_one.graph.input[_image_input(model)].type.tensor_type.shape.dim[0].dim_value = 1
    del for_one.graph.value_info[:]  # what the file claims about its inner shapes is no evidence
    try:
        onnx.checker.check_model(model)
        inferred = onnx.shape_inference.infer_shapes(for_one, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # several unrelated classes
        return f"is not a valid ONNX model ({one_line(error)}): expected nodes and shapes that fit together"
    return _huge(inferred)


def _forbidden(model: Any) -> str | None:
    if model.functions:
        return f"defines {len(model.functions)} function(s) of its own: expected plain operators only"
    if len(model.graph.node) > MAX_NODES:
        return f"has {len(model.graph.node)} nodes: expected at most {MAX_NODES}"
    if model.graph.sparse_initializer:
        return "has sparse weights: expected dense ones"
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type not in _OPERATORS:
            operator = f"{node.domain}.{node.op_type}".lstrip(".")[:60]
            return f"uses the operator {operator!r}: expected only those of a small classifier (Conv, Gemm, Relu, ...)"
        for attribute in node.attribute:
            if (
                attribute.HasField("g")
                or attribute.graphs
                or attribute.HasField("sparse_tensor")
                or attribute.sparse_tensors
            ):
                return f"has a graph or sparse tensor inside node {node.name[:60]!r}: expected plain attributes"
    for tensor in _tensors(model):
        if tensor.data_location != 0 or tensor.external_data:
            return f"keeps the tensor {tensor.name[:60]!r} in another file: expected all data inside the model"
    return None


def _tensors(model: Any) -> Iterator[Any]:
    """Every tensor of a model without subgraphs and functions."""
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t


def _image_input(model: Any) -> int:
    """The place of the images among the inputs; older files list their weights there as well."""
    return next(place for place, value in enumerate(model.graph.input) if value.name == IMAGE_INPUT)


def _interface(model: Any) -> str | None:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    for kind, values, name, shape in (
        ("input", inputs, IMAGE_INPUT, data.IMAGE_SHAPE),
        ("output", list(model.graph.output), LOGITS_OUTPUT, (data.CLASSES,)),
    ):
        found = ", ".join(_form(value) for value in values) or "none"
        expected = f"{name!r} float32 (batch, {', '.join(map(str, shape))})"
        if len(values) != 1 or not _fits(values[0], name, shape):
            return f"has the {kind} {found[:160]}: expected {expected}"
    return None


def _fits(value: Any, name: str, shape: tuple[int, ...]) -> bool:
    tensor = value.type.tensor_type
    dims = tensor.shape.dim
    free_batch = len(dims) == len(shape) + 1 and not dims[0].HasField("dim_value")
    return (
        value.name == name
        and tensor.elem_type == 1
        and free_batch
        and tuple(dim.dim_value for dim in dims[1:]) == shape
    )


def _form(value: Any) -> str:
    dims = value.type.tensor_type.shape.dim
    sizes = [str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims]
    return f"{value.name[:40]!r} type {value.type.tensor_type.elem_type} ({', '.join(sizes)})"


def _huge(model: Any) -> str | None:
    """A few bytes of ``pads`` can ask for gigabytes; the shapes inferred for one image show it before anything runs."""
    shapes = {value.name: value.type.tensor_type.shape for value in (*model.graph.value_info, *model.graph.output)}
    for name in (name for node in model.graph.node for name in node.output if name):
        if name not in shapes or not all(dim.HasField("dim_value") for dim in shapes[name].dim):
            return f"computes the shape of {name[:60]!r} while it runs: expected shapes that follow from the file"
        elements = math.prod(dim.dim_value for dim in shapes[name].dim)
        if elements > MAX_TENSOR_ELEMENTS:
            return f"needs {elements} numbers for {name[:60]!r}: expected at most {MAX_TENSOR_ELEMENTS} an image"
    return None
