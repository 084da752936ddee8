"""Convolution, pooling and dense layers in NumPy: what an inference engine does, in a form that can be read.

A convolution becomes one matrix product.  Every output pixel needs the input pixels under its window, so those windows
are laid side by side as the columns of a matrix ("im2col"), and the filters are the rows of another.  As in every
deep-learning library the filter is not flipped: mathematically this is a cross-correlation.
Source: Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006.

Images are (n, channels, height, width), "NCHW".  All arrays of one call share one dtype, float32 or float64.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models.data import check_not_empty

__all__ = [
    "WEIGHT_SHAPES",
    "Network",
    "Workspace",
    "check_weights",
    "conv2d",
    "dense",
    "max_pool2d",
    "relu",
]

Array = NDArray[Any]
Pair = int | tuple[int, int]
"""One number for both directions, or (vertical, horizontal)."""

WEIGHT_SHAPES = {
    "conv1_weight": (16, 1, 3, 3),
    "conv1_bias": (16,),
    "conv2_weight": (32, 16, 3, 3),
    "conv2_bias": (32,),
    "dense1_weight": (96, 128),
    "dense1_bias": (96,),
    "dense2_weight": (10, 96),
    "dense2_bias": (10,),
}
"""The lab's network: 18,154 numbers in eight arrays.  Convolutions are (out, in, height, width), dense (out, in)."""


