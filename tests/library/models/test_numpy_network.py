"""The planned network against the readable one, against float64 loops of layers, and against PyTorch; its buffers."""

import threading
import tracemalloc

import numpy as np
import pytest

from deep_learning_cases.errors import InputError
from deep_learning_cases.models import conv, numpy_network
from deep_learning_cases.models.numpy_network import COLUMNS_UP_TO, IMAGES_INNERMOST_FROM, LARGEST_BLOCK, PlannedNetwork

EDGES = {size + more for size in (COLUMNS_UP_TO, IMAGES_INNERMOST_FROM, LARGEST_BLOCK) for more in (-1, 0, 1)}
SIZES = sorted(EDGES | {1, 2, 7, 8, 31, 32, 100, 2 * LARGEST_BLOCK, 2 * LARGEST_BLOCK + 3})


def images_of(seed, n):
    return np.random.default_rng(seed).normal(0, 1, (n, 1, 8, 8)).astype(np.float32)


def weights_of(seed, bias=0.3):
    """Random weights; a large ``bias`` of either sign makes ReLU cut whole channels, or none."""
    rng = np.random.default_rng(seed)
    spread = {name: bias if name.endswith("bias") else 0.3 for name in conv.WEIGHT_SHAPES}
    return {name: rng.normal(0, spread[name], shape).astype(np.float32) for name, shape in conv.WEIGHT_SHAPES.items()}


def in_float64(weights, images):
    """The layers of ``conv`` one after the other, and beside the logits the largest number on the way."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    x = images.astype(np.float64)
    largest = 0.0
    for layer in ("conv1", "conv2"):
        x = conv.conv2d(x, w[f"{layer}_weight"], w[f"{layer}_bias"], padding=1)
        largest = max(largest, float(np.abs(x).max()))
        x = conv.max_pool2d(conv.relu(x), 2)
    x = conv.relu(conv.dense(x.reshape(len(x), -1), w["dense1_weight"], w["dense1_bias"]))
    logits = conv.dense(x, w["dense2_weight"], w["dense2_bias"])
    return logits, max(largest, float(np.abs(x).max()), float(np.abs(logits).max()))


def tolerance(largest):
    """Four sums of at most 144 terms, each term's rounding below eps times the largest number on the way."""
    return 4 * 144 * np.finfo(np.float32).eps * largest


@pytest.mark.parametrize("bias", [0.0, 0.3, 30.0])
@pytest.mark.parametrize("n", SIZES)
def test_it_equals_the_layers_one_after_the_other_at_every_batch_size(n, bias):
    weights, images = weights_of(n, bias), images_of(n, n)
    expected, largest = in_float64(weights, images)
    logits = PlannedNetwork(weights)(images)
    assert logits.shape == (n, 10)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, rtol=0, atol=tolerance(largest))


@pytest.mark.parametrize("n", [1, 5, 8, 33, 128])
def test_it_equals_pytorch(n):
    pytest.importorskip("torch")
    from deep_learning_cases.models import network

    weights, images = weights_of(n), images_of(n, n)
    expected = network.logits(network.from_weights(weights), images)
    _, largest = in_float64(weights, images)
    np.testing.assert_allclose(PlannedNetwork(weights)(images), expected, rtol=0, atol=2 * tolerance(largest))


@pytest.mark.parametrize("n", [1, 8, 40])
def test_a_lit_pixel_at_each_place_reaches_the_logits_as_it_should(n):
    """The borders are where windows hang over the edge: every pixel in turn, alone."""
    weights = weights_of(5)
    model = PlannedNetwork(weights)
    pixels = np.eye(64, dtype=np.float32).reshape(64, 1, 8, 8) * 4
    expected, largest = in_float64(weights, pixels)
    logits = np.concatenate([model(np.resize(pixels[i : i + n], (n, 1, 8, 8)))[: 64 - i] for i in range(0, 64, n)])
    np.testing.assert_allclose(logits, expected, rtol=0, atol=tolerance(largest))


def test_results_do_not_depend_on_earlier_calls_and_are_never_overwritten(random_weights):
    model = PlannedNetwork(random_weights)
    batches = [images_of(seed, n) for seed, n in enumerate([40, 1, 8, 40, 1, 3, 8, 150])]
    results = [model(batch) for batch in batches]
    copies = [result.copy() for result in results]
    for batch, copy in zip(batches, copies, strict=True):
        assert np.array_equal(PlannedNetwork(random_weights)(batch), copy)
        model(batch[::-1])
    assert all(np.array_equal(*pair) for pair in zip(results, copies, strict=True))
    assert all(result.flags.owndata and result.flags.writeable for result in results)


