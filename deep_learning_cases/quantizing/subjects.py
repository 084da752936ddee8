"""What a comparison is about: a data set, the network for it, and how both are trained and fine-tuned."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models import artefacts, cifar, cifar_network, data, network, onnx_export
from deep_learning_cases.models.data import Dataset
from deep_learning_cases.models.network import import_torch

__all__ = ["NAMES", "Subject", "fit", "load", "structure"]

NAMES = ("digits", "cifar10")


@dataclass(frozen=True)
class Subject:
    """A data set with its network.

    ``transform`` turns uint8 images (n, *input_shape) into the float32 that the network takes: evaluation's fixed one.
    """

    name: str
    source: str
    network_name: str
    dataset: Dataset
    classes: list[str]
    input_shape: tuple[int, ...]
    epochs: int
    qat_epochs: int
    transform: Callable[[NDArray[np.uint8]], NDArray[np.float32]]

    def make(self) -> Any:
        """The untrained network, an ``nn.Sequential``; see :func:`structure`."""
        return structure(self.name)

    def train(self, seed: int, progress: bool | None = None) -> Any:
        """The float32 baseline in evaluation mode; the same seed gives the same weights on one machine."""
        if self.name == "digits":
            return network.train(self.dataset, seed=seed, progress=progress, epochs=self.epochs)
        torch = import_torch()
        with network.reproducible(torch, seed, threads=torch.get_num_threads()):
            model = self.make()
            fit(model, self, self.epochs, 3e-3, progress, "training")
        return model.eval()

    def fine_tune(self, model: Any, seed: int, progress: bool | None = None) -> None:
        """Train ``model`` in place for a few epochs at a tenth of the rate, as QAT asks for."""
        torch = import_torch()
        threads = 1 if self.name == "digits" else torch.get_num_threads()
        with network.reproducible(torch, seed, threads=threads):
            fit(model, self, self.qat_epochs, 4e-4, progress, "QAT")

    def onnx_bytes(self, model: Any) -> bytes:
        """The float32 network as an ONNX model; for the digits the very file of the release lab."""
        if self.name == "digits":
            return artefacts.onnx_bytes(network.weights(model))
        return onnx_export.sequential_bytes(model, self.input_shape, len(self.classes), self.name)


def load(
    name: str = "digits",
    archive: str | Path | None = None,
    seed: int = 1729,
    epochs: int | None = None,
    qat_epochs: int | None = None,
) -> Subject:
    """The subject called "digits" or "cifar10"; ``archive`` is CIFAR-10's local archive or folder.

    InputError for an unknown name, a missing or needless ``archive``, or less than one epoch; FileError and
    EvidenceError as :func:`cifar.load`.
    """
    if name not in NAMES:
        raise InputError(f"there is no data set {name!r}: expected {' or '.join(NAMES)}; choose one of them")
    epochs = None if epochs is None else whole(epochs, "epochs", 1, network.MOST_EPOCHS)
    qat_epochs = None if qat_epochs is None else whole(qat_epochs, "qat_epochs", 1, network.MOST_EPOCHS)
    if name == "digits":
        if archive is not None:
            raise InputError(f"--archive {archive} with the digits: they come with scikit-learn; add --data cifar10")
        dataset = data.load_digits(seed)
        classes, source = [str(digit) for digit in range(data.CLASSES)], "scikit-learn's copy of the UCI digits"
        return Subject(
            name, source, "digits CNN", dataset, classes, data.IMAGE_SHAPE,
            epochs or network.EPOCHS, qat_epochs or 3, data.normalise,
        )  # fmt: skip
    if archive is None:
        raise InputError(f"cifar10 without an archive: {cifar.HOW_TO_GET}")
    dataset, classes = cifar.load(archive)
    return Subject(
        name, f"CIFAR-10, {Path(archive).name}", "VGG-style CNN", dataset, classes, cifar.IMAGE_SHAPE,
        epochs or 6, qat_epochs or 1, cifar_network.normalise,
    )  # fmt: skip


def structure(name: str) -> Any:
    """The untrained network of a subject, without its data: what a measuring process needs; evaluation mode."""
    torch = import_torch()
    with torch.random.fork_rng(devices=[]):  # its random weights are replaced at once
        return (network.make() if name == "digits" else cifar_network.make()).eval()


def fit(model: Any, subject: Subject, epochs: int, rate: float, progress: bool | None, what: str) -> None:
    """Train ``model`` in place with Adam under a one-cycle schedule; leaves it in training mode.

    Images are transformed batch by batch: all of CIFAR-10 as float32 would take 614 MB.
    """
    from tqdm import tqdm

    torch = import_torch()
    batch_size = network.BATCH_SIZE if subject.name == "digits" else 128
    images, labels = subject.dataset.train.images, subject.dataset.train.labels.astype(np.int64)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    steps = epochs * -(-len(images) // batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
    model.train()
    hidden = None if progress is None else not progress
    with tqdm(total=steps, desc=what, unit="batch", disable=hidden, leave=False) as bar:
        for _ in range(epochs):
            for rows in torch.randperm(len(images)).split(batch_size):
                chosen = rows.numpy()
                batch = torch.from_numpy(subject.transform(images[chosen]))
                if subject.name == "cifar10":
                    batch = cifar_network.augment(batch)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(batch), torch.from_numpy(labels[chosen])).backward()
                optimizer.step()
                schedule.step()
                bar.update()