class Workspace:
    """Buffers kept from call to call, so that a warm call allocates no columns.  Not for two threads at once.

    A smaller batch uses the beginning of a larger one's buffer, so that what is kept does not grow with the number of
    different batch sizes, only with the largest.
    """

    KEPT = 8
    """Different images (channels, height, width) with a buffer of zeros; one more takes the place of the oldest."""

    def __init__(self) -> None:
        self._zeros: dict[tuple[str, tuple[int, ...], np.dtype[Any]], Array] = {}
        self._columns: dict[np.dtype[Any], Array] = {}

    def zeros(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A buffer (n, ...) that was all zeros when first handed out, and afterwards holds what its users left in it.

        Users of one name and one shape beyond n share it.
        """
        key = (name, shape[1:], dtype)
        buffer = self._zeros.get(key)
        if buffer is None or len(buffer) < shape[0]:
            self._zeros.pop(key, None)
            if len(self._zeros) >= self.KEPT:
                del self._zeros[next(iter(self._zeros))]
            buffer = self._zeros[key] = np.zeros(shape, dtype)
        return buffer[: shape[0]]

    def columns(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A buffer that holds anything, to be filled before it is read; all layers' columns share its memory."""
        size = math.prod(shape)
        buffer = self._columns.get(dtype)
        if buffer is None or buffer.size < size:
            buffer = self._columns[dtype] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    workspace: Workspace | None = None,
) -> Array:
    """2-D convolution of ``x`` (n, c, h, w) with ``weight`` (out, c / groups, kh, kw) and ``bias`` (out,).

    Returns (n, out, oh, ow) with oh = floor((h + 2 padding - dilation (kh - 1) - 1) / stride) + 1, ow likewise; zeros
    are padded.  With ``groups`` the channels fall into that many independent parts.  InputError for a wrong rank,
    dtype or number of channels, a bias of another shape, a setting out of range, or a window larger than the image.
    """
    _check_array("x", x, 4)
    _check_array("weight", weight, 4, x.dtype)
    stride, padding, dilation = _pair("stride", stride, 1), _pair("padding", padding, 0), _pair("dilation", dilation, 1)
    out_channels, _, kh, kw = weight.shape
    _check_channels(x, weight, bias, groups)
    oh, ow = _output_size(x.shape[2:], (kh, kw), stride, padding, dilation)
    workspace = workspace or Workspace()

    padded = _pad(x, padding, workspace)
    window = (dilation[0] * (kh - 1) + 1, dilation[1] * (kw - 1) + 1)
    # (n, c, oh, ow, kh, kw): a view of the same memory in which neighbouring windows overlap; nothing is copied yet.
    windows = sliding_window_view(padded, window, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]

    n, channels = x.shape[:2]
    depth = channels // groups * kh * kw
    columns = workspace.columns((channels, kh, kw, n, oh, ow), x.dtype)
    columns[...] = windows.transpose(1, 4, 5, 0, 2, 3)
    filters = weight.reshape(groups, out_channels // groups, depth)
    product = np.matmul(filters, columns.reshape(groups, depth, n * oh * ow))  # one matrix product per group

    y = product.reshape(out_channels, n, oh, ow)
    if bias is not None:
        y += bias.reshape(-1, 1, 1, 1)
    return np.ascontiguousarray(y.transpose(1, 0, 2, 3))


def max_pool2d(x: Array, kernel: Pair, stride: Pair | None = None, padding: Pair = 0) -> Array:
    """The largest value of each window of ``x`` (n, c, h, w); ``stride`` is the kernel's size unless given.

    Padding counts as minus infinity and is at most half the kernel.  Returns (n, c, oh, ow); errors as :func:`conv2d`.
    """
    slices, _ = _pool_slices(x, kernel, stride, padding, -np.inf)
    y = slices[0].copy()
    for values in slices[1:]:
        np.maximum(y, values, out=y)
    return y


def dense(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``: (n, inputs), (outputs, inputs) and (outputs,) give (n, outputs).

    InputError for arrays of other ranks, dtypes or lengths.
    """
    _check_array("x", x, 2)
    _check_array("weight", weight, 2, x.dtype)
    if weight.shape[1] != x.shape[1]:
        raise InputError(
            f"weight takes {weight.shape[1]} inputs and x has {x.shape[1]}: expected weight (outputs, {x.shape[1]}); "
            "check the order of its axes"
        )
    y: Array = x @ weight.T
    if bias is not None:
        _check_bias(bias, weight)
        y += bias
    return y


def relu(x: Array) -> Array:
    """The positive part of ``x`` (any shape), as a new array."""
    positive: Array = np.maximum(x, x.dtype.type(0))
    return positive


class Network:
    """The lab's CNN: conv 3x3, ReLU, max-pool 2, twice; then dense 128 -> 96, ReLU, dense 96 -> 10.

    Written to be read, one layer after the other, and not for two threads at once.  What makes the same network several
    times faster is in :mod:`deep_learning_cases.models.numpy_network`, the one that the NumPy engine runs.
    """

    def __init__(self, weights: Mapping[str, Array]) -> None:
        """Keep the eight arrays of :data:`WEIGHT_SHAPES`; InputError for other names, shapes or dtypes."""
        check_weights(weights)
        self._weights = dict(weights)
        self._workspace = Workspace()

    def __call__(self, images: Array) -> Array:
        """Logits (n, 10) of ``images`` float32 (n, 1, 8, 8), n at least 1; InputError for another shape or dtype."""
        check_not_empty(images)
        w = self._weights
        x = images
        for layer in ("conv1", "conv2"):
            x = conv2d(x, w[f"{layer}_weight"], w[f"{layer}_bias"], padding=1, workspace=self._workspace)
            x = max_pool2d(relu(x), 2)
        x = relu(dense(x.reshape(len(x), w["dense1_weight"].shape[1]), w["dense1_weight"], w["dense1_bias"]))
        return dense(x, w["dense2_weight"], w["dense2_bias"])


def check_weights(weights: Mapping[str, Array]) -> None:
    """InputError unless ``weights`` are the float32 arrays of :data:`WEIGHT_SHAPES` and finite."""
    if set(weights) != set(WEIGHT_SHAPES):
        raise InputError(
            f"the weights are {', '.join(sorted(weights)) or 'empty'}: expected {', '.join(sorted(WEIGHT_SHAPES))}; "
            "save the network again"
        )
    for name, shape in WEIGHT_SHAPES.items():
        array = weights[name]
        if array.shape != shape or array.dtype != np.float32:
            raise InputError(
                f"{name} is {array.dtype} of shape {array.shape}: expected float32 of shape {shape}; "
                "save the network again"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{name} holds NaN or Infinity: expected finite numbers; train the network again")


def _pad(x: Array, padding: tuple[int, int], workspace: Workspace) -> Array:
    if padding == (0, 0):
        return x
    n, channels, height, width = x.shape
    ph, pw = padding
    # The name holds the padding, so that whoever shares this buffer writes to the same pixels: its borders stay zero.
    padded = workspace.zeros(f"padded by {padding}", (n, channels, height + 2 * ph, width + 2 * pw), x.dtype)
    padded[:, :, ph : ph + height, pw : pw + width] = x
    return padded


def _pool_slices(x: Array, kernel: Pair, stride: Pair | None, padding: Pair, fill: float) -> tuple[list[Array], int]:
    """One view of shape (n, c, oh, ow) per window position: pooling is then a reduction over a short list."""
    _check_array("x", x, 4)
    kh, kw = _pair("kernel", kernel, 1)
    sh, sw = _pair("stride", kernel if stride is None else stride, 1)
    ph, pw = _pair("padding", padding, 0)
    if 2 * ph > kh or 2 * pw > kw:
        raise InputError(f"padding is ({ph}, {pw}): expected at most half the kernel ({kh}, {kw}); pad less")
    oh, ow = _output_size(x.shape[2:], (kh, kw), (sh, sw), (ph, pw), (1, 1))
    if (ph, pw) != (0, 0):
        x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=fill)
    slices = [
        x[:, :, row : row + (oh - 1) * sh + 1 : sh, column : column + (ow - 1) * sw + 1 : sw]
        for row in range(kh)
        for column in range(kw)
    ]
    return slices, kh * kw


def _output_size(
    size: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
) -> tuple[int, int]:
    room = [size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 for i in (0, 1)]
    if min(room) < 0:
        raise InputError(
            f"a window of {kernel} with dilation {dilation} does not fit {tuple(size)} pixels padded by {padding}: "
            "expected a window no larger than the padded image; pad more"
        )
    return room[0] // stride[0] + 1, room[1] // stride[1] + 1


def _check_array(name: str, array: Array, rank: int, dtype: np.dtype[Any] | None = None) -> None:
    if not isinstance(array, np.ndarray):
        raise InputError(f"{name} is {type(array).__name__}: expected a NumPy array; convert it with numpy.asarray")
    if array.ndim != rank or 0 in array.shape[1:]:
        axes = "(n, channels, height, width)" if rank == 4 else "(n, features)"
        raise InputError(f"{name} has shape {array.shape}: expected {axes}, none empty but n; reshape it")
    if array.dtype not in (np.float32, np.float64) or (dtype is not None and array.dtype != dtype):
        expected = "float32 or float64" if dtype is None else f"{dtype} as x has"
        raise InputError(f"{name} is {array.dtype}: expected {expected}; convert it with astype")


def _check_channels(x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    if len(weight) % whole(groups, "groups"):
        raise InputError(f"groups is {groups!r}: expected a whole number that divides {len(weight)} filters; change it")
    if x.shape[1] != weight.shape[1] * groups:
        raise InputError(
            f"x has {x.shape[1]} channels and weight takes {weight.shape[1]} in {groups} group(s): expected "
            f"{weight.shape[1] * groups} channels; check the order of the axes"
        )
    if bias is not None:
        _check_bias(bias, weight)


def _check_bias(bias: Array, weight: Array) -> None:
    if bias.shape != (len(weight),) or bias.dtype != weight.dtype:
        raise InputError(
            f"bias is {bias.dtype} of shape {bias.shape}: expected {weight.dtype} of shape ({len(weight)},), "
            "one number a filter; reshape or convert it"
        )


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise InputError(f"{name} is {value!r}: expected a whole number of at least {least}, or two; change it")
    return whole(pair[0], name, least), whole(pair[1], name, least)
