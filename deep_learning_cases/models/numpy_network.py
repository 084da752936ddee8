"""The lab's network as an inference engine runs it: planned once, then a short list of calls on the same buffers.

:class:`deep_learning_cases.models.conv.Network` computes the same logits layer by layer and is the one to read first.
Here are the reasons why engines are faster than that, each in a few lines:

* **Weights are prepared once**: see :mod:`deep_learning_cases.models.numpy_weights`.
* **Buffers are planned once per batch size.**  A plan holds the memory, the views into it and the calls with all their
  arguments; running it allocates nothing.  At batch 1 the cost of a NumPy call matters more than the arithmetic.
* **Layout.**  The four pixels that a max-pool compares are computed into four separate blocks, so that pooling is
  three calls on flat memory.  Pooling comes first and ReLU after it, on a quarter of the numbers: both only compare.
* **The kernel depends on the shape.**  With few images the channels lie innermost in memory, with many the images do:
  vector registers are filled from whichever is longer.  The second convolution has two forms (below).
* **Blocks.**  A large batch is cut so that the buffers stay in the cache, and no product is so large that BLAS packs
  its operands first.

The second convolution as *columns* ("im2col") copies nine inputs for each output: the weights stay tiny.  As *corners*
it needs no such copy: of a 4 x 4 image, the 2 x 2 outputs of one pool window see only a 3 x 3 corner, 144 numbers
in, 128 out, each corner with its own matrix and not a multiplication more.  Columns win for a handful of images.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError
from deep_learning_cases.models.conv import check_weights
from deep_learning_cases.models.data import check_not_empty
from deep_learning_cases.models.numpy_weights import Prepared

__all__ = ["MULTIPLICATIONS", "PlannedNetwork"]

Array = NDArray[np.float32]
Step = Callable[[], None]

MULTIPLICATIONS = 64 * 9 * 16 + 16 * 144 * 32 + 128 * 96 + 96 * 10
"""Of one image, in the two convolutions and the two dense layers: 96,192."""

COLUMNS_UP_TO = 4
"""The largest batch whose second convolution runs on columns; from the next on, corners.  Measured."""

IMAGES_INNERMOST_FROM = 16
"""The smallest batch that lies images innermost: 16 float32 fill a vector register of AVX-512."""

LARGEST_BLOCK = 64
"""A larger batch runs in parts.  Buffers of 64 images take 0.9 MB, about one core's second-level cache."""

KEPT_PLANS = 8
"""Plans kept per thread; the oldest goes first, so that a stream of ever new batch sizes holds bounded memory."""

_IMAGE, _FLOAT32 = (1, 8, 8), np.dtype(np.float32)


class PlannedNetwork:
    """The lab's CNN with everything planned; the same numbers as :class:`deep_learning_cases.models.conv.Network`.

    Safe to call from several threads at once: each thread plans buffers of its own.  The logits are a new array each
    time, never a view of a buffer.
    """

    def __init__(self, weights: Mapping[str, Array]) -> None:
        """Prepare the arrays of :data:`conv.WEIGHT_SHAPES` (copied); InputError for other names, shapes or dtypes."""
        check_weights(weights)
        self._prepared = Prepared(weights)
        self._plans = _Plans()

    def __call__(self, images: Array) -> Array:
        """Logits float32 (n, 10) of ``images`` float32 (n, 1, 8, 8), n at least 1; InputError for anything else."""
        if not isinstance(images, np.ndarray) or images.dtype != _FLOAT32 or images.shape[1:] != _IMAGE:
            raise InputError(_not_images(images))
        n = len(images)
        if n == 0:
            check_not_empty(images)
        logits = np.empty((n, 10), _FLOAT32)
        if n <= LARGEST_BLOCK:
            self._plan(n).run(images, logits)
        else:
            for start in range(0, n, LARGEST_BLOCK):
                block = slice(start, min(start + LARGEST_BLOCK, n))
                self._plan(block.stop - start).run(images[block], logits[block])
        return logits

    def numpy_calls(self, n: int) -> int:
        """How many NumPy calls a batch of ``n`` images takes: the cost that a smaller network would not spare."""
        full, rest = divmod(n, LARGEST_BLOCK)
        return 1 + sum(self._plan(size).numpy_calls for size in [LARGEST_BLOCK] * full + [rest] * (rest > 0))

    def _plan(self, n: int) -> "Plan":
        plans = self._plans.by_size
        if n not in plans:
            if len(plans) >= KEPT_PLANS:
                del plans[next(iter(plans))]
            plans[n] = (images_innermost if n >= IMAGES_INNERMOST_FROM else channels_innermost)(n, self._prepared)
        return plans[n]


class _Plans(threading.local):
    """An attribute of each thread for itself: ``__init__`` runs once in every thread that looks."""

    def __init__(self) -> None:
        self.by_size: dict[int, Plan] = {}


class Plan:
    """Memory and calls for one batch size: ``pixels`` takes the images, ``steps`` lead to ``hidden``."""

    def __init__(self, pixels: Array, steps: list[Step], hidden: Array, dense2: Array) -> None:
        self._pixels, self._steps, self._hidden, self._dense2 = pixels, steps, hidden, dense2

    @property
    def numpy_calls(self) -> int:
        """The steps, the copy of the images before them and the product after them."""
        return len(self._steps) + 2

    def run(self, images: Array, logits: Array) -> None:
        """Fill ``logits`` (n, 10, contiguous) from ``images`` (n, 1, 8, 8)."""
        self._pixels[...] = images
        for step in self._steps:
            step()
        np.dot(self._hidden, self._dense2, out=logits)


