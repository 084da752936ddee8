"""``dlcases quantize``: tables, figures and record on success; one line for bad input; Ctrl-C keeps what there is."""

import argparse
import json

import pytest

pytest.importorskip("torch")

from deep_learning_cases import comparison
from deep_learning_cases.commands import quantize
from deep_learning_cases.errors import DeepLearningCasesError, EvidenceError, FileError, InputError
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.models import cifar
from tests.library import cifar_archive as tiny


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    quantize.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return quantize.command(parser.parse_args(list(arguments)))


def answer(job, _timeout_s=None):
    samples = {str(size): [100.0 + index for index in range(job["iterations"])] for size in job["batch_sizes"]}
    return {
        "pid": 1, "pinned_cpus": None, "backend_ran": job["backend"], "cold_start_us": 1.0, "samples_us": samples,
        "warmups_us": {size: [1.0] * job["warmups"] for size in samples}, "rss_before_bytes": 1, "rss_max_bytes": 2,
        "tracemalloc_peak_bytes": 0, "peak_rss_bytes": 3, "peak_rss_source": "VmHWM",
    }  # fmt: skip


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(comparison, "_fresh", answer)


QUICK = ("--epochs", "1", "--iters", "4", "--warmup", "1", "--rounds", "2", "--threads", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_the_command_prints_tables_and_writes_record_and_figures(tmp_path, capsys):
    assert run(*QUICK, "--configs", "static,onnx_int8", "--out", str(tmp_path / "out")) == 0
    printed = capsys.readouterr()
    for part in ("static", "onnx_int8", "state_dict", "top-5 %", "on this machine:", "faster at batch 32", "note: "):
        assert part in printed.out
    assert "tracemalloc sees what Python and NumPy allocate" in printed.out
    assert printed.err == ""  # no bar, as nobody looks at a terminal
    record = files.read_json(tmp_path / "out" / "quantization.json")
    assert schemas.violations(record, "quantization") == []
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        "class-changes.png",
        "distributions-1.png",
        "models",
        "quantization.json",
        "size-against-speed-1.png",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_json_is_the_record_and_nothing_else(tmp_path, capsys):
    assert run(*QUICK, "--configs", "fp32,dynamic", "--batches", "2", "--json", "--out", str(tmp_path)) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == files.read_json(tmp_path / "quantization.json")
    assert record["claims"]["dynamic"]["faster at batch 1"]["verdict"] == "inconclusive"


def test_ctrl_c_keeps_what_was_measured_and_says_where(tmp_path, capsys, monkeypatch):
    done = []

    def stopped(job, _):
        if done:
            raise KeyboardInterrupt
        done.append(job)
        return answer(job)

    monkeypatch.setattr(comparison, "_fresh", stopped)
    assert run(*QUICK, "--configs", "fp32", "--out", str(tmp_path)) == 130
    assert "marked partial" in capsys.readouterr().err
    assert files.read_json(tmp_path / "quantization.json")["partial"] is True


def test_ctrl_c_in_training_writes_nothing(tmp_path, capsys, monkeypatch):
    from deep_learning_cases.models import network

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(network, "train", stopped)
    (tmp_path / "quantization.json").write_text("old")
    assert run(*QUICK, "--configs", "fp32", "--out", str(tmp_path)) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert (tmp_path / "quantization.json").read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("--configs", "int4"), InputError, "no configuration 'int4'"),
        (("--backend", "mkl"), InputError, "no backend 'mkl'"),
        (("--iters", "0"), InputError, "iters is 0"),
        (("--batches", "1,x"), InputError, "--batches is '1,x'"),
        (("--batches", "1000"), InputError, "larger than the test set of 500"),
        (("--data", "mnist"), InputError, "no data set 'mnist'"),
        (("--data", "cifar10"), InputError, "download cifar-10-python.tar.gz"),
        (("--data", "cifar10", "--archive", "/nowhere/cifar.tar.gz"), FileError, "download cifar-10-python.tar.gz"),
        (("--data", "cifar10", "--archive", __file__), EvidenceError, "MD5"),
        (("--archive", "x"), InputError, "--data cifar10"),
        (("--seed", "-1"), InputError, "seed is -1"),
        (("--epochs", "0"), InputError, "epochs is 0"),
        (("--out", __file__), FileError, "not a folder"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, arguments, kind, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeepLearningCasesError, match=message) as error:
        run(*arguments)
    assert isinstance(error.value, kind)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_backend_that_is_not_built_in_is_named(monkeypatch):
    from deep_learning_cases import torch_quantization

    monkeypatch.setattr(torch_quantization, "built_in", lambda: ["qnnpack"])
    with pytest.raises(InputError, match="'onednn' is not built into this PyTorch"):
        run("--backend", "onednn")


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
def test_cifar_goes_the_same_way_from_a_local_archive(tmp_path, capsys, monkeypatch):
    archive = tiny.write_archive(tmp_path / "cifar-10-python.tar.gz", tiny.contents())
    monkeypatch.setattr(cifar, "OFFICIAL", tiny.TINY)
    arguments = ("--data", "cifar10", "--archive", str(archive), "--configs", "dynamic", "--out", str(tmp_path / "out"))
    assert run(*QUICK, *arguments) == 0
    assert "VGG-style CNN, 551,018 parameters; 40 test images" in capsys.readouterr().out
    record = files.read_json(tmp_path / "out" / "quantization.json")
    assert record["data"]["classes"] == tiny.CLASSES
    assert record["data"]["input_shape"] == [3, 32, 32]
