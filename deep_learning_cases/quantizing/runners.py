"""Open one saved version of a network and run it; the same code measures it and asks for its predictions."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import MissingDependencyError
from deep_learning_cases.ground import files
from deep_learning_cases.models.artefacts import IMAGE_INPUT, LOGITS_OUTPUT
from deep_learning_cases.models.network import import_torch
from deep_learning_cases.quantizing import int8_kernels, pt2e, subjects, torch_eager
from deep_learning_cases.quantizing.variants import VARIANTS

__all__ = ["Runner", "opened"]


@dataclass(frozen=True)
class Runner:
    """``run(prepare(x))`` is one pass; ``logits`` brings its result to main memory as float32 (n, classes).

    ``prepare`` takes float32 (n, *input_shape) in main memory to where and what the network reads; ``synchronize``
    waits for an accelerator (None on the CPU); ``engine`` tells PyTorch's int8 engine at this moment (None elsewhere);
    ``kernels(x)`` counts int8 layers by the library that executed them ({} where there are none of PyTorch's).
    """

    run: Callable[[Any], Any]
    prepare: Callable[[NDArray[np.float32]], Any]
    logits: Callable[[Any], NDArray[np.float32]]
    synchronize: Callable[[], object] | None
    engine: Callable[[], str | None]
    kernels: Callable[[NDArray[np.float32]], dict[str, int]]


@contextlib.contextmanager
def opened(
    name: str, folder: Path, subject: str, input_shape: tuple[int, ...], backend: str | None, threads: int
) -> Iterator[Runner]:
    """The version ``name`` saved in ``folder``, ready to run on ``threads`` threads; settings as before outside.

    FileError or ModelError where its file is missing or damaged; MeasurementError if another int8 engine ran than
    ``backend``; MissingDependencyError without its runtime.
    """
    path = folder / VARIANTS[name].file
    if VARIANTS[name].framework == "onnxruntime":
        yield _onnx(path, threads)
        return
    torch = import_torch()
    before = torch.get_num_threads()
    with contextlib.ExitStack() as stack:
        torch.set_num_threads(threads)
        stack.callback(torch.set_num_threads, before)
        if backend is not None and VARIANTS[name].technique in torch_eager.TECHNIQUES:
            stack.enter_context(torch_eager.using(backend))
        model = _torch_model(name, path, subject, input_shape, backend)
        stack.enter_context(torch.inference_mode())
        if VARIANTS[name].technique in ("compiled", "pt2e"):
            model = stack.enter_context(pt2e.compiled(model))
        yield _torch_runner(name, model, backend)


def _torch_model(name: str, path: Path, subject: str, input_shape: tuple[int, ...], backend: str | None) -> Any:
    variant = VARIANTS[name]
    if variant.technique == "pt2e":
        return pt2e.load(path)
    files.file_record(path)  # a missing file is named before PyTorch sees it
    model, state = subjects.structure(subject), torch_eager.load_state(path)
    if backend is not None and variant.technique in torch_eager.TECHNIQUES:
        return torch_eager.rebuild(variant.technique, model, input_shape, state, backend)
    torch = import_torch()
    model = model.to(getattr(torch, variant.precision) if variant.device == "cuda" else torch.float32)
    model.load_state_dict(state)
    return model.to(variant.device).eval()


def _torch_runner(name: str, model: Any, backend: str | None) -> Runner:
    torch, variant = import_torch(), VARIANTS[name]
    on_cuda = variant.device == "cuda"
    dtype = getattr(torch, variant.precision) if on_cuda else torch.float32

    def prepare(x: NDArray[np.float32]) -> Any:
        return torch.from_numpy(x).to(device=variant.device, dtype=dtype)

    def logits(result: Any) -> NDArray[np.float32]:
        values: NDArray[np.float32] = result.float().cpu().numpy()
        return values

    eager_int8 = backend is not None and variant.technique in torch_eager.TECHNIQUES
    return Runner(
        run=model,
        prepare=prepare,
        logits=logits,
        synchronize=torch.cuda.synchronize if on_cuda else None,
        engine=lambda: str(torch.backends.quantized.engine) if eager_int8 else None,
        kernels=lambda x: int8_kernels.count(model, prepare(x), str(backend)) if eager_int8 else {},
    )


def _onnx(path: Path, threads: int) -> Runner:
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise MissingDependencyError("ONNX Runtime is not installed: pip install onnxruntime") from error
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(files.read_bytes(path), options, providers=["CPUExecutionProvider"])
    outputs = [LOGITS_OUTPUT]

    def run(x: NDArray[np.float32]) -> Any:
        return session.run(outputs, {IMAGE_INPUT: x})[0]

    def nothing(_: Any) -> dict[str, int]:
        return {}

    return Runner(run, lambda x: x, lambda result: result, None, lambda: None, nothing)
