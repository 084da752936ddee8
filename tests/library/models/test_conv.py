"""The fast convolution against a slow one that is obviously right, against hand arithmetic, and against PyTorch."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep_learning_cases.errors import InputError
from deep_learning_cases.models import conv


def seven_loops(x, weight, bias, stride, padding, dilation, groups):
    """The definition: one loop an index, in float64; padded pixels are skipped, as they add nothing."""
    n, _, h, w = x.shape
    out_channels, depth, kh, kw = weight.shape
    oh = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, out_channels, oh, ow))
    for image in range(n):
        for out in range(out_channels):
            group = out // (out_channels // groups)
            for i in range(oh):
                for j in range(ow):
                    total = float(bias[out]) if bias is not None else 0.0
                    for channel in range(depth):
                        for di in range(kh):
                            for dj in range(kw):
                                row = i * stride[0] + di * dilation[0] - padding[0]
                                column = j * stride[1] + dj * dilation[1] - padding[1]
                                if 0 <= row < h and 0 <= column < w:
                                    pixel = float(x[image, group * depth + channel, row, column])
                                    total += pixel * float(weight[out, channel, di, dj])
                    y[image, out, i, j] = total
    return y


@st.composite
def convolutions(draw):
    """Arguments of ``conv2d`` whose window fits the padded image."""
    integer = st.integers
    groups = draw(integer(1, 3))
    kernel, stride, padding, dilation, room = (
        (draw(integer(low, high)), draw(integer(low, high))) for low, high in ((1, 3), (1, 3), (0, 2), (1, 3), (0, 4))
    )
    size = [max(1, dilation[i] * (kernel[i] - 1) + 1 + room[i] - 2 * padding[i]) for i in (0, 1)]
    rng = np.random.default_rng(draw(integer(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    depth = draw(integer(1, 3))
    out_channels = groups * draw(integer(1, 3))
    x = rng.normal(size=(draw(integer(1, 3)), groups * depth, *size)).astype(dtype)
    weight = rng.normal(size=(out_channels, depth, *kernel)).astype(dtype)
    bias = rng.normal(size=out_channels).astype(dtype) if draw(st.booleans()) else None
    if draw(st.booleans()):
        x = np.asfortranarray(x)  # the result may not depend on how the memory is laid out
    return x, weight, bias, stride, padding, dilation, groups


def tolerance(x, weight, bias):
    """A sum of K products is off by at most about K roundings of the sum of their sizes (Higham, 2002, section 3.1)."""
    terms = weight[0].size + 1
    size = np.abs(x).max() * np.abs(weight).reshape(len(weight), -1).sum(axis=1).max()
    if bias is not None:
        size += np.abs(bias).max()
    return 2 * terms * np.finfo(x.dtype).eps * float(size)


@settings(max_examples=150, deadline=None)
@given(convolutions())
def test_conv2d_equals_the_seven_loop_definition(arguments):
    x, weight, bias, *rest = arguments
    y = conv.conv2d(x, weight, bias, *rest)
    expected = seven_loops(x, weight, bias, *rest)
    assert y.dtype == x.dtype
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance(x, weight, bias))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_conv2d_equals_pytorch(arguments):
    torch = pytest.importorskip("torch")
    x, weight, bias, *rest = arguments
    tensors = [None if array is None else torch.from_numpy(np.ascontiguousarray(array)) for array in (x, weight, bias)]
    expected = torch.nn.functional.conv2d(*tensors, *rest).numpy()
    np.testing.assert_allclose(
        conv.conv2d(x, weight, bias, *rest), expected, rtol=0, atol=2 * tolerance(x, weight, bias)
    )


def test_a_three_by_three_case_worked_by_hand():
    """No symmetry in the filter, so a flipped or a transposed one shows.

    Upper left: 1*1 + 2*2 + 4*3 + 5*4 = 37, and the bias 10 makes 47; one pixel right 2*1 + 3*2 + 5*3 + 6*4 = 47.
    """
    x = np.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    weight = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    y = conv.conv2d(x, weight, np.array([10.0]))
    assert y.tolist() == [[[[47.0, 57.0], [77.0, 87.0]]]]


def test_padding_stride_and_dilation_worked_by_hand():
    x = np.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    weight = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    # Padded by one, every second window: only its lower right pixel (4*1), its lower pixels (3*2 + 4*3), ...
    assert conv.conv2d(x, weight, padding=1, stride=2).tolist() == [[[[4.0, 18.0], [36.0, 77.0]]]]
    # Dilation 2 takes the four corners: 1*1 + 2*3 + 3*7 + 4*9.
    assert conv.conv2d(x, weight, dilation=2).tolist() == [[[[64.0]]]]


def test_the_two_directions_are_not_mixed_up():
    x = np.zeros((1, 1, 6, 9))
    assert conv.conv2d(x, np.zeros((1, 1, 3, 1)), stride=(1, 2), padding=(0, 1)).shape == (1, 1, 4, 6)


def test_groups_keep_channels_apart():
    x = np.stack([np.full((2, 2), 1.0), np.full((2, 2), 10.0)])[None]
    weight = np.array([2.0, 3.0]).reshape(2, 1, 1, 1)
    assert conv.conv2d(x, weight, groups=2)[0, :, 0, 0].tolist() == [2.0, 30.0]


def test_a_workspace_changes_nothing_whatever_it_was_used_for_before():
    rng = np.random.default_rng(0)
    workspace = conv.Workspace()
    for _ in range(3):
        for n, size, padding in ((2, 5, 1), (2, 3, 2), (1, 5, 1), (2, 5, 0)):
            x, weight = rng.normal(size=(n, 2, size, size)), rng.normal(size=(3, 2, 3, 3))
            kept = conv.conv2d(x, weight, padding=padding, workspace=workspace)
            assert np.array_equal(kept, conv.conv2d(x, weight, padding=padding))


def test_a_workspace_does_not_grow_with_the_number_of_batch_sizes():
    def kept(sizes) -> int:
        workspace, weight = conv.Workspace(), np.ones((3, 2, 3, 3))
        tracemalloc.start()
        for n in sizes:
            conv.conv2d(np.ones((n, 2, 6, 6)), weight, padding=1, workspace=workspace)
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return size

    assert kept(range(1, 65)) < 1.1 * kept([64]) + 10_000
    assert kept(range(64, 0, -1)) < 1.1 * kept([64]) + 10_000


def test_a_workspace_keeps_zeros_for_a_few_kinds_of_images_only():
    workspace, weight = conv.Workspace(), np.ones((1, 1, 3, 3))
    for size in [*range(3, 40), *range(3, 40)]:
        x = np.random.default_rng(size).normal(size=(2, 1, size, size))
        kept = conv.conv2d(x, weight, padding=1, workspace=workspace)
        assert np.array_equal(kept, conv.conv2d(x, weight, padding=1))
    assert len(workspace._zeros) == conv.Workspace.KEPT


def test_a_network_refuses_a_batch_of_none(random_weights):
    with pytest.raises(InputError, match=r"the batch holds no image \(shape \(0, 1, 8, 8\)\): expected at least one"):
        conv.Network(random_weights)(np.zeros((0, 1, 8, 8), np.float32))


def test_a_result_is_not_overwritten_by_the_next_call():
    workspace, weight = conv.Workspace(), np.ones((1, 1, 3, 3))
    first = conv.conv2d(np.ones((1, 1, 4, 4)), weight, padding=1, workspace=workspace)
    before = first.copy()
    conv.conv2d(np.full((1, 1, 4, 4), 7.0), weight, padding=1, workspace=workspace)
    assert np.array_equal(first, before)


def test_arguments_are_left_as_they_were():
    x, weight, bias = np.ones((1, 1, 4, 4)), np.ones((2, 1, 3, 3)), np.ones(2)
    for array in (x, weight, bias):
        array.flags.writeable = False
    conv.conv2d(x, weight, bias, padding=1)
    conv.max_pool2d(x, 2)
    conv.relu(x)
    conv.dense(x.reshape(1, 16), np.ones((2, 16)), bias)


def test_an_empty_batch_gives_an_empty_result():
    assert conv.conv2d(np.zeros((0, 1, 4, 4)), np.zeros((2, 1, 3, 3))).shape == (0, 2, 2, 2)


@st.composite
def pools(draw):
    kernel, stride, room = ((draw(st.integers(low, 3)), draw(st.integers(low, 3))) for low in (1, 1, 0))
    padding = (draw(st.integers(0, kernel[0] // 2)), draw(st.integers(0, kernel[1] // 2)))
    size = [max(1, kernel[i] + room[i] - 2 * padding[i]) for i in (0, 1)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.normal(size=(2, 3, *size)), kernel, stride, padding


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(pools())
def test_pooling_equals_pytorch(arguments):
    torch = pytest.importorskip("torch")
    x, *rest = arguments
    tensor = torch.from_numpy(x)
    assert np.array_equal(conv.max_pool2d(x, *rest), torch.nn.functional.max_pool2d(tensor, *rest).numpy())


def test_pooling_worked_by_hand():
    x = np.array([[1.0, -2.0, 5.0], [3.0, 4.0, -6.0]]).reshape(1, 1, 2, 3)
    assert conv.max_pool2d(x, 2, stride=1).tolist() == [[[[4.0, 5.0]]]]
    assert conv.max_pool2d(x, 2).tolist() == [[[[4.0]]]]
    # Padding may not win over negative values: it is minus infinity, not zero.
    assert conv.max_pool2d(-np.ones((1, 1, 2, 2)), 2, padding=1).tolist() == [[[[-1.0, -1.0], [-1.0, -1.0]]]]


def test_dense_and_relu_worked_by_hand():
    x, weight = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [-5.0, 1.0], [0.0, 0.0]])
    assert conv.dense(x, weight, np.array([0.5, 0.0, -1.0])).tolist() == [[11.5, -3.0, -1.0]]
    assert conv.dense(x, weight).tolist() == [[11.0, -3.0, 0.0]]
    positive = conv.relu(np.array([-1.5, 0.0, 2.0], np.float32))
    assert positive.tolist() == [0.0, 0.0, 2.0]
    assert positive.dtype == np.float32


X, W = np.zeros((1, 2, 5, 5)), np.zeros((4, 2, 3, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv.conv2d(X[0], W), r"x has shape \(2, 5, 5\)"),
        (lambda: conv.conv2d([[1]], W), "x is list"),
        (lambda: conv.conv2d(X.astype(int), W), "x is int64: expected float32 or float64"),
        (lambda: conv.conv2d(X.astype(np.float16), W), "x is float16"),
        (lambda: conv.conv2d(X, W.astype(np.float32)), "weight is float32: expected float64 as x has"),
        (lambda: conv.conv2d(X, W[:, :1]), r"x has 2 channels and weight takes 1 in 1 group\(s\): expected 1 channels"),
        (lambda: conv.conv2d(X, W[:, :, 0]), "weight has shape"),
        (lambda: conv.conv2d(X, W, np.zeros(3)), r"bias is float64 of shape \(3,\): expected float64 of shape \(4,\)"),
        (lambda: conv.conv2d(X, W, np.zeros(4, np.float32)), "bias is float32"),
        (lambda: conv.conv2d(X, W, groups=3), "groups is 3: expected a whole number that divides 4"),
        (lambda: conv.conv2d(X, W, groups=0), "groups is 0"),
        (lambda: conv.conv2d(X, W, stride=0), "stride is 0: expected a whole number of at least 1"),
        (lambda: conv.conv2d(X, W, stride=True), "stride is True"),
        (lambda: conv.conv2d(X, W, padding=-1), "padding is -1: expected a whole number of at least 0"),
        (lambda: conv.conv2d(X, W, padding="same"), "padding is 'same'"),
        (lambda: conv.conv2d(X, W, padding=None), "padding is None"),
        (lambda: conv.conv2d(X, W, dilation=(1, 2, 3)), r"dilation is \(1, 2, 3\)"),
        (lambda: conv.conv2d(X, W, dilation=3), r"a window of \(3, 3\) with dilation \(3, 3\) does not fit \(5, 5\)"),
        (lambda: conv.max_pool2d(X, 6), r"a window of \(6, 6\)"),
        (lambda: conv.max_pool2d(X, 2, padding=2), "at most half the kernel"),
        (lambda: conv.max_pool2d(X, 0), "kernel is 0"),
        (lambda: conv.dense(X, W), r"x has shape \(1, 2, 5, 5\): expected \(n, features\)"),
        (lambda: conv.dense(np.zeros((1, 3)), np.zeros((2, 4))), "weight takes 4 inputs and x has 3"),
        (lambda: conv.dense(np.zeros((1, 3)), np.zeros((2, 3)), np.zeros((2, 1))), "bias is float64 of shape"),
    ],
)
def test_a_wrong_argument_is_one_line_with_the_value_and_what_was_expected(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_network_has_the_documented_number_of_parameters(random_weights):
    assert sum(array.size for array in random_weights.values()) == 18_154


def test_the_network_equals_pytorch_and_does_not_depend_on_earlier_calls(random_weights, random_images):
    pytest.importorskip("torch")
    from deep_learning_cases.models import network

    expected = network.logits(network.from_weights(random_weights), random_images)
    model = conv.Network(random_weights)
    largest = float(np.abs(expected).max())
    for n in (40, 1, 40, 3):
        difference = np.abs(model(random_images[:n]) - expected[:n]).max()
        assert difference <= 144 * np.finfo(np.float32).eps * 8 * largest


def test_the_network_refuses_weights_that_are_not_its_own(random_weights):
    without = {name: array for name, array in random_weights.items() if name != "conv2_bias"}
    with pytest.raises(InputError, match=r"the weights are .*: expected conv1_bias"):
        conv.Network(without)
    with pytest.raises(InputError, match=r"dense1_weight is float32 of shape \(128, 96\): expected float32 of"):
        conv.Network({**random_weights, "dense1_weight": random_weights["dense1_weight"].T})
    broken = random_weights["conv1_bias"].copy()
    broken[3] = np.nan
    with pytest.raises(InputError, match="conv1_bias holds NaN"):
        conv.Network({**random_weights, "conv1_bias": broken})
    with pytest.raises(InputError, match="x has 3 channels"):
        conv.Network(random_weights)(np.zeros((1, 3, 8, 8), np.float32))
