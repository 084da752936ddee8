"""The network that a latency case measures: an evidence folder's, a file's, or a small one with seeded weights.

Untrained weights take the same time as trained ones, so measuring needs no files, no training and no PyTorch.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground import files
from deep_learning_cases.models import artefacts, conv, data, engines, network

__all__ = ["Measured", "Network", "Settings", "draw_inputs", "model_file", "opened", "seeded_weights"]

MAX_INPUT_BYTES = 64 * 1024 * 1024
"""Prepared inputs of one batch size; beyond it the calls take fewer distinct batches in turn."""

_EXECUTION = {
    "numpy": ("inference: no layer has a training behaviour", "none: one NumPy call after the other"),
    "onnxruntime": ("inference", "ONNX Runtime's graph optimisations, all levels"),
    "pytorch": ("eval() and inference_mode()", "none: eager PyTorch"),
}


class Settings(TypedDict, total=False):
    """What every part of a latency case takes by keyword: :class:`Network`, with its defaults."""

    engine: Any
    model: str | Path | None
    seed: int
    threads: int
    device: str


@dataclass(frozen=True)
class Network:
    """The network that is measured and what runs it, as the arguments of :func:`case.latency_case` say."""

    engine: Any = "numpy"
    model: str | Path | None = None
    seed: int = 1729
    threads: int = 1
    device: str = "cpu"

    def opened(self) -> "AbstractContextManager[Measured]":
        """Ready to be timed in this process, see :func:`opened`."""
        return opened(self.engine, self.model, self.seed, self.threads, self.device)

    def file(self) -> AbstractContextManager[tuple[Path, str]]:
        """As a file for another process, see :func:`model_file`."""
        return model_file(self.engine, self.model, self.seed)


@dataclass(frozen=True)
class Measured:
    """What the timer surrounds, and the facts that a record states about it."""

    run: Callable[[NDArray[np.float32]], object]
    synchronize: Callable[[], object] | None
    engine: dict[str, Any]
    model: dict[str, Any] | None
    precision: str
    execution: dict[str, str]


def seeded_weights(seed: int) -> dict[str, NDArray[np.float32]]:
    """Untrained weights of the lab's network, normal with the variance that keeps a signal's size from layer to layer.

    Source: He et al., "Delving deep into rectifiers", ICCV 2015 (variance 2 / inputs).
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in conv.WEIGHT_SHAPES.items():
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.01
        weights[name] = rng.normal(0.0, scale, shape).astype(np.float32)
    return weights


@contextmanager
def model_file(engine: str, model: str | Path | None, seed: int) -> Iterator[tuple[Path, str]]:
    """The file that ``engine`` reads, and where its weights come from in words.

    ``model`` is such a file, an evidence folder that holds it, or None for seeded weights in a temporary file that is
    gone afterwards.  InputError for an unknown engine, FileError where there is no such file.
    """
    if engine not in engines.ENGINES:
        raise InputError(f"there is no engine {engine!r}: expected one of {', '.join(engines.ENGINES)}; choose one")
    if model is not None and not isinstance(model, str | Path):
        raise InputError(f"model is {type(model).__name__}: expected a path, or None; change it")
    name = artefacts.FP32 if engine == "onnxruntime" else artefacts.WEIGHTS
    if model is not None:
        path = Path(model) / name if Path(model).is_dir() else Path(model)
        if not path.is_file():
            raise FileError(f"{path} is no file: expected a model for {engine}; build one with: dlcases build DIR")
        yield path, "a model file"
        return
    with files.scratch_folder() as folder:
        weights = seeded_weights(seed)
        content = artefacts.onnx_bytes(weights) if name == artefacts.FP32 else artefacts.weights_bytes(weights)
        files.write_bytes(folder / name, content)
        yield folder / name, f"random, seed {seed}; untrained, so the logits mean nothing and the times do"


@contextmanager
def opened(engine: Any, model: str | Path | None, seed: int, threads: int, device: str) -> Iterator[Measured]:
    """An engine ready to be timed: one of :data:`engines.ENGINES` by name, or an object with ``run(batch)``.

    An object may have ``describe() -> dict`` (JSON values; "precision", "device", "mode" and "compiler" are used) and
    ``synchronize()``, which has to return only when the device has finished and is called inside the timer.
    """
    if not isinstance(engine, str):
        if model is not None:
            raise InputError(f"model is {str(model)!r} beside an engine object: expected one of them; leave one out")
        yield _object(engine)
        return
    with model_file(engine, model, seed) as (path, origin):
        running = engines.open_engine(path, engine, threads, device)
        mode, compiler = _EXECUTION[engine]
        cuda = network.import_torch().cuda if device == "cuda" else None
        quantized = engine == "onnxruntime" and b"DequantizeLinear" in files.read_bytes(path)
        yield Measured(
            running.run,
            None if cuda is None else cuda.synchronize,
            running.describe() | ({} if cuda is None else {"device_name": str(cuda.get_device_name())}),
            files.file_record(path) | {"weights": origin},
            "int8" if quantized else "float32",
            {
                "device": device,
                "mode": mode,
                "compiler": compiler,
                "synchronised": "torch.cuda.synchronize() inside the timer" if cuda else _NOT_NEEDED,
            },
        )


_NOT_NEEDED = "not needed: a call returns when its result is in memory"


def _object(engine: Any) -> Measured:
    run, describe = getattr(engine, "run", None), getattr(engine, "describe", dict)
    if not callable(run) or not callable(describe):
        raise InputError(
            f"engine is {type(engine).__name__}: expected one of {', '.join(engines.ENGINES)}, or an object with"
            " run(batch); pass one"
        )
    facts: Any = describe()
    try:
        facts = json.loads(json.dumps(facts, allow_nan=False))
        facts = {"name": type(engine).__name__} | facts
    except (TypeError, ValueError) as error:
        raise InputError(
            f"describe() of the engine returned {type(facts).__name__} ({error}): expected a dictionary of JSON values"
        ) from None
    synchronize = getattr(engine, "synchronize", None)
    execution = {
        "device": str(facts.get("device", "unknown")),
        "mode": str(facts.get("mode", "as the engine object decides")),
        "compiler": str(facts.get("compiler", "as the engine object decides")),
        "synchronised": "the engine's synchronize() inside the timer" if synchronize else "the engine has no such call",
    }
    return Measured(run, synchronize, facts, None, str(facts.get("precision", "unknown")), execution)


def draw_inputs(batch_size: int, calls: int, seed: int, fresh: bool) -> list[NDArray[np.float32]]:
    """Random images float32 (batch_size, 1, 8, 8) of 0 to 1: one batch, or one for each call if ``fresh``.

    Batches that together would exceed :data:`MAX_INPUT_BYTES` are fewer than the calls, at least two.
    """
    batch_bytes = 4 * batch_size * int(np.prod(data.IMAGE_SHAPE))
    count = min(calls, max(2, MAX_INPUT_BYTES // batch_bytes)) if fresh else 1
    rng = np.random.default_rng((seed, batch_size))
    shape = (batch_size, *data.IMAGE_SHAPE)
    return [data.normalise(rng.integers(0, 17, shape, np.uint8)) for _ in range(count)]
