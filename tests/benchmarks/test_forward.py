"""The comparison of forward passes runs, on few rounds, and can fail."""

import copy

import pytest

from benchmarks import forward
from deep_learning_cases.ground import files


@pytest.mark.slow
def test_the_table_is_written_with_every_engine(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(forward, "RESULT", tmp_path / "results" / "forward.json")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    code = forward.main(["--processes", "1", "--rounds", "1", "--no-compile"])
    written = files.read_json(tmp_path / "results" / "forward.json")
    printed = capsys.readouterr().out
    run = written["runs"][0]
    assert run["environment"]["thread_settings"]["OPENBLAS_NUM_THREADS"] == "1"
    assert all(pool["num_threads"] == 1 for pool in run["blas"])
    assert run["left_out"] == {"torch.compile": "not asked for"}
    assert [row["batch"] for row in written["summary"]] == [1, 8, 32, 128]
    assert set(written["summary"][0]["median_us"]) == {forward.OURS, forward.EAGER, forward.ORT, forward.PLAIN}
    assert "| 128 |" in printed
    assert code == (1 if "MISSED" in printed else 0)


def result(ours, eager, ort):
    medians = {
        name: {str(n): [value * n] for n in forward.REPETITIONS}
        for name, value in ((forward.OURS, ours), (forward.EAGER, eager), (forward.ORT, ort), (forward.PLAIN, 9.0))
    }
    run = {
        "environment": {"cpu": {"model": "a processor"}}, "blas": [{"architecture": "a kernel"}], "left_out": {},
        "gflops": 100.0, "call_us": 0.5, "numpy_calls": {str(n): 16 for n in forward.REPETITIONS},
        "round_medians_us": medians, "load_average_after": [0.0, 0.0, 0.0],
    }  # fmt: skip
    runs = [run, copy.deepcopy(run)]
    return {"runs": runs, "summary": forward.summary(runs)}


def test_a_missed_target_is_reported(capsys):
    kept = result(1.0, 3.0, 1.0)
    assert kept["summary"][0]["floor_us"] == pytest.approx(16 * 0.5 + 2e-3 * 96_192 / 100, abs=0.01)
    assert forward.report(kept) == 0
    assert "MISSED" not in capsys.readouterr().out
    assert forward.report(result(1.0, 2.0, 1.0)) == 1  # fast enough at batch 1 only
    assert capsys.readouterr().out.count("MISSED") == 3
    assert forward.report(result(1.9, 9.0, 1.0)) == 1
    assert capsys.readouterr().out.count("MISSED") == 4