def channels_innermost(n: int, prepared: Prepared) -> Plan:
    """The plan for few images: arrays are (image, row, column, channel)."""
    padded = np.zeros((n, 10, 8), np.float32)
    strips = np.ones((n, 4, 33), np.float32)
    product1 = np.empty((4, n * 4, 64), np.float32)
    pooled1, pooling1 = _pool_and_clamp(product1, np.zeros(n * 256, np.float32))
    image2 = pooled1.reshape(n, 4, 4, 16)

    if n <= COLUMNS_UP_TO:
        padded2 = np.zeros((n, 6, 6, 16), np.float32)
        columns = np.empty((2, 2, n, 2, 2, 3, 3, 16), np.float32)
        windows = sliding_window_view(padded2, (3, 3), axis=(1, 2)).reshape(n, 2, 2, 2, 2, 16, 3, 3, copy=False)
        product2 = np.empty((n * 16, 32), np.float32)
        second: list[Step] = [
            _copy(padded2[:, 1:5, 1:5], image2),
            _copy(columns, windows.transpose(2, 4, 0, 1, 3, 6, 7, 5)),
            _call(np.dot, columns.reshape(n * 16, 144), prepared.columns, product2),
        ]
    else:
        halves = np.empty((2, n, 4, 3, 16), np.float32)
        corners = sliding_window_view(halves, 3, axis=2).transpose(2, 0, 1, 5, 3, 4).reshape(2, 2, n, 144, copy=False)
        product2 = np.empty((4, n, 2, 2, 32), np.float32)
        second = [
            _copy(halves, sliding_window_view(image2, 3, axis=2).transpose(2, 0, 1, 4, 3)),
            _call(np.matmul, corners, prepared.corners, product2.transpose(0, 2, 3, 1, 4)),
        ]
    pooled2, pooling2 = _pool_and_clamp(product2, np.tile(prepared.floor2, n))

    hidden = np.empty((n, 97), np.float32)
    floor3 = np.tile(prepared.floor3, (n, 1))
    steps = [
        _copy(
            strips[:, :, :32].reshape(n, 4, 4, 8, copy=False), sliding_window_view(padded, (4, 8), (1, 2))[:, ::2, 0]
        ),
        _call(np.matmul, strips.reshape(n * 4, 33), prepared.strips, product1),
        *pooling1,
        *second,
        *pooling2,
        _call(np.dot, pooled2.reshape(n, 128), prepared.dense1, hidden),
        _call(np.maximum, hidden, floor3, hidden),
    ]
    return Plan(padded[:, None, 1:9], steps, hidden, prepared.dense2)


def images_innermost(n: int, prepared: Prepared) -> Plan:
    """The plan for many images: arrays are (row, column, channel, image)."""
    padded = np.zeros((10, 10, n), np.float32)
    patches = np.ones((4, 4, 17, n), np.float32)
    product1 = np.empty((4, 4, 4, 16, n), np.float32)
    pooled1, pooling1 = _pool_and_clamp(product1, np.zeros(256 * n, np.float32))

    halves = np.empty((2, 4, 3, 16, n), np.float32)
    corners = sliding_window_view(halves, 3, axis=1).transpose(1, 0, 5, 2, 3, 4).reshape(2, 2, 144, n, copy=False)
    product2 = np.empty((4, 2, 2, 32, n), np.float32)
    pooled2, pooling2 = _pool_and_clamp(product2, np.repeat(prepared.floor2, n))

    hidden = np.empty((97, n), np.float32)
    floor3 = np.repeat(prepared.floor3, n).reshape(97, n)
    windows = sliding_window_view(padded, (4, 4), axis=(0, 1))[::2, ::2]
    steps = [
        _copy(patches[:, :, :16].reshape(4, 4, 4, 4, n, copy=False), windows.transpose(0, 1, 3, 4, 2)),
        _call(np.matmul, prepared.patches, patches, product1),
        *pooling1,
        _copy(halves, sliding_window_view(pooled1.reshape(4, 4, 16, n), 3, axis=1).transpose(1, 0, 4, 2, 3)),
        _call(np.matmul, prepared.corners_images_innermost, corners, product2),
        *pooling2,
        _call(np.dot, prepared.dense1_images_innermost, pooled2.reshape(128, n), hidden),
        _call(np.maximum, hidden, floor3, hidden),
    ]
    return Plan(padded[1:9, 1:9].transpose(2, 0, 1)[:, None], steps, hidden.T, prepared.dense2)


def _call(function: Callable[..., Any], left: Array, right: Array, out: Array) -> Step:
    def step() -> None:
        function(left, right, out=out)

    return step


def _copy(target: Array, source: Array) -> Step:
    def step() -> None:
        target[...] = source

    return step


def _pool_and_clamp(product: Array, floor: Array) -> tuple[Array, list[Step]]:
    """The largest of four blocks, and at least ``floor``: max-pool and ReLU.  Returns the flat result and its steps.

    All operands are flat: on strided views the same calls take three times as long.
    """
    halfway = np.empty(product.size // 2, np.float32)
    pooled = np.empty(product.size // 4, np.float32)
    first, second = product.reshape(2, -1, copy=False)
    third, fourth = halfway.reshape(2, -1)
    steps = [
        _call(np.maximum, first, second, halfway),
        _call(np.maximum, third, fourth, pooled),
        _call(np.maximum, pooled, floor, pooled),
    ]
    return pooled, steps


def _not_images(images: object) -> str:
    if isinstance(images, np.ndarray):
        found = f"{images.dtype} of shape {images.shape}"
    else:
        found = type(images).__name__
    return f"the images are {found}: expected a float32 array of shape (n, 1, 8, 8); see data.normalise"
