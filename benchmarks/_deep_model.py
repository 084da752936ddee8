"""A network deep enough that the model, not HTTP, limits a service: many layers of one matrix, in one small ONNX file.

The lab's network takes 20 us, a small part of what HTTP costs, so that nothing would ever queue for it.
"""

import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.ground import files
from deep_learning_cases.models import engines
from deep_learning_cases.serving.process import Settings

POLICY = Policy(8, 0.005, 64)
BATCH_S = 0.03
"""How long a full batch is made to take: 8 images in 30 ms are about 270 per second."""

WIDTH, TRIAL_LAYERS = 256, 64


def build(path: Path) -> int:
    """Write a model whose full batch takes about :data:`BATCH_S` on this machine; returns its number of layers."""
    files.write_bytes(path, model_bytes(TRIAL_LAYERS))
    engine = engines.open_engine(path)
    images = np.zeros((POLICY.max_batch, 1, 8, 8), np.float32)
    times = []
    for _ in range(60):
        begun = time.perf_counter()
        engine.run(images)
        times.append(time.perf_counter() - begun)
    layers = max(1, round(TRIAL_LAYERS * BATCH_S / float(np.median(times))))
    files.write_bytes(path, model_bytes(layers))
    return layers


def settings(path: Path) -> Settings:
    """How the benchmarks serve it."""
    bound = POLICY.queue_bound or 0
    return Settings(str(path), max_batch=POLICY.max_batch, max_wait_s=POLICY.max_wait_s, queue_bound=bound)


def model_bytes(layers: int) -> bytes:
    """``layers`` times tanh(x W): the same weights, so that the file stays small, and a bounded activation."""
    rng = np.random.default_rng(1729)
    weights = {
        "first": rng.normal(0, 0.2, (64, WIDTH)),
        "inner": rng.normal(0, 1.5 / np.sqrt(WIDTH), (WIDTH, WIDTH)),
        "last": rng.normal(0, 0.1, (WIDTH, 10)),
    }
    nodes = [helper.make_node("Flatten", ["images"], ["x0"]), helper.make_node("MatMul", ["x0", "first"], ["y0"])]
    for layer in range(layers):
        nodes.append(helper.make_node("Tanh", [f"y{layer}"], [f"x{layer + 1}"]))
        nodes.append(helper.make_node("MatMul", [f"x{layer + 1}", "inner"], [f"y{layer + 1}"]))
    nodes.append(helper.make_node("MatMul", [f"y{layers}", "last"], ["logits"]))
    graph = helper.make_graph(
        nodes,
        "deep",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
