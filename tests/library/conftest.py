"""Evidence as the build leaves it, before anything was measured; and models that need no training."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep_learning_cases import quantization
from deep_learning_cases.models import artefacts, conv, data
from deep_learning_cases.release import preparation


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("built") / "evidence"
    return folder, preparation.build(folder, progress=False)


@pytest.fixture
def built(built_once: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    """A copy of a freshly built folder that a test may damage."""
    folder = tmp_path / "evidence"
    shutil.copytree(built_once[0], folder)
    return folder


@pytest.fixture(scope="session")
def random_weights() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in conv.WEIGHT_SHAPES.items()}


@pytest.fixture(scope="session")
def random_images() -> np.ndarray:
    return data.normalise(np.random.default_rng(4).integers(0, 17, (40, 1, 8, 8)).astype(np.uint8))


@pytest.fixture(scope="session")
def random_models(
    random_weights: dict[str, Any], random_images: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The three model files of an untrained network."""
    folder = tmp_path_factory.mktemp("random-models")
    fp32 = artefacts.onnx_bytes(random_weights)
    (folder / artefacts.FP32).write_bytes(fp32)
    (folder / artefacts.WEIGHTS).write_bytes(artefacts.weights_bytes(random_weights))
    (folder / artefacts.INT8).write_bytes(quantization.quantize_static(fp32, random_images))
    return folder
