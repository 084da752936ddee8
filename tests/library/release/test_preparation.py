"""The build as a whole: what it promises, that it repeats, and that it leaves no half."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from deep_learning_cases.errors import FileError, MissingDependencyError, ModelError
from deep_learning_cases.ground import files
from deep_learning_cases.models import artefacts, data, engines, network, numpy_network
from deep_learning_cases.release import preparation

FILES = [artefacts.DATA, artefacts.WEIGHTS, artefacts.FP32, artefacts.INT8]


def test_the_facts_are_those_of_the_files(built_once):
    folder, facts = built_once
    assert sorted(os.listdir(folder)) == sorted(FILES)  # noqa: PTH208
    assert facts["files"] == {name: files.file_record(folder / name) for name in FILES}
    assert facts["parameters"] == 18_154
    assert facts["images"] == 500
    assert json.loads(json.dumps(facts)) == facts


def test_accuracy_and_sizes_reach_what_the_lab_promises(built_once):
    _, facts = built_once
    assert facts["accuracy"]["fp32"] >= 0.97
    assert facts["accuracy"]["fp32"] - facts["accuracy"]["int8"] <= 0.01
    assert facts["files"][artefacts.INT8]["bytes"] <= 32_768
    assert 70_000 <= facts["files"][artefacts.FP32]["bytes"] <= 80_000
    assert set(facts["largest_logit_difference"]) == {"onnxruntime", "numpy", "pytorch"}
    assert max(facts["largest_logit_difference"].values()) <= facts["logit_difference_limit"] == 1e-3
    assert facts["changed_predictions"] == {"onnxruntime": 0, "numpy": 0, "pytorch": 0}


def test_the_stated_accuracy_is_that_of_the_saved_models(built_once):
    folder, facts = built_once
    test = data.read_data(folder / artefacts.DATA)["test"]
    for name, file in (("fp32", artefacts.FP32), ("int8", artefacts.INT8)):
        logits = engines.open_engine(folder / file).run(data.normalise(test.images))
        assert network.accuracy(logits, test.labels) == facts["accuracy"][name]


def test_two_builds_in_fresh_processes_give_the_same_bytes(built_once, tmp_path):
    code = (
        "import sys, json; from deep_learning_cases import preparation;"
        "print(json.dumps(preparation.build(sys.argv[1], progress=False)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "again" / "evidence")]
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert json.loads(done.stdout)["files"] == built_once[1]["files"]
    assert done.stderr == ""


@pytest.fixture
def quick(monkeypatch, random_weights):
    """A build without training: the network stays random."""
    monkeypatch.setattr(network, "train", lambda *_: network.from_weights(random_weights))


@pytest.mark.usefixtures("quick")
def test_a_network_that_learned_nothing_is_not_written(tmp_path):
    with pytest.raises(ModelError, match=r"test accuracy is 0\.\d+: expected at least 0.97"):
        preparation.build(tmp_path / "evidence")
    assert not (tmp_path / "evidence").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("off", [0.5, np.nan])
def test_an_engine_that_disagrees_stops_the_build(tmp_path, monkeypatch, off):
    monkeypatch.setattr(preparation, "LEAST_ACCURACY", 0.0)
    engine = numpy_network.PlannedNetwork
    original = engine.__call__
    monkeypatch.setattr(engine, "__call__", lambda self, images: original(self, images) + np.float32(off))
    with pytest.raises(ModelError, match="numpy differs from the trained network by"):
        preparation.build(tmp_path / "evidence")
    assert not (tmp_path / "evidence").exists()


@pytest.mark.usefixtures("quick")
def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "LEAST_ACCURACY", 0.0)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match=r"cannot make the folder .*file.evidence"):
        preparation.build(tmp_path / "file" / "evidence")


def test_without_pytorch_the_build_says_so_and_leaves_an_older_folder_alone(built, monkeypatch):
    before = {name: files.sha256_file(built / name) for name in FILES}
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="PyTorch is not installed"):
        preparation.build(built)
    assert {name: files.sha256_file(built / name) for name in FILES} == before
