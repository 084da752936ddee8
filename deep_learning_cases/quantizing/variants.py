"""The versions of one network that a comparison knows, and how each is made from the float32 baseline and saved."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import InputError, MissingDependencyError
from deep_learning_cases.ground import files
from deep_learning_cases.models import onnx_int8
from deep_learning_cases.models.network import import_torch
from deep_learning_cases.quantizing import pt2e, torch_eager
from deep_learning_cases.quantizing.subjects import Subject

__all__ = ["CUDA", "DEFAULT", "VARIANTS", "Variant", "calibration_batches", "choose", "make", "missing"]


@dataclass(frozen=True)
class Variant:
    """One version; ``baseline`` names the one it is compared with, None for a baseline."""

    title: str
    framework: str
    precision: str
    technique: str
    file: str
    baseline: str | None = None
    device: str = "cpu"


_DENSE_ONLY = "int8 weights in dense layers, float32 elsewhere"

VARIANTS = {
    "fp32": Variant("PyTorch float32", "pytorch", "float32", "none", "fp32.pt"),
    "dynamic": Variant("PyTorch dynamic", "pytorch", _DENSE_ONLY, "dynamic", "dynamic.pt", "fp32"),
    "static": Variant("PyTorch static", "pytorch", "int8", "static", "static.pt", "fp32"),
    "qat": Variant("PyTorch QAT", "pytorch", "int8", "qat", "qat.pt", "fp32"),
    "onnx_fp32": Variant("ONNX Runtime float32", "onnxruntime", "float32", "none", "fp32.onnx"),
    "onnx_int8": Variant("ONNX Runtime static", "onnxruntime", "int8", "static QDQ", "int8.onnx", "onnx_fp32"),
    "compiled": Variant("torch.compile float32", "pytorch", "float32", "compiled", "fp32.pt"),
    "pt2e": Variant("torchao PT2E, compiled", "torchao", "int8", "pt2e", "pt2e.pt2", "compiled"),
    "cuda_fp32": Variant("CUDA float32", "pytorch", "float32", "none", "fp32.pt", None, "cuda"),
    "cuda_fp16": Variant("CUDA float16", "pytorch", "float16", "cast", "fp16.pt", "cuda_fp32", "cuda"),
    "cuda_bf16": Variant("CUDA bfloat16", "pytorch", "bfloat16", "cast", "bf16.pt", "cuda_fp32", "cuda"),
}
"""In the order of tables and figures."""

DEFAULT = ("fp32", "dynamic", "static", "qat", "onnx_fp32", "onnx_int8")
CUDA = ("cuda_fp32", "cuda_fp16", "cuda_bf16")

_MAX_ONNX_BYTES = 64 * 1024 * 1024


def choose(names: list[str] | tuple[str, ...]) -> list[str]:
    """The versions asked for with the baselines they need, in the order of :data:`VARIANTS`.

    InputError for none, a name that is not known, or one that stands twice.
    """
    unknown = [name for name in names if name not in VARIANTS]
    if unknown or not names:
        raise InputError(
            f"there is no configuration {unknown[0] if unknown else ''!r}: expected some of {', '.join(VARIANTS)}; "
            "choose from these"
        )
    if len(set(names)) != len(names):
        raise InputError(f"the configurations {', '.join(names)} repeat one: expected each once; remove it")
    needed = set(names) | {baseline for name in names if (baseline := VARIANTS[name].baseline)}
    return [name for name in VARIANTS if name in needed]


def make(
    name: str, subject: Subject, fp32: Any, folder: Path, backend: str | None, seed: int, progress: bool | None
) -> dict[str, Any]:
    """Make one version of the trained ``fp32``, save it in ``folder``, and return ``size`` and ``state_sha256``.

    MissingDependencyError where the version needs a package or compiler that is not there; ModelError and
    MeasurementError as the makers raise them.
    """
    variant = VARIANTS[name]
    if variant.framework == "onnxruntime":
        return _make_onnx(name, subject, fp32, folder)
    if variant.technique == "pt2e":
        return _make_pt2e(subject, fp32, folder)
    model = _quantized(variant, subject, fp32, backend, seed, progress)
    state = model.state_dict()
    in_memory = io.BytesIO()
    with torch_eager.expected_warnings():
        import_torch().save(state, in_memory)
    _save_state(state, folder / variant.file)
    onnx_bytes = len(subject.onnx_bytes(fp32)) if name == "fp32" else None
    return {
        "size": {
            "state_dict_bytes": in_memory.getbuffer().nbytes,
            "tensor_bytes": torch_eager.tensor_bytes(state),
            "file": variant.file,
            **_on_disk(folder / variant.file),
            "onnx_bytes": onnx_bytes,
            "why": (
                "The state_dict ships, not the module: numbers and their names, no code. The bytes beyond"
                " tensor_bytes are names, shapes and the zip around them; the file repeats its own name in"
                " each member, so it differs a little from the bytes in memory; a disk gives"
                " whole blocks (allocated_bytes)."
                + (" ONNX holds the graph as well, in a tighter format." if onnx_bytes else "")
            ),
        },
        "state_sha256": torch_eager.state_sha256(state),
    }


def _quantized(
    variant: Variant, subject: Subject, fp32: Any, backend: str | None, seed: int, progress: bool | None
) -> Any:
    torch = import_torch()
    if variant.technique in torch_eager.TECHNIQUES:
        if backend is None:
            raise InputError(f"{variant.title} needs a quantization backend: expected one that is built in")
        if variant.technique == "dynamic":
            return torch_eager.dynamic(fp32, backend)
        if variant.technique == "static":
            return torch_eager.static(fp32, calibration_batches(subject), backend)
        return torch_eager.qat(fp32, lambda model: subject.fine_tune(model, seed, progress), backend)
    if variant.technique == "cast":
        import copy

        return copy.deepcopy(fp32).to(getattr(torch, variant.precision))
    return fp32


def calibration_batches(subject: Subject, batch_size: int = 32) -> list[Any]:
    """The calibration split as float32 tensors in its own order: no shuffling, no worker processes."""
    torch = import_torch()
    images = torch.from_numpy(subject.transform(subject.dataset.calibration.images))
    return list(images.split(batch_size))


def _make_onnx(name: str, subject: Subject, fp32: Any, folder: Path) -> dict[str, Any]:
    content = subject.onnx_bytes(fp32)
    if name == "onnx_int8":
        images = subject.transform(subject.dataset.calibration.images)
        content = onnx_int8.quantize_graph(content, images, _MAX_ONNX_BYTES)
    path = folder / VARIANTS[name].file
    files.write_bytes(path, content)
    size = {
        "state_dict_bytes": None,
        "tensor_bytes": None,
        "file": path.name,
        **_on_disk(path),
        "onnx_bytes": len(content),
        "why": "One file with graph and weights; int8 adds a scale and a zero point for each tensor and channel.",
    }
    return {"size": size, "state_sha256": files.sha256_bytes(content)}


def _make_pt2e(subject: Subject, fp32: Any, folder: Path) -> dict[str, Any]:
    path = folder / VARIANTS["pt2e"].file
    with files.scratch_folder() as scratch:
        state = pt2e.convert(fp32, calibration_batches(subject), scratch / path.name)
        content = files.read_bytes(scratch / path.name)
    files.write_bytes(path, content)
    in_memory = io.BytesIO()
    import_torch().save(state, in_memory)
    size = {
        "state_dict_bytes": in_memory.getbuffer().nbytes,
        "tensor_bytes": torch_eager.tensor_bytes(state),
        "file": path.name,
        **_on_disk(path),
        "onnx_bytes": None,
        "why": "The exported program: graph, weights and constants.",
    }
    return {"size": size, "state_sha256": torch_eager.state_sha256(state)}


def _save_state(state: Any, path: Path) -> None:
    # Saved under its own name: torch.save writes the file's name into it.
    with files.scratch_folder() as scratch, torch_eager.expected_warnings():
        import_torch().save(state, scratch / path.name)
        content = files.read_bytes(scratch / path.name)
    files.write_bytes(path, content)


def _on_disk(path: Path) -> dict[str, int | None]:
    facts = path.stat()
    blocks = getattr(facts, "st_blocks", None)  # Windows tells none; POSIX counts in 512 bytes
    return {"file_bytes": facts.st_size, "allocated_bytes": None if blocks is None else blocks * 512}


def missing(name: str) -> str | None:
    """Why this version cannot be made here, in one line; None if nothing that it needs is known to be missing."""
    try:
        if VARIANTS[name].framework == "onnxruntime":
            import onnxruntime  # noqa: F401
        elif VARIANTS[name].technique in ("compiled", "pt2e"):
            pt2e.require(quantizer=name == "pt2e")
        elif VARIANTS[name].device == "cuda" and not import_torch().cuda.is_available():
            return "PyTorch finds no CUDA device here"
    except MissingDependencyError as error:
        return str(error)
    except ImportError:
        return "ONNX Runtime is not installed: pip install onnxruntime"
    return None
