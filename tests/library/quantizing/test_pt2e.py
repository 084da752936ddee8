"""torchao's PT2E route from training to timing: really compiled, really int8, the same network."""

import os
import tempfile

import pytest

torch = pytest.importorskip("torch")

from deep_learning_cases import comparison
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.quantizing import pt2e, subjects, variants


@pytest.fixture(autouse=True)
def _what_it_needs():
    """Asked where it is needed: the answer loads the compiler, and each process of a run reads every file of tests."""
    if reason := variants.missing("pt2e"):
        pytest.skip(reason)


@pytest.mark.slow
def test_pt2e_from_training_to_the_record(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    subject = subjects.load("digits", epochs=4)
    plan = comparison.Plan(configs=["pt2e"], warmups=1, iterations=3, rounds=1, batch_sizes=[2], threads=1)
    out = tmp_path / "out"
    record = comparison.compare(subject, out, plan, progress=False)

    assert list(temporary.iterdir()) == [], "the compiler's cache does not stay"
    assert schemas.violations(record, "quantization") == []
    assert record == files.read_json(out / comparison.FILE)
    assert (list(record["configs"]), record["skipped"]) == (["compiled", "pt2e"], {})
    compiled, quantized = record["configs"].values()
    assert quantized["baseline"] == "compiled"
    assert quantized["size"]["tensor_bytes"] < compiled["size"]["tensor_bytes"] / 3
    assert compiled["accuracy"]["top1"] > 0.9
    assert quantized["accuracy"]["top1"] > compiled["accuracy"]["top1"] - 0.02
    assert [(run["config"], len(run["samples_us"]["2"])) for run in record["runs"]] == [("compiled", 3), ("pt2e", 3)]
    assert len({run["pid"] for run in record["runs"]} | {os.getpid()}) == 3

    state = pt2e.load(out / comparison.MODELS / "pt2e.pt2").state_dict()
    assert sum(tensor.dtype == torch.int8 for tensor in state.values()) == 4, "two convolutions and two dense layers"


@pytest.mark.slow
def test_the_saved_program_takes_any_batch_size(tmp_path):
    subject = subjects.load("digits", epochs=1)
    model = subject.train(1729, progress=False)
    variants.make("pt2e", subject, model, tmp_path, None, 1729, False)
    program = pt2e.load(tmp_path / "pt2e.pt2")
    images = torch.from_numpy(subject.transform(subject.dataset.test.images))
    with torch.inference_mode():
        whole = program(images)
        for size in (1, 7):
            assert torch.allclose(program(images[:size]), whole[:size], atol=1e-5)
        assert (whole.argmax(1) == model(images).argmax(1)).float().mean() > 0.97
