"""The weights of the lab's network in the forms that :mod:`deep_learning_cases.models.numpy_network` multiplies with.

What can be computed from the weights alone is computed when the model is loaded, as every inference engine does:

* A **bias** becomes one more row of a matrix, for an input that is always 1.
* relu(x + b) = max(x, -b) + b.  The max stays where it is, with -b as its *floor*; the constant b moves on into the
  next layer's bias, which spares an addition over the whole batch.
* A **3 x 3 filter** is laid out once for each of the four pixels of a pool window, so that one product gives all that a
  max-pool compares.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["Prepared"]

Array = NDArray[np.float32]


class Prepared:
    """The weights in the forms that the plans multiply with.

    "Pool" is the position in a pool window, 4; a "corner" is (row, column) of a quarter of the 4 x 4 image, 2 x 2.
    """

    def __init__(self, weights: Mapping[str, Array]) -> None:
        bias1, bias2, bias3, bias4 = (weights[f"{layer}_bias"] for layer in ("conv1", "conv2", "dense1", "dense2"))

        first = _in_pool_windows(weights["conv1_weight"])[:, :, 0]  # (pool, 16, 4, 4)
        ones = np.broadcast_to(bias1[:, None], (4, 16, 1))
        self.patches = np.concatenate([first.reshape(4, 16, 16), ones], axis=2)[:, None, None]
        """(pool, 1, 1, 16, 17): from 4 x 4 pixels and a one to 16 channels."""
        strip = np.zeros((4, 4, 10, 4, 16), np.float32)  # (pool, row, pixel, window, channel)
        for window in range(4):
            strip[:, :, 2 * window : 2 * window + 4, window] = first.transpose(0, 2, 3, 1)
        ones = np.broadcast_to(np.tile(bias1, 4), (4, 1, 64))
        self.strips = np.concatenate([strip[:, :, 1:9].reshape(4, 32, 64), ones], axis=1)
        """(pool, 33, 64): from 4 rows of 8 pixels and a one to 4 windows x 16 channels; most entries are zero."""

        second = weights["conv2_weight"]
        self.columns = np.ascontiguousarray(second.transpose(2, 3, 1, 0).reshape(144, 32))
        windows = _in_pool_windows(second).transpose(0, 3, 4, 2, 1)  # (pool, 4, 4, 16, 32)
        # The window of the upper left corner begins one pixel outside the image, the one of the lower right ends there.
        inside = (slice(1, 4), slice(0, 3))
        corners = np.stack([np.stack([windows[:, rows, columns] for columns in inside], 1) for rows in inside], 1)
        self.corners = np.ascontiguousarray(corners.reshape(4, 2, 2, 144, 32))
        self.corners_images_innermost = np.ascontiguousarray(self.corners.swapaxes(3, 4))

        # Features arrive as (row, column, channel), the weights expect (channel, row, column).
        dense1 = weights["dense1_weight"].reshape(96, 32, 4).transpose(2, 1, 0).reshape(128, 96)
        moved2 = np.tile(bias2, 4)
        moved3 = bias3 + moved2 @ dense1
        # One more hidden unit: its product is 0, its floor 1, so it is the one that carries the output's bias.
        self.dense1 = np.concatenate([dense1, np.zeros((128, 1), np.float32)], axis=1)
        self.dense1_images_innermost = np.ascontiguousarray(self.dense1.T)
        self.dense2 = np.concatenate([weights["dense2_weight"].T, [bias4 + weights["dense2_weight"] @ moved3]])
        self.floor2 = -moved2
        self.floor3 = np.append(-moved3, np.float32(1))


def _in_pool_windows(weight: Array) -> Array:
    """3 x 3 filters (out, in, 3, 3) placed for each pixel of a 2 x 2 pool window: (pool, out, in, 4, 4)."""
    windows = np.zeros((2, 2, *weight.shape[:2], 4, 4), np.float32)
    for row in (0, 1):
        for column in (0, 1):
            windows[row, column, :, :, row : row + 3, column : column + 3] = weight
    return windows.reshape(4, *windows.shape[2:])
