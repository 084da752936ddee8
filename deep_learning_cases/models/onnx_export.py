"""Export a plain ``nn.Sequential`` to ONNX, layer by layer, with bytes that depend on the weights alone."""

from typing import Any

from deep_learning_cases.errors import ModelError
from deep_learning_cases.models.artefacts import IMAGE_INPUT, LOGITS_OUTPUT
from deep_learning_cases.models.network import import_torch

__all__ = ["sequential_bytes"]

_OPSET, _IR_VERSION = 17, 8
"""As the release lab's models: every runtime of the last years reads them."""


def sequential_bytes(model: Any, input_shape: tuple[int, ...], classes: int, name: str) -> bytes:
    """``model`` (evaluation mode) as ONNX: "images" float32 (batch, *input_shape) -> "logits" (batch, classes).

    A normalisation right after a convolution is folded into its weights, as every runtime would do.  ModelError for a
    layer other than convolution, normalisation, ReLU, max pooling, flatten and dense.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    layers = _folded(list(model))
    nodes, tensors, source = [], [], IMAGE_INPUT
    for place, layer in enumerate(layers):
        target = LOGITS_OUTPUT if place == len(layers) - 1 else f"value{place}"
        operator, attributes = _operator(layer)
        inputs = [source]
        for part in ("weight", "bias"):
            value = getattr(layer, part, None)
            if value is not None:
                tensors.append(numpy_helper.from_array(value.detach().numpy().copy(), f"layer{place}_{part}"))
                inputs.append(tensors[-1].name)
        nodes.append(helper.make_node(operator, inputs, [target], f"layer{place}", **attributes))
        source = target
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(IMAGE_INPUT, TensorProto.FLOAT, ["batch", *input_shape])],
        [helper.make_tensor_value_info(LOGITS_OUTPUT, TensorProto.FLOAT, ["batch", classes])],
        tensors,
    )
    exported = helper.make_model(
        graph,
        producer_name="deep_learning_cases",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
    )
    onnx.checker.check_model(exported)
    return bytes(exported.SerializeToString(deterministic=True))


def _folded(layers: list[Any]) -> list[Any]:
    torch = import_torch()
    result: list[Any] = []
    for layer in layers:
        if type(layer) is torch.nn.BatchNorm2d and result and type(result[-1]) is torch.nn.Conv2d:
            result[-1] = torch.nn.utils.fusion.fuse_conv_bn_eval(result[-1].eval(), layer.eval())
        else:
            result.append(layer)
    return result


def _operator(layer: Any) -> tuple[str, dict[str, Any]]:
    nn = import_torch().nn
    if type(layer) is nn.Conv2d:
        pad = list(layer.padding) * 2
        return "Conv", {"kernel_shape": list(layer.kernel_size), "strides": list(layer.stride), "pads": pad}
    if type(layer) is nn.MaxPool2d:
        return "MaxPool", {"kernel_shape": [layer.kernel_size] * 2, "strides": [layer.stride] * 2}
    if type(layer) is nn.Linear:
        return "Gemm", {"transB": 1}
    if type(layer) in (nn.ReLU, nn.Flatten):
        return type(layer).__name__.capitalize() if type(layer) is nn.Flatten else "Relu", {}
    raise ModelError(f"the layer {type(layer).__name__} cannot be exported: expected a plain classifier's layers")
