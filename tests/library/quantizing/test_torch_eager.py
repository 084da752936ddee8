"""PyTorch's int8 behind its interface: what is made, which backend really runs, and that nothing stays changed."""

import importlib
import io
import re
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep_learning_cases import torch_quantization
from deep_learning_cases.errors import InputError, MeasurementError, MissingDependencyError
from deep_learning_cases.models import network
from deep_learning_cases.quantizing import int8_kernels

BUILT_IN = torch_quantization.built_in()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return network.make().eval()


@pytest.fixture(scope="module")
def images():
    return torch.from_numpy(np.random.default_rng(4).random((64, 1, 8, 8), dtype=np.float32))


def make(technique, model, images, backend):
    if technique == "dynamic":
        return torch_quantization.dynamic(model, backend)
    if technique == "static":
        return torch_quantization.static(model, images.split(16), backend)

    def fit(prepared):
        optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
        for batch in images.split(16):
            optimizer.zero_grad()
            prepared(batch).square().mean().backward()
            optimizer.step()

    return torch_quantization.qat(model, fit, backend)


@pytest.mark.slow
@pytest.mark.parametrize("technique", torch_quantization.TECHNIQUES)
@pytest.mark.parametrize("backend", BUILT_IN)
def test_a_saved_state_gives_the_same_network_back(technique, backend, model, images):
    quantized = make(technique, model, images, backend)
    saved = io.BytesIO()
    torch.save(quantized.state_dict(), saved)
    saved.seek(0)
    with torch_quantization.using(backend), torch.inference_mode():
        state = torch_quantization.load_state(saved)
        again = torch_quantization.rebuild(technique, network.make(), (1, 8, 8), state, backend)
        assert torch.equal(again(images), quantized(images))
    assert torch_quantization.state_sha256(again.state_dict()) == torch_quantization.state_sha256(
        quantized.state_dict()
    )


@pytest.mark.slow
def test_static_keeps_int8_everywhere_and_dynamic_in_dense_layers_alone(model, images):
    backend = torch_quantization.choose()
    static = make("static", model, images, backend).state_dict()
    dynamic = make("dynamic", model, images, backend).state_dict()
    assert static["1.weight"].dtype == torch.qint8
    assert dynamic["0.weight"].dtype == torch.float32
    assert dynamic["7._packed_params._packed_params"][0].dtype == torch.qint8
    sizes = [torch_quantization.tensor_bytes(state) for state in (static, dynamic, model.state_dict())]
    assert sizes == sorted(sizes)
    assert sizes[2] == 4 * 18_154
    assert sizes[0] < 0.4 * sizes[2]


@pytest.mark.slow
def test_int8_predictions_stay_near_the_float32_ones(model, images):
    backend = torch_quantization.choose()
    with torch_quantization.using(backend), torch.inference_mode():
        expected = model(images)
        spread = (expected.max() - expected.min()).item()
        for technique in ("dynamic", "static"):
            difference = (make(technique, model, images, backend)(images) - expected).abs().max().item()
            assert 0 < difference < 0.1 * spread


@pytest.mark.slow
def test_the_same_calibration_gives_the_same_hash_and_another_one_not(model, images):
    backend = torch_quantization.choose()
    first, second, other = (
        torch_quantization.state_sha256(make("static", model, data, backend).state_dict())
        for data in (images, images, 0.5 * images)
    )
    assert first == second
    assert first != other


def test_the_hash_sees_numbers_names_shapes_and_scales():
    def digest(**state):
        return torch_quantization.state_sha256(state)

    zeros = torch.zeros(4)
    with torch_quantization.expected_warnings():
        narrow, wide = (torch.quantize_per_tensor(zeros, scale, 0, torch.qint8) for scale in (0.1, 0.2))
    values = [zeros, torch.ones(4), zeros.reshape(2, 2), zeros.double(), narrow, wide, (zeros, None), torch.tensor(0.0)]
    hashes = {digest(a=value) for value in values} | {digest(b=zeros)}
    assert len(hashes) == len(values) + 1


