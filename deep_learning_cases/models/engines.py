"""One way to run a model, whatever runs it: ``load``, ``run(batch) -> logits``, ``describe()``.

A measuring process imports this module, so at the top it takes nothing beyond NumPy; each engine imports its runtime
when it loads.  ``run`` checks nothing but that there is an image: it is what the timer surrounds.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import EvidenceError, InputError, MissingDependencyError, ModelError, one_line
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models.data import check_not_empty

__all__ = ["ENGINES", "Engine", "NumPyEngine", "OnnxRuntimeEngine", "PyTorchEngine", "open_engine"]

ENGINES = ("onnxruntime", "numpy", "pytorch")
"""The names that :func:`open_engine` takes."""

MAX_MODEL_BYTES = 4 * 1024 * 1024
_INPUT_SHAPE, _CLASSES = [1, 8, 8], 10


class Engine(Protocol):
    """What every engine offers.  One engine object serves one thread."""

    def load(self, path: str | Path) -> None:
        """Read the model; FileError if unreadable, ModelError if it is not a model for this engine."""

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits float32 (n, 10) of normalised images float32 (n, 1, 8, 8); the result is in main memory.

        InputError for a batch of none.
        """

    def describe(self) -> dict[str, Any]:
        """Name, version and settings of what runs the model, as JSON values."""


def open_engine(path: str | Path, engine: str = "onnxruntime", threads: int = 1, device: str = "cpu") -> Engine:
    """The engine called ``engine`` with the model at ``path`` loaded.

    "onnxruntime" reads ``.onnx`` files; "numpy" and "pytorch" read the weights ``model_fp32.npz``.  ``device`` other
    than "cpu" ("cuda") is for PyTorch.  InputError for an unknown engine, device or number of threads;
    MissingDependencyError where the runtime is not installed; otherwise as :meth:`Engine.load`.
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}: expected one of {', '.join(ENGINES)}; choose one of them")
    threads = whole(threads, "threads", 1, 1024)
    if device not in ("cpu", "cuda") or (device == "cuda" and engine != "pytorch"):
        raise InputError(f"the device of {engine} is {device!r}: expected 'cpu', or 'cuda' for pytorch; change it")
    opened: Engine
    if engine == "pytorch":
        opened = PyTorchEngine(threads, device)
    else:
        opened = OnnxRuntimeEngine(threads) if engine == "onnxruntime" else NumPyEngine(threads)
    opened.load(path)
    return opened


class OnnxRuntimeEngine:
    """ONNX Runtime on the CPU, operators one after the other, ``threads`` threads inside an operator."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def load(self, path: str | Path) -> None:
        """See :meth:`Engine.load`."""
        try:
            content = files.read_bytes(path, MAX_MODEL_BYTES)
        except EvidenceError as error:
            raise ModelError(str(error)) from error
        self.load_bytes(content, path)

    def load_bytes(self, content: bytes, name: str | Path) -> None:
        """As :meth:`load`, from the bytes of a file; ``name`` stands in the message."""
        _check_inside(content, name)
        ort = _import("onnxruntime", "onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 4  # failures arrive as exceptions; a second report on stderr helps nobody
        options.add_session_config_entry("session.load_model_format", "ONNX")
        try:
            self._session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # a dozen classes of the extension module, one for each status code
            raise ModelError(
                f"{name} is not a model that ONNX Runtime can load ({one_line(error)}): expected an ONNX classifier; "
                "build the models again"
            ) from error
        self._input, self._outputs = self._names(name)
        self._version = str(ort.__version__)

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """See :meth:`Engine.run`."""
        check_not_empty(batch)
        logits: NDArray[np.float32] = self._session.run(self._outputs, {self._input: batch})[0]
        return logits

    def describe(self) -> dict[str, Any]:
        """See :meth:`Engine.describe`."""
        return {
            "name": "onnxruntime",
            "version": self._version,
            "provider": self._session.get_providers()[0],
            "threads": self._threads,
            "execution": "sequential",
        }

    def _names(self, name: str | Path) -> tuple[str, list[str]]:
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        fits = (
            len(inputs) == len(outputs) == 1
            and inputs[0].type == outputs[0].type == "tensor(float)"
            and inputs[0].shape[1:] == _INPUT_SHAPE
            and outputs[0].shape[1:] == [_CLASSES]
            and len(outputs[0].shape) == 2
        )
        if not fits:
            found = "; ".join(f"{value.name} {value.type} {value.shape}" for value in (*inputs, *outputs))
            raise ModelError(
                f"{name} has {found[:200]}: expected one float32 input (batch, 1, 8, 8) and one output (batch, 10); "
                "build the models again"
            )
        return inputs[0].name, [outputs[0].name]


class NumPyEngine:
    """The planned forward pass of :mod:`deep_learning_cases.models.numpy_network` on the weights of ``model_fp32.npz``.

    One engine may serve several threads at once: each has buffers of its own.  How many threads a matrix product takes
    is settled when NumPy is imported (OPENBLAS_NUM_THREADS and its like), so ``describe`` reports what the environment
    asked for.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def load(self, path: str | Path) -> None:
        """See :meth:`Engine.load`."""
        from deep_learning_cases.models import artefacts, numpy_network

        self._network = numpy_network.PlannedNetwork(artefacts.read_weights(path))

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """See :meth:`Engine.run`."""
        return self._network(batch)

    def describe(self) -> dict[str, Any]:
        """See :meth:`Engine.describe`."""
        asked = {name: os.environ[name] for name in _BLAS_THREADS if name in os.environ}
        return {"name": "numpy", "version": np.__version__, "threads": self._threads, "blas_threads": asked}


_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class PyTorchEngine:
    """PyTorch in inference mode on the weights of ``model_fp32.npz``.

    Loading sets the number of threads of the whole process: PyTorch knows no smaller scope.  On "cuda" the batch goes
    to the device and the logits come back inside ``run``, which therefore returns only when the device has finished.
    """

    def __init__(self, threads: int = 1, device: str = "cpu") -> None:
        self._threads, self._device = threads, device

    def load(self, path: str | Path) -> None:
        """See :meth:`Engine.load`."""
        from deep_learning_cases.models import artefacts, network

        weights = artefacts.read_weights(path)
        self._torch = network.import_torch()
        if self._device == "cuda" and not self._torch.cuda.is_available():
            raise InputError("PyTorch finds no CUDA device here: expected one for device 'cuda'; use device 'cpu'")
        self._torch.set_num_threads(self._threads)
        self._model = network.from_weights(weights).to(self._device)

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """See :meth:`Engine.run`."""
        check_not_empty(batch)
        with self._torch.inference_mode():
            logits: NDArray[np.float32] = self._model(self._torch.from_numpy(batch).to(self._device)).cpu().numpy()
        return logits

    def describe(self) -> dict[str, Any]:
        """See :meth:`Engine.describe`."""
        version = str(self._torch.__version__)
        return {"name": "pytorch", "version": version, "threads": self._threads, "device": self._device, "mode": "eval"}


def _check_inside(content: bytes, name: str | Path) -> None:
    """ModelError for a model that could make the runtime open another file.

    The full check is ``artefacts.check_onnx``; it needs the onnx package, which a measuring process does without.  Data
    outside the file always carries the key "location", so a search for that word lets no such model through.
    """
    if b"location" in content:
        raise ModelError(f"{name} names data outside the file: expected all data inside; export the model again")


def _import(module: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{package} is not installed: this engine needs it; install it with: pip install {package}"
        ) from error
