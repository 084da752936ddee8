"""Three engines, one answer; and what they refuse to load."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

from deep_learning_cases.errors import FileError, InputError, MissingDependencyError, ModelError
from deep_learning_cases.models import artefacts, engines

FILES = {"onnxruntime": artefacts.FP32, "numpy": artefacts.WEIGHTS, "pytorch": artefacts.WEIGHTS}


@pytest.fixture
def torch_threads():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    yield torch
    torch.set_num_threads(before)


@pytest.mark.usefixtures("torch_threads")
@pytest.mark.parametrize("n", [1, 32, 40])
def test_all_engines_give_the_same_logits(random_models, random_images, n):
    results = {}
    for name, file in FILES.items():
        results[name] = engines.open_engine(random_models / file, name).run(random_images[:n])
        assert results[name].shape == (n, 10)
        assert results[name].dtype == np.float32
    scale = float(np.abs(results["pytorch"]).max())
    for logits in results.values():
        np.testing.assert_allclose(logits, results["pytorch"], rtol=0, atol=1e-5 * scale)


@pytest.mark.usefixtures("torch_threads")
@pytest.mark.usefixtures("torch_threads")
@pytest.mark.parametrize("name", engines.ENGINES)
def test_every_engine_refuses_a_batch_of_none_in_the_same_words(random_models, name):
    engine = engines.open_engine(random_models / FILES[name], name)
    with pytest.raises(InputError, match=r"the batch holds no image \(shape \(0, 1, 8, 8\)\): expected at least one"):
        engine.run(np.zeros((0, 1, 8, 8), np.float32))


@pytest.mark.parametrize("name", engines.ENGINES)
def test_an_engine_describes_itself_in_json(random_models, name):
    description = engines.open_engine(random_models / FILES[name], name, threads=1).describe()
    assert description["name"] == name
    assert description["threads"] == 1
    assert description["version"]
    assert json.loads(json.dumps(description)) == description


@pytest.mark.usefixtures("torch_threads")
def test_a_batch_is_not_changed_and_a_result_not_overwritten(random_models, random_images):
    for name, file in FILES.items():
        engine = engines.open_engine(random_models / file, name)
        batch = random_images[:4].copy()
        first = engine.run(batch)
        kept = first.copy()
        engine.run(random_images[4:8])
        assert np.array_equal(first, kept)
        assert np.array_equal(batch, random_images[:4])


def test_the_number_of_threads_reaches_pytorch(random_models, torch_threads):
    engines.open_engine(random_models / artefacts.WEIGHTS, "pytorch", threads=2)
    assert torch_threads.get_num_threads() == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "tensorflow"}, "no engine 'tensorflow': expected one of onnxruntime, numpy, pytorch"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": True}, "threads is True"),
        ({"threads": 1.0}, r"threads is 1\.0"),
        ({"device": "cuda"}, "device of onnxruntime is 'cuda'"),
        ({"engine": "pytorch", "device": "tpu"}, "'tpu'"),
    ],
)
def test_unusable_settings_are_refused(random_models, settings, message):
    with pytest.raises(InputError, match=message):
        engines.open_engine(random_models / artefacts.FP32, **settings)


def test_a_missing_cuda_device_is_named(random_models, torch_threads, monkeypatch):
    monkeypatch.setattr(torch_threads.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA device"):
        engines.open_engine(random_models / artefacts.WEIGHTS, "pytorch", device="cuda")


@pytest.mark.parametrize("name", engines.ENGINES)
def test_a_missing_or_foreign_file_is_one_clear_error(tmp_path, name):
    with pytest.raises(FileError, match="cannot read"):
        engines.open_engine(tmp_path / "nothing", name)
    (tmp_path / "model").write_bytes(b"something else")
    with pytest.raises(ModelError, match=r"model is not a (model|readable)") as caught:
        engines.open_engine(tmp_path / "model", name)
    assert "\n" not in str(caught.value)


def test_onnxruntime_never_sees_a_model_with_data_elsewhere(random_models, tmp_path, monkeypatch):
    import onnxruntime

    model = onnx.load(random_models / artefacts.FP32)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    seen = []
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *arguments, **_: seen.append(arguments))
    with pytest.raises(ModelError, match="names data outside the file"):
        engines.open_engine(tmp_path / "m.onnx")
    assert seen == []


def test_too_large_a_model_is_refused_unread(tmp_path):
    with (tmp_path / "m.onnx").open("wb") as stream:
        stream.truncate(engines.MAX_MODEL_BYTES + 1)
    with pytest.raises(ModelError, match="larger than"):
        engines.open_engine(tmp_path / "m.onnx")


def test_onnxruntime_refuses_another_classifier(random_weights, tmp_path):
    model = onnx.load_model_from_string(artefacts.onnx_bytes(random_weights))
    del model.graph.node[-2:]
    model.graph.node[-1].output[0] = "logits"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 96
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"logits tensor\(float\) \['batch', 96\]: expected one float32 input"):
        engines.open_engine(tmp_path / "m.onnx")


def test_without_pytorch_the_other_engines_work_and_its_own_says_how_to_install(random_models, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    engines.open_engine(random_models / artefacts.FP32)
    engines.open_engine(random_models / artefacts.WEIGHTS, "numpy")
    with pytest.raises(MissingDependencyError, match=r"PyTorch is not installed.*pip install"):
        engines.open_engine(random_models / artefacts.WEIGHTS, "pytorch")


def test_without_onnxruntime_the_error_says_how_to_install(random_models, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match="pip install onnxruntime"):
        engines.open_engine(random_models / artefacts.FP32)


def test_measuring_with_onnxruntime_imports_nothing_heavy(random_models):
    heavy = ["onnx", "sklearn", "torch", "jsonschema", "matplotlib", "scipy", "tqdm", "hashlib", "tempfile"]
    code = (
        "import sys; from deep_learning_cases import data, engines; import numpy as np;"
        "e = engines.open_engine(sys.argv[1]); e.run(np.zeros((1, 1, 8, 8), np.float32));"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(random_models / artefacts.FP32)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_runtime_leaves_nothing_at_home_and_nothing_among_temporary_files(random_models, tmp_path):
    code = (
        "import sys; from deep_learning_cases import engines; engines.open_engine(sys.argv[1]);"
        "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    environment = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    environment |= dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(tmp_path))
    for wanted in ("1", "0"):
        done = subprocess.run(
            [sys.executable, "-c", code, random_models / artefacts.FP32],
            capture_output=True,
            text=True,
            check=True,
            env=environment if wanted == "1" else environment | {"ORT_DISABLE_TELEMETRY": "0"},
        )
        assert done.stdout.strip() == wanted
        if wanted == "1":
            assert list(tmp_path.rglob("*")) == []
