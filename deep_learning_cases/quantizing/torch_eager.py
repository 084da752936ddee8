"""PyTorch's eager quantization behind a small interface: dynamic, static and quantization-aware training (QAT).

Everything that touches ``torch.ao.quantization`` stands here.  PyTorch has deprecated that package and still ships it;
the successor, torchao's PT2E, is :mod:`~deep_learning_cases.quantizing.pt2e`.  No function leaves a
global setting changed.

Source: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
CVPR 2018; https://docs.pytorch.org/docs/stable/quantization.html.
"""

import copy
import hashlib
import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deep_learning_cases.errors import InputError, MeasurementError, MissingDependencyError
from deep_learning_cases.models.network import import_torch

__all__ = [
    "BACKENDS",
    "TECHNIQUES",
    "built_in",
    "choose",
    "dynamic",
    "expected_warnings",
    "load_state",
    "qat",
    "rebuild",
    "state_sha256",
    "static",
    "tensor_bytes",
    "using",
]

BACKENDS = ("x86", "fbgemm", "qnnpack", "onednn")
"""In the order in which "auto" looks for one that this PyTorch was built with."""

TECHNIQUES = ("dynamic", "static", "qat")

# Each entry silences one message that says nothing about the model at hand; everything else is shown as usual.
_EXPECTED_WARNINGS = (
    # That the package is deprecated is known: it is why it stands behind this module.
    (DeprecationWarning, r"torch\.ao\.quantization is deprecated"),
    # The same for the quantized tensors that the package makes.
    (UserWarning, r"torch\.quantize_per_tensor, torch\.quantize_per_channel and other quantized tensor creation"),
    # PyTorch's own default settings for a backend use the argument that this warns of.
    (UserWarning, r"Please use quant_min and quant_max to specify the range for observers"),
    # PyTorch's own loader of quantized tensors asks for their storage in the old way.
    (UserWarning, r"TypedStorage is deprecated"),
)


def built_in() -> list[str]:
    """The quantization backends that the installed PyTorch was built with, in the order of :data:`BACKENDS`."""
    supported = import_torch().backends.quantized.supported_engines
    return [name for name in BACKENDS if name in supported]


