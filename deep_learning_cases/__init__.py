"""Measure neural networks honestly: the library behind the labs.

Names are loaded on first use, so that ``import deep_learning_cases`` costs milliseconds and a measuring process carries
neither PyTorch nor matplotlib.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest of what the command line starts with
    from typing import Any

__version__ = "0.1.0"

# ONNX Runtime 1.32 on Linux starts a telemetry thread in every process, keeps a database in the home folder and means
# to send it off: work beside the timed calls, 2 MB of the measured memory, and nobody in a classroom agreed to it.  It
# looks at this variable when it is imported; a value that is already set stays.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_MODULES = (
    "artefacts",
    "batching",
    "bench",
    "cases",
    "cifar",
    "comparison",
    "conv",
    "data",
    "doctor",
    "engines",
    "errors",
    "files",
    "lab",
    "load",
    "machine",
    "network",
    "noise",
    "pack",
    "plots",
    "preparation",
    "quantization",
    "regression",
    "release",
    "report",
    "schemas",
    "service",
    "stats",
    "subjects",
    "timing",
    "torch_quantization",
)

_NAMES: dict[str, str] = {"latency_case": "cases", "load_latency_case": "cases"}
"""Public name -> module that holds it."""

__all__ = ["__version__", *_MODULES, *_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
