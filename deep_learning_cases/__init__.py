"""Measure neural networks honestly: the library behind the labs.

Names are loaded on first use, so that ``import deep_learning_cases`` costs milliseconds and a measuring process carries
neither PyTorch nor matplotlib.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest of what the command line starts with
    from collections.abc import Callable, Mapping
    from typing import Any

    from deep_learning_cases.batching import plots as batching_plots
    from deep_learning_cases.commands import lab as lab
    from deep_learning_cases.ground import files as files
    from deep_learning_cases.ground import machine as machine
    from deep_learning_cases.ground import schemas as schemas
    from deep_learning_cases.latency import boundaries as boundaries
    from deep_learning_cases.latency import case as cases
    from deep_learning_cases.latency import engine as latency_engine
    from deep_learning_cases.latency import fresh_starts as fresh_starts
    from deep_learning_cases.latency import policy_record as policy_record
    from deep_learning_cases.latency.case import latency_case as latency_case
    from deep_learning_cases.latency.case import load_latency_case as load_latency_case
    from deep_learning_cases.measuring import stats as stats
    from deep_learning_cases.measuring import timing as timing
    from deep_learning_cases.measuring import trial as trial
    from deep_learning_cases.models import artefacts as artefacts
    from deep_learning_cases.models import cifar as cifar
    from deep_learning_cases.models import conv as conv
    from deep_learning_cases.models import data as data
    from deep_learning_cases.models import engines as engines
    from deep_learning_cases.models import network as network
    from deep_learning_cases.models import onnx_int8 as quantization
    from deep_learning_cases.quantizing import subjects as subjects
    from deep_learning_cases.quantizing import torch_eager as torch_quantization
    from deep_learning_cases.quantizing.comparison import claims_record as claims_record
    from deep_learning_cases.quantizing.comparison import compare as comparison
    from deep_learning_cases.quantizing.comparison import plots as comparison_plots
    from deep_learning_cases.quantizing.comparison import trial as comparison_trial
    from deep_learning_cases.release import pack as pack
    from deep_learning_cases.release import preparation as preparation
    from deep_learning_cases.release import regression as regression
    from deep_learning_cases.release.report import page as report
    from deep_learning_cases.release.report import plots as plots
    from deep_learning_cases.serving import server as service
    from deep_learning_cases.serving.load import send as load

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
    "load": "serving.load.send",
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
