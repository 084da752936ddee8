"""torchao's PT2E route: export the graph, quantize it, compile it for this processor.

The successor of PyTorch's eager quantization.  It needs torchao and a C++ compiler, and its first call compiles for
seconds to minutes.  Source: https://docs.pytorch.org/ao/stable/pt2e_quantization/pt2e_quant_x86_inductor.html.
"""

import contextlib
import importlib
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import MissingDependencyError, one_line
from deep_learning_cases.models.network import import_torch

__all__ = ["compiled", "convert", "load", "require"]


def require(quantizer: bool = True) -> None:
    """MissingDependencyError, with the command that helps, unless a compiler and (``quantizer``) torchao are there."""
    import_torch()
    compiler = os.environ.get("CXX") or "g++"
    if not any(shutil.which(name) for name in (compiler, "clang++")):
        raise MissingDependencyError(
            f"torch.compile needs a C++ compiler and there is no {compiler}: install one (apt install g++), or leave "
            "out compiled and pt2e"
        )
    if quantizer:
        _parts()


def convert(model: Any, calibration: list[Any], path: Path) -> Mapping[str, Any]:
    """Export ``model``, calibrate on the batches in their order, convert, save the program at ``path``; its state.

    The batch size stays free in the program.  MissingDependencyError without torchao.
    """
    torch = import_torch()
    prepare, converter, quantizer_module = _parts()
    dynamic = ({0: torch.export.Dim("batch")},)
    with torch.no_grad(), _known_warnings():
        graph = torch.export.export(model, (calibration[0],), dynamic_shapes=dynamic).module()
        quantizer = quantizer_module.X86InductorQuantizer()
        quantizer.set_global(quantizer_module.get_default_x86_inductor_quantization_config())
        prepared = prepare(graph, quantizer)
        for batch in calibration:
            prepared(batch)
        converted = converter(prepared)
        _drop_unused(converted)
        program = torch.export.export(converted, (calibration[0],), dynamic_shapes=dynamic)
        torch.export.save(program, path)
    state: Mapping[str, Any] = program.state_dict
    return state


def _drop_unused(graph: Any) -> None:
    """The float32 weights stay attached to the converted graph, which reads their int8 copies: nobody ships both."""
    used = {node.target for node in graph.graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in graph.named_parameters() if name not in used]:
        place, _, leaf = name.rpartition(".")
        delattr(graph.get_submodule(place), leaf)


def load(path: Path) -> Any:
    """The graph of a saved program, to be run through :func:`compiled`."""
    _parts()  # registers the operators that the program uses
    with _known_warnings():
        return import_torch().export.load(path).module()


@contextlib.contextmanager
def compiled(model: Any) -> Iterator[Any]:
    """``model`` compiled for each batch size it meets, weights taken as constants; settings as before outside.

    Taking the weights as constants ("freezing") is what lets the compiler choose int8 operators.  Compiled headers
    would be kept in TMPDIR for good, wherever the cache is (:func:`network.compiler_cache`), so there are none.
    """
    torch = import_torch()
    from torch._inductor import config

    with config.patch(freezing=True, cpp_cache_precompile_headers=False), _known_warnings():
        torch._dynamo.reset()
        try:
            yield torch.compile(model, dynamic=False)
        finally:
            torch._dynamo.reset()


def _parts() -> tuple[Any, Any, Any]:
    try:
        with _known_warnings():
            parts = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
            quantizer = importlib.import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    except (ImportError, AttributeError) as error:
        raise MissingDependencyError(
            f"pt2e needs torchao ({one_line(error, 80)}): install it with: pip install torchao"
        ) from error
    return parts.prepare_pt2e, parts.convert_pt2e, quantizer


@contextlib.contextmanager
def _known_warnings() -> Iterator[None]:
    """torchao and the exporter warn of their own parts' deprecation; nothing of it concerns the model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torchao|torch")
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"torchao|torch")
        # Of the compiler's own code, once for each layer that it turns into an int8 operator.
        warnings.filterwarnings("ignore", message=r"To copy construct from a tensor", category=UserWarning)
        yield
