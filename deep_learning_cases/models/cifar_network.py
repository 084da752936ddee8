"""A VGG-style CNN of small-ResNet size for CIFAR-10: plain layers in a row, so that int8 keeps its structure.

Source: K. Simonyan and A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015;
normalisation after each convolution from S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.models.network import import_torch

__all__ = ["augment", "make", "normalise"]

WIDTHS = (32, 64, 128)
"""Channels of the three stages, two convolutions each; every stage halves the image."""

# Mean and standard deviation of the 50,000 training images, channel by channel, in units of a full pixel.
_MEAN = np.array([0.4914, 0.4822, 0.4465], dtype=np.float32).reshape(1, 3, 1, 1)
_DEVIATION = np.array([0.2470, 0.2435, 0.2616], dtype=np.float32).reshape(1, 3, 1, 1)

_PADDING = 4


def make() -> Any:
    """The untrained ``torch.nn.Sequential`` of 551,018 parameters: float32 (n, 3, 32, 32) in, logits (n, 10) out."""
    nn = import_torch().nn
    layers, channels = [], 3
    for width in WIDTHS:
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10))


def normalise(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """uint8 (n, 3, 32, 32) as float32 with mean 0 and deviation 1 over the training images: for evaluation."""
    scaled = np.ascontiguousarray(images, dtype=np.float32) / np.float32(255)
    result: NDArray[np.float32] = (scaled - _MEAN) / _DEVIATION
    return result


def augment(batch: Any) -> Any:
    """A training batch (n, 3, 32, 32), mirrored at random and cut at random from a margin of 4 (training only)."""
    torch = import_torch()
    flipped = torch.where(torch.rand(len(batch), 1, 1, 1) < 0.5, batch.flip(3), batch)
    padded = torch.nn.functional.pad(flipped, (_PADDING,) * 4)
    top, left = (int(torch.randint(0, 2 * _PADDING + 1, ())) for _ in range(2))
    height, width = batch.shape[2:]
    return padded[:, :, top : top + height, left : left + width]
