"""The measurements of the service run, for a second each; their figures want a machine with nothing else to do."""

import numpy as np
import pytest

from benchmarks import _deep_model, service_overload, service_vs_simulation
from deep_learning_cases import engines, files
from deep_learning_cases.load import Fate


@pytest.fixture(scope="module")
def shallow(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep") / "deep.onnx"
    path.write_bytes(_deep_model.model_bytes(40))
    return path


def test_the_deep_model_is_an_ordinary_one_and_stays_finite(shallow, tmp_path):
    images = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    logits = engines.open_engine(shallow).run(images)
    assert logits.shape == (3, 10)
    assert np.isfinite(logits).all()
    assert np.ptp(logits, axis=0).max() > 1e-3, "the layers do not forget their input"
    (tmp_path / "deeper.onnx").write_bytes(_deep_model.model_bytes(400))
    assert np.isfinite(engines.open_engine(tmp_path / "deeper.onnx").run(images)).all()


def test_an_overload_loses_nobody(shallow):
    result = service_overload.measure(shallow, 0.8, 1729)
    counts = result["summary"]["status"]
    assert counts.get("200", 0) + counts.get("503", 0) == result["sent"]
    assert result["answered_afterwards"]
    assert len(result["resident_bytes"]) >= 1


def test_broken_promises_are_reported(capsys):
    result = {
        "capacity_per_s": 100.0, "sent": 10, "summary": {"status": {"200": 8, "503": 1, "timeout": 1}},
        "latency_bound_s": 1.0, "slowest_in_service_s": 0.5, "resident_bytes": [10, 10, 20, 20],
        "answered_afterwards": True,
    }  # fmt: skip
    assert service_overload.report(result) is False
    assert "1 neither answered nor refused: BROKEN" in capsys.readouterr().out
    fine = result | {"summary": {"status": {"200": 9, "503": 1}}}
    assert service_overload.report(fine) is True
    assert service_overload.report(fine | {"slowest_in_service_s": 1.5}) is False
    assert service_overload.report(fine | {"resident_bytes": [10, 10, 10**9]}) is False


def test_real_and_simulated_stand_side_by_side(shallow, tmp_path):
    result = service_vs_simulation.measure(shallow, 0.3, 1729)
    assert [row["share"] for row in result["rates"]] == [0.3, 0.6, 0.85]
    files.write_json(tmp_path / "result.json", result)
    for row in result["rates"]:
        assert set(row["load"]["status"]) <= {"200", "503"}
        assert row["real"]["requests"] == row["load"]["requests"]
        assert set(row["simulated"]) == {"calm", "same run", "same run in order"}
    printed = "\n".join(service_vs_simulation.lines(result))
    assert "what the simulation does not know" in printed
    assert printed.count("simulated, calm") == 3


def test_slowness_keeps_its_order_and_its_neighbours():
    fates = [
        Fate(0.0, 0.0, float(number), "200", size, {"run": run_ms})
        for number, (size, run_ms) in enumerate([(1, 10.0), (2, 20.0), (2, 20.0), (1, 30.0)])
    ]
    slowness = service_vs_simulation._slowness(fates, {1: [0.010, 0.030], 2: [0.020, 0.020]})
    assert slowness == pytest.approx([0.5, 1.0, 1.5])
    assert service_vs_simulation._autocorrelation([1, 1, 1, 2, 2, 2, 1, 1, 1]) > 0.4
    draw = service_vs_simulation._InOrder({1: [1.0], 2: [3.0]}, [0.5, 2.0]).sampler(np.random.default_rng(0), 2)
    assert [draw(1), draw(2), draw(2)] == [0.5, 6.0, 1.5]
