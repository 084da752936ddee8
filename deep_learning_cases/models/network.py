"""The lab's small CNN in PyTorch and its seeded training.

PyTorch is imported inside the functions: measuring and judging work without it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import MissingDependencyError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models import conv
from deep_learning_cases.models.data import Dataset, check_seed, normalise

__all__ = [
    "accuracy",
    "compiler_cache",
    "from_weights",
    "import_torch",
    "logits",
    "make",
    "reproducible",
    "train",
    "weights",
]

EPOCHS = 20
MOST_EPOCHS = 100_000
BATCH_SIZE = 32
LEARNING_RATE = 4e-3
"""The peak of a one-cycle schedule: it rises to this value and falls to nearly nothing (Smith and Topin, 2017)."""


_COMPILER_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def import_torch() -> Any:
    """The ``torch`` module; MissingDependencyError with the command that installs it."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            "PyTorch is not installed: training needs it, measuring does not; install it with: "
            "pip install 'deep_learning_cases[torch]'"
        ) from error
    return torch


def make() -> Any:
    """The untrained network as ``torch.nn.Sequential``: float32 (n, 1, 8, 8) in, logits (n, 10) out."""
    nn = import_torch().nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 96),
        nn.ReLU(),
        nn.Linear(96, 10),
    )


def train(dataset: Dataset, seed: int = 1729, progress: bool | None = None, epochs: int = EPOCHS) -> Any:
    """Train on ``dataset.train`` and return the network in evaluation mode; the same seed gives the same weights.

    Runs on one thread with deterministic algorithms, and puts PyTorch's settings and random state back afterwards.
    ``progress``: None shows a bar on a terminal only, False never.  InputError for less than one epoch.
    """
    epochs, seed = whole(epochs, "epochs", 1, MOST_EPOCHS), check_seed(seed)
    torch = import_torch()
    from tqdm import tqdm

    images = torch.from_numpy(normalise(dataset.train.images))
    labels = torch.from_numpy(dataset.train.labels.astype(np.int64))
    with compiler_cache(), reproducible(torch, seed):
        model = make()
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        steps = epochs * -(-len(images) // BATCH_SIZE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
        for _ in tqdm(range(epochs), desc="training", unit="epoch", disable=None if progress is None else not progress):
            for rows in torch.randperm(len(images)).split(BATCH_SIZE):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
                optimizer.step()
                schedule.step()
    return model.eval()


def weights(model: Any) -> dict[str, NDArray[np.float32]]:
    """The eight float32 arrays of :data:`conv.WEIGHT_SHAPES`, copied out of ``model``."""
    parameters = [parameter.detach().cpu().numpy().copy() for parameter in model.parameters()]
    return dict(zip(conv.WEIGHT_SHAPES, parameters, strict=True))


def from_weights(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The network in evaluation mode with these weights; InputError unless they are the ones of :func:`weights`."""
    torch = import_torch()
    conv.check_weights(arrays)
    with torch.random.fork_rng(devices=[]):  # building layers draws random numbers that are overwritten at once
        model = make()
    with torch.no_grad():
        for parameter, name in zip(model.parameters(), conv.WEIGHT_SHAPES, strict=True):
            parameter.copy_(torch.from_numpy(np.array(arrays[name])))
    return model.eval()


def logits(model: Any, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits float32 (n, 10) of normalised ``images`` float32 (n, 1, 8, 8), without recording gradients."""
    torch = import_torch()
    with torch.inference_mode():
        result: NDArray[np.float32] = model(torch.from_numpy(images)).numpy()
    return result


def accuracy(scores: NDArray[np.float32], labels: NDArray[np.uint8]) -> float:
    """The fraction of rows of ``scores`` (n, classes) whose largest entry is at ``labels`` (n,)."""
    return float((scores.argmax(axis=1) == labels).mean())


@contextmanager
def compiler_cache() -> Iterator[None]:
    """Have PyTorch's compiler keep its cache in a folder that is removed afterwards, and not in TMPDIR for good.

    It makes its folder as soon as it is imported, and the first optimizer imports it.  Processes started meanwhile
    share the folder; a place that the caller has set is used and stays.
    """
    if os.environ.get(_COMPILER_CACHE):
        yield
        return
    with files.scratch_folder() as folder:
        os.environ[_COMPILER_CACHE] = str(folder)
        try:
            yield
        finally:
            os.environ.pop(_COMPILER_CACHE, None)


@contextmanager
def reproducible(torch: Any, seed: int, threads: int = 1) -> Iterator[None]:
    """``threads`` threads, deterministic algorithms and a seeded generator inside; everything as before outside."""
    threads_before = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_num_threads(threads)  # sums over several threads come in another order, so with other roundings
            torch.use_deterministic_algorithms(True)
            torch.random.default_generator.manual_seed(seed)
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            torch.set_num_threads(threads_before)
