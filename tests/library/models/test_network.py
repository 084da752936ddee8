"""Training repeats, learns, and leaves PyTorch as it was."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deep_learning_cases.errors import InputError, MissingDependencyError
from deep_learning_cases.ground import files
from deep_learning_cases.models import artefacts, conv, data, network

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits():
    return data.load_digits()


def test_the_network_has_the_documented_size_and_shapes():
    model = network.make()
    assert sum(parameter.numel() for parameter in model.parameters()) == 18_154
    assert {name: array.shape for name, array in network.weights(model).items()} == conv.WEIGHT_SHAPES


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_in_another_process(digits):
    code = (
        "from deep_learning_cases import artefacts, data, files, network;"
        "model = network.train(data.load_digits(), epochs=1, progress=False);"
        "print(files.sha256_bytes(artefacts.weights_bytes(network.weights(model))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    weights = network.weights(network.train(digits, epochs=1, progress=False))
    assert done.stdout.strip() == files.sha256_bytes(artefacts.weights_bytes(weights))
    assert done.stderr == ""  # no bar where there is no terminal


def test_another_seed_gives_other_weights(digits):
    first, second = (network.weights(network.train(digits, seed, False, epochs=1)) for seed in (1, 2))
    assert not np.array_equal(first["conv1_weight"], second["conv1_weight"])


def test_training_leaves_pytorch_as_it_was(digits):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    try:
        network.train(digits, progress=False, epochs=1)
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.equal(torch.rand(3), expected)
    finally:
        torch.set_num_threads(before)


def test_settings_are_put_back_when_training_is_interrupted(digits, monkeypatch):
    def interrupt(*_arguments, **_settings):
        raise KeyboardInterrupt

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            network.train(digits, progress=False, epochs=1)
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(before)


def test_training_sees_only_the_training_split(digits):
    """Other test labels change nothing."""
    other = data.Dataset(
        "digits", digits.train, digits.calibration, data.Split(digits.test.images, digits.test.labels * 0)
    )
    first, second = (network.weights(network.train(dataset, 1, False, epochs=1)) for dataset in (digits, other))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_weights_go_through_a_new_network_unchanged(random_weights, random_images):
    model = network.from_weights(random_weights)
    assert not model.training
    again = network.weights(model)
    assert all(np.array_equal(again[name], random_weights[name]) for name in random_weights)
    logits = network.logits(model, random_images)
    assert (logits.shape, logits.dtype) == ((40, 10), np.float32)
    with pytest.raises(InputError, match="expected conv1_bias"):
        network.from_weights({})


def test_accuracy_is_the_fraction_of_rows_whose_largest_entry_is_right():
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]], np.float32)
    assert network.accuracy(scores, np.array([1, 0, 0, 0], np.uint8)) == 0.75


@pytest.mark.parametrize("epochs", [0, -1, 1.0, True])
def test_no_epochs_are_refused(digits, epochs):
    with pytest.raises(InputError, match="epochs is"):
        network.train(digits, epochs=epochs)


def test_a_bar_is_drawn_when_asked_for(digits, capsys):
    network.train(digits, progress=True, epochs=1)
    assert "training" in capsys.readouterr().err


def test_without_pytorch_the_command_that_installs_it_is_named(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"measuring does not; install it with: pip install") as caught:
        network.train(digits)
    assert isinstance(caught.value, ImportError)


STOPPED_BUILD = """
import sys
from pathlib import Path
from deep_learning_cases import comparison, subjects

def stopped(_job, _timeout_s):
    raise KeyboardInterrupt

plan = comparison.Plan(configs=["static"], warmups=0, iterations=1, rounds=1, threads=1)
try:
    comparison.compare(subjects.load("digits", epochs=1), sys.argv[1], plan, progress=False, launch=stopped)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["no place set", "the caller's own place"])
def test_the_compiler_leaves_nothing_among_temporary_files_even_when_stopped(own, tmp_path):
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    environment |= {"TMPDIR": str(temporary)} | ({"TORCHINDUCTOR_CACHE_DIR": str(kept)} if own else {})
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_BUILD, tmp_path / "out"], capture_output=True, text=True, env=environment,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    assert done.stdout == "stopped\n", done.stderr
    assert list(temporary.iterdir()) == []
    assert kept.is_dir() == own