def choose(asked: str = "auto") -> str:
    """The backend to use: ``asked`` itself, or the first built-in one for "auto".

    InputError for a name that is not known or not built in.
    """
    if asked != "auto" and asked not in BACKENDS:
        raise InputError(f"there is no backend {asked!r}: expected auto, {', '.join(BACKENDS)}; choose one of them")
    available = built_in()
    if not available or (asked != "auto" and asked not in available):
        raise InputError(
            f"the backend {asked!r} is not built into this PyTorch ({import_torch().__version__}): it has "
            f"{', '.join(available) or 'none'}; choose one of these or auto"
        )
    return available[0] if asked == "auto" else asked


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Run int8 operators on ``backend`` inside the block; the engine that was set before is set again afterwards.

    MeasurementError if PyTorch takes another engine than the one asked for, at the start or by the end of the block.
    """
    quantized = import_torch().backends.quantized
    before = quantized.engine
    try:
        quantized.engine = backend
        _refuse_other(backend, quantized.engine)
        yield
        _refuse_other(backend, quantized.engine)
    finally:
        quantized.engine = before


def _refuse_other(asked: str, ran: str) -> None:
    if asked != ran:
        raise MeasurementError(
            f"PyTorch runs int8 operators on {ran!r}: expected {asked!r}, the backend asked for; choose one that is "
            "built in and change no engine meanwhile"
        )


def dynamic(model: Any, backend: str) -> Any:
    """A copy of ``model`` with int8 weights in its dense layers; activations are rounded on the fly, in each call.

    ``model`` is an ``nn.Sequential`` in evaluation mode.  Convolutions stay float32: PyTorch has no dynamic ones.
    """
    torch = import_torch()
    with using(backend), expected_warnings():
        return _package().quantize_dynamic(copy.deepcopy(model), {torch.nn.Linear}, dtype=torch.qint8)


def static(model: Any, calibration: Iterable[Any], backend: str) -> Any:
    """A copy of ``model`` with int8 weights and activations, whose ranges come from ``calibration``.

    ``calibration`` are float32 batches in the order in which they are to be seen: observers keep running histograms,
    so that another order may give other ranges.
    """
    torch = import_torch()
    with using(backend), expected_warnings():
        ao = _package()
        wrapped = _wrapped(model).eval()
        runs = _runs(wrapped)
        prepared = ao.fuse_modules(wrapped, runs) if runs else wrapped
        prepared.qconfig = ao.get_default_qconfig(backend)
        ao.prepare(prepared, inplace=True)
        with torch.inference_mode():
            for batch in calibration:
                prepared(batch)
        return ao.convert(prepared)


def qat(model: Any, fit: Callable[[Any], object], backend: str) -> Any:
    """As :func:`static`, with a copy of ``model`` that ``fit`` trains further while its rounding is simulated.

    ``fit(network)`` trains in place; ranges settle meanwhile, so that no calibration follows.
    """
    with using(backend), expected_warnings():
        ao = _package()
        wrapped = _wrapped(model).train()
        runs = _runs(wrapped)
        prepared = ao.fuse_modules_qat(wrapped, runs) if runs else wrapped
        prepared.qconfig = ao.get_default_qat_qconfig(backend)
        ao.prepare_qat(prepared, inplace=True)
        fit(prepared)
        return ao.convert(prepared.eval())


def rebuild(technique: str, model: Any, input_shape: tuple[int, ...], state: Mapping[str, Any], backend: str) -> Any:
    """The quantized network whose ``state_dict`` was saved, on the structure that ``model`` (untrained) tells.

    A state_dict holds numbers and no structure: whoever loads it brings the code.  Call inside :func:`using`, and stay
    inside while the network runs.  InputError for an unknown technique.
    """
    if technique not in TECHNIQUES:
        raise InputError(f"there is no technique {technique!r}: expected one of {', '.join(TECHNIQUES)}")
    torch = import_torch()
    if technique == "dynamic":
        empty = dynamic(model.eval(), backend)
    else:  # a trained-with-rounding network is converted to the same layers as a calibrated one
        empty = static(model, [torch.zeros(2, *input_shape)], backend)
    with expected_warnings():
        empty.load_state_dict(state)
    return empty.eval()


def load_state(path: Any) -> Mapping[str, Any]:
    """A saved ``state_dict``: tensors only, nothing else is unpickled."""
    with expected_warnings():
        state: Mapping[str, Any] = import_torch().load(path, weights_only=True)
    return state


def state_sha256(state: Mapping[str, Any]) -> str:
    """SHA-256 of what a ``state_dict`` holds: names, kinds, shapes, scales and numbers, in the order of its keys.

    The bytes of ``torch.save`` carry the file's name and padding besides, so that their hash says less.
    """
    digest = hashlib.sha256()
    with expected_warnings():
        for name, value in state.items():
            digest.update(name.encode("utf-8") + b"\0")
            for part in _parts(value):
                digest.update(part + b"\0")
    return digest.hexdigest()


def tensor_bytes(state: Mapping[str, Any]) -> int:
    """Bytes of the numbers alone: weights, biases, scales and zero points."""
    with expected_warnings():
        return sum(len(part) for value in state.values() for part in _parts(value)[1:])


def _parts(value: Any) -> list[bytes]:
    """A description of one entry, then the bytes of its numbers."""
    torch = import_torch()
    if isinstance(value, tuple):
        inner = [_parts(item) for item in value]
        return [b";".join(parts[0] for parts in inner), *(part for parts in inner for part in parts[1:])]
    if not isinstance(value, torch.Tensor):
        return [repr(value).encode("utf-8")]
    tensor = value.detach().cpu()
    kind = f"{tensor.dtype} {tuple(tensor.shape)}"
    if not tensor.is_quantized:
        return [kind.encode("ascii"), tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()]
    numbers = tensor.int_repr().contiguous().numpy().tobytes()
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scale = f"{tensor.qscheme()} {tensor.q_scale()!r} {tensor.q_zero_point()}"
        return [f"{kind} {scale}".encode("ascii"), numbers]
    scales = [tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]
    return [f"{kind} {tensor.qscheme()}".encode("ascii"), numbers, *(part.numpy().tobytes() for part in scales)]


def _wrapped(model: Any) -> Any:
    """A copy of the layers between the stubs where float32 becomes int8 and back."""
    torch, ao = import_torch(), _package()
    return torch.nn.Sequential(ao.QuantStub(), *copy.deepcopy(model), ao.DeQuantStub())


def _runs(model: Any) -> list[list[str]]:
    """Names of neighbouring layers that run as one: convolution (and normalisation) with ReLU, dense with ReLU."""
    nn = import_torch().nn
    names = list(model._modules)
    kinds = [type(layer) for layer in model]
    runs, place = [], 0
    while place < len(kinds):
        end = place + 1
        if kinds[place] in (nn.Conv2d, nn.Linear):
            if kinds[place] is nn.Conv2d and kinds[end : end + 1] == [nn.BatchNorm2d]:
                end += 1
            if kinds[end : end + 1] == [nn.ReLU]:
                end += 1
        if end - place > 1:
            runs.append(names[place:end])
        place = end
    return runs


def _package() -> Any:
    torch = import_torch()
    try:
        package = importlib.import_module("torch.ao.quantization")
        for name in ("quantize_dynamic", "prepare", "prepare_qat", "convert", "fuse_modules", "QuantStub"):
            getattr(package, name)
    except (ImportError, AttributeError) as error:
        raise MissingDependencyError(
            f"PyTorch {torch.__version__} has no torch.ao.quantization ({error}): dynamic, static and qat need it; "
            "install an older PyTorch, or compare with --configs fp32,onnx_fp32,onnx_int8"
        ) from error
    return package


@contextmanager
def expected_warnings() -> Iterator[None]:
    """Silence the messages listed above, and only these, inside the block."""
    with warnings.catch_warnings():
        for category, message in _EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message, category=category)
        yield
