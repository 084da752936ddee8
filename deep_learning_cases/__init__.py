"""Measure neural networks honestly: the library behind the labs.

Names are loaded on first use, so that ``import deep_learning_cases`` costs milliseconds and a measuring process carries
neither PyTorch nor matplotlib.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest of what the command line starts with
    from collections.abc import Callable, Mapping
    from typing import Any

__version__ = "0.1.0"

# ONNX Runtime 1.32 on Linux starts a telemetry thread in every process, keeps a database in the home folder and means
# to send it off: work beside the timed calls, 2 MB of the measured memory, and nobody in a classroom agreed to it.  It
# looks at this variable when it is imported; a value that is already set stays.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_PLACES = {
    "artefacts": "models.artefacts",
    "batching": "batching",
    "batching_plots": "batching.plots",
    "bench": "bench",
    "boundaries": "latency.boundaries",
    "cases": "latency.case",
    "cifar": "models.cifar",
    "claims_record": "quantizing.comparison.claims_record",
    "comparison": "quantizing.comparison.compare",
    "comparison_plots": "quantizing.comparison.plots",
    "comparison_trial": "quantizing.comparison.trial",
    "conv": "models.conv",
    "data": "models.data",
    "doctor": "doctor",
    "engines": "models.engines",
    "errors": "errors",
    "files": "ground.files",
    "fresh_starts": "latency.fresh_starts",
    "lab": "commands.lab",
    "latency_case": "latency.case:latency_case",
    "latency_engine": "latency.engine",
    "load": "serving.load",
    "load_latency_case": "latency.case:load_latency_case",
    "machine": "ground.machine",
    "network": "models.network",
    "noise": "noise",
    "notebook_figures": "notebook_figures",
    "pack": "release.pack",
    "plots": "release.report.plots",
    "policy_record": "latency.policy_record",
    "preparation": "release.preparation",
    "quantization": "models.onnx_int8",
    "regression": "release.regression",
    "release": "release",
    "report": "release.report.page",
    "schemas": "ground.schemas",
    "service": "serving.server",
    "stats": "measuring.stats",
    "subjects": "quantizing.subjects",
    "timing": "measuring.timing",
    "torch_quantization": "quantizing.torch_eager",
    "trial": "measuring.trial",
}
"""What users type after ``from deep_learning_cases import`` -> the module that holds it, or ``module:name``."""

__all__ = ["__version__", *_PLACES]  # noqa: PLE0604


def lazily(places: "Mapping[str, str]") -> "Callable[[str], Any]":
    """A module's ``__getattr__`` that imports a name when it is first used.

    ``places`` maps each name to a module of this package, or to ``module:name`` for something inside one.
    """

    def get(name: str) -> "Any":
        if name not in places:
            raise AttributeError(f"deep_learning_cases has no attribute {name!r} here: expected one of {list(places)}")
        from importlib import import_module

        module, _, inside = places[name].partition(":")
        found = import_module(f"{__name__}.{module}")
        return getattr(found, inside) if inside else found

    return get


__getattr__ = lazily(_PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