@pytest.mark.slow
@pytest.mark.parametrize("technique", torch_quantization.TECHNIQUES)
def test_no_setting_stays_changed_and_the_model_is_not_touched(technique, model, images):
    before = [parameter.clone() for parameter in model.parameters()]
    other = BUILT_IN[-1]
    engine, filters = torch.backends.quantized.engine, list(warnings.filters)
    state = torch.random.get_rng_state()
    try:
        torch.backends.quantized.engine = other
        make(technique, model, images, BUILT_IN[0])
        assert torch.backends.quantized.engine == other
    finally:
        torch.backends.quantized.engine = engine
    assert warnings.filters == filters
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert not model.training
    if technique != "qat":
        assert torch.equal(state, torch.random.get_rng_state())


def test_the_engine_comes_back_after_a_failure():
    before = torch.backends.quantized.engine
    with pytest.raises(KeyError), torch_quantization.using(BUILT_IN[-1]):
        raise KeyError
    assert torch.backends.quantized.engine == before


def test_only_the_expected_warnings_are_silenced(model, images):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("static", model, images, torch_quantization.choose())
    with pytest.warns(DeprecationWarning, match="something else"), torch_quantization.expected_warnings():
        warnings.warn("something else is deprecated", DeprecationWarning, stacklevel=1)


def test_auto_takes_the_first_that_is_built_in(monkeypatch):
    assert torch_quantization.choose("auto") == BUILT_IN[0]
    monkeypatch.setattr(torch_quantization, "built_in", lambda: ["qnnpack"])
    assert torch_quantization.choose("auto") == "qnnpack"
    with pytest.raises(InputError, match=r"'fbgemm' is not built into this PyTorch .*: it has qnnpack"):
        torch_quantization.choose("fbgemm")
    with pytest.raises(InputError, match=r"no backend 'tensorrt': expected auto, x86"):
        torch_quantization.choose("tensorrt")
    monkeypatch.setattr(torch_quantization, "built_in", list)
    with pytest.raises(InputError, match="it has none"):
        torch_quantization.choose("auto")


def test_an_engine_changed_inside_the_block_is_noticed():
    with pytest.raises(MeasurementError, match=re.escape(repr(BUILT_IN[-1]))), torch_quantization.using(BUILT_IN[0]):
        torch.backends.quantized.engine = BUILT_IN[-1]


def test_a_pytorch_without_the_package_is_named(monkeypatch, model):
    def gone(name, *_):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", gone)
    with pytest.raises(MissingDependencyError, match=r"has no torch.ao.quantization .*--configs") as error:
        torch_quantization.dynamic(model, BUILT_IN[0])
    assert "\n" not in str(error.value)


def test_convolution_normalisation_and_relu_run_as_one(images):
    nn = torch.nn
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
    assert torch_quantization._runs(layers) == [["0", "1", "2"]]
    static = make("static", layers, images, BUILT_IN[0])
    assert [type(layer).__name__ for layer in static[1:4]] == ["ConvReLU2d", "Identity", "Identity"]
    with torch_quantization.using(BUILT_IN[0]), torch.inference_mode():
        difference = (static(images) - layers(images)).abs().max().item()
    assert difference < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("backend", BUILT_IN)
def test_every_int8_layer_is_counted_by_the_library_that_ran_it(backend, model, images):
    static = make("static", model, images, backend)
    dynamic = make("dynamic", model, images, backend)
    with torch_quantization.using(backend):
        for quantized, layers in ((static, 4), (dynamic, 2)):
            ran = int8_kernels.count(quantized, images[:8], backend)
            assert sum(ran.values()) == layers
            int8_kernels.refuse_other(ran, backend, layers)


def test_layers_on_another_library_are_refused():
    int8_kernels.refuse_other({"onednn": 2, "fbgemm": 2}, "x86")
    for ran, backend in (({"onednn": 1, "fbgemm": 3}, "fbgemm"), ({"fbgemm": 4}, "qnnpack"), ({}, "x86")):
        with pytest.raises(MeasurementError, match=backend):
            int8_kernels.refuse_other(ran, backend)
    with pytest.raises(MeasurementError):
        int8_kernels.refuse_other({"fbgemm": 3}, "fbgemm", 4)


def test_a_float32_network_has_no_int8_layers(model, images):
    assert int8_kernels.count(model, images[:2], BUILT_IN[0]) == {}