def test_nan_in_one_image_stays_in_that_image(random_weights):
    model = PlannedNetwork(random_weights)
    for n in (3, 10, 20):
        images = images_of(n, n)
        clean = model(images)
        images[1, 0, 4, 4] = np.nan
        dirty = model(images)
        assert np.isnan(dirty[1]).all()
        assert np.array_equal(np.delete(dirty, 1, axis=0), np.delete(clean, 1, axis=0))
        images[1] = 0
        assert np.isfinite(model(images)).all()


@pytest.mark.parametrize("n", [1, 4, 8, 32, 128])
def test_a_warm_call_allocates_its_result_and_nothing_else_of_size(n, random_weights):
    model, images = PlannedNetwork(random_weights), images_of(0, n)
    model(images)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        logits = model(images)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= logits.nbytes + 4096  # views and Python objects; one buffer of 8 images has 8 kB


def test_a_first_call_is_seen_by_the_same_measurement(random_weights):
    """Else the test above could pass for a reason of its own."""
    tracemalloc.start()
    try:
        PlannedNetwork(random_weights)(images_of(0, 32))
        assert tracemalloc.get_traced_memory()[1] > 400_000
    finally:
        tracemalloc.stop()


def test_ever_new_batch_sizes_hold_bounded_memory(random_weights):
    model = PlannedNetwork(random_weights)
    for n in range(1, LARGEST_BLOCK + 1):
        assert np.array_equal(model(images_of(n, n)), PlannedNetwork(random_weights)(images_of(n, n)))
    assert len(model._plans.by_size) == numpy_network.KEPT_PLANS


@pytest.mark.slow
def test_threads_share_one_network_without_mixing_their_images(random_weights):
    model = PlannedNetwork(random_weights)
    work = [(images, model(images)) for images in (images_of(seed, n) for seed, n in enumerate([1, 8, 8, 64, 64, 100]))]
    start, wrong = threading.Barrier(len(work)), []

    def repeat(images, expected):
        start.wait()
        wrong.extend(turn for turn in range(150) if not np.array_equal(model(images), expected))

    threads = [threading.Thread(target=repeat, args=pair) for pair in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_any_memory_layout_of_the_images_will_do_and_they_are_left_alone(random_weights):
    model = PlannedNetwork(random_weights)
    for n in (2, 9, 20):
        images = images_of(n, 2 * n)[::2]
        expected = model(np.ascontiguousarray(images))
        images.flags.writeable = False
        assert np.array_equal(model(images), expected)
        assert np.array_equal(model(np.asfortranarray(images)), expected)


def test_the_weights_are_copied():
    weights = weights_of(1)
    model, images = PlannedNetwork(weights), images_of(1, 4)
    expected = model(images)
    for array in weights.values():
        array[...] = 7
    assert np.array_equal(model(images), expected)


def test_an_empty_batch_is_refused(random_weights):
    with pytest.raises(InputError, match="the batch holds no image"):
        PlannedNetwork(random_weights)(np.zeros((0, 1, 8, 8), np.float32))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            np.zeros((1, 3, 8, 8), np.float32),
            r"the images are float32 of shape \(1, 3, 8, 8\): expected a float32 array",
        ),
        (np.zeros((1, 8, 8), np.float32), r"of shape \(1, 8, 8\)"),
        (np.zeros((1, 1, 8, 9), np.float32), r"of shape \(1, 1, 8, 9\)"),
        (np.zeros((), np.float32), r"of shape \(\)"),
        (np.zeros((1, 1, 8, 8)), "the images are float64"),
        (np.zeros((1, 1, 8, 8), np.uint8), "the images are uint8"),
        ([[1.0]], "the images are list"),
        (None, "the images are NoneType"),
    ],
)
def test_wrong_images_are_one_line_with_what_was_expected(images, message, random_weights):
    with pytest.raises(InputError, match=message) as caught:
        PlannedNetwork(random_weights)(images)
    assert r"(n, 1, 8, 8)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_another_network_are_refused(random_weights):
    with pytest.raises(InputError, match="the weights are"):
        PlannedNetwork({"conv1_weight": random_weights["conv1_weight"]})


def test_the_number_of_multiplications_is_that_of_the_layers():
    outputs = {"conv1": 64, "conv2": 16, "dense1": 1, "dense2": 1}
    total = sum(outputs[layer] * np.prod(conv.WEIGHT_SHAPES[f"{layer}_weight"]) for layer in outputs)
    assert total == numpy_network.MULTIPLICATIONS


def test_the_number_of_numpy_calls_is_counted_per_block(random_weights):
    model = PlannedNetwork(random_weights)
    one, block = model.numpy_calls(1), model.numpy_calls(LARGEST_BLOCK)
    assert 10 <= block <= one <= 20
    assert model.numpy_calls(2 * LARGEST_BLOCK + 1) == 2 * block + one - 2  # the result is allocated once
