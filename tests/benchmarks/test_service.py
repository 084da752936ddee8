"""The measurements of the service run, for a second each; their figures want a machine with nothing else to do."""

import numpy as np
import pytest

from benchmarks import _deep_model, service_overload, service_vs_simulation
from deep_learning_cases import batching
from deep_learning_cases.ground import files
from deep_learning_cases.models import engines
from deep_learning_cases.serving.load.send import Fate


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_real_and_simulated_stand_side_by_side(shallow, tmp_path):
    result = service_vs_simulation.measure(shallow, 0.3, 1729)
    assert [row["share"] for row in result["rates"]] == [0.3, 0.6, 0.85]
    files.write_json(tmp_path / "result.json", result)
    for row in result["rates"]:
        assert set(row["load"]["status"]) <= {"200", "503"}
        assert row["real"]["requests"] == row["load"]["requests"]
        assert set(row["simulated"]) == {"calm", "same run", "same moments"}
    printed = "\n".join(service_vs_simulation.lines(result))
    assert "what the simulation does not know" in printed
    assert printed.count("simulated, calm") == 3


def test_how_slow_the_machine_was_is_known_at_every_moment():
    # Batches of 1, 2 and 1 requests that begin at 0, 1 and 2 s; each is answered when it has run.
    batches = [(0.0, 1, 10.0), (1.0, 2, 20.0), (1.0, 2, 20.0), (2.0, 1, 30.0)]
    fates = [Fate(0.0, 0.0, begun_s + run_ms / 1e3, "200", size, {"run": run_ms}) for begun_s, size, run_ms in batches]
    moments = service_vs_simulation._moments(fates, {1: [0.010, 0.030], 2: [0.020, 0.020]})
    assert np.ravel(moments) == pytest.approx([0.0, 0.01, 0.5, 1.0, 1.02, 1.0, 2.0, 2.03, 1.5])
    assert service_vs_simulation._autocorrelation([1, 1, 1, 2, 2, 2, 1, 1, 1]) > 0.4


@pytest.mark.parametrize("rate_per_s", [20.0, 100.0, 250.0, 400.0])
def test_the_rule_with_times_that_depend_on_the_moment_is_the_librarys(rate_per_s):
    arrivals_s = batching.arrival_times_s(batching.Poisson(rate_per_s), 3000, 5)
    service_time = batching.Linear(0.02, 0.001)
    result = batching.simulate(arrivals_s, service_time, _deep_model.POLICY, 0)
    waits_s, totals_s, sizes, refused = service_vs_simulation._serve(
        list(arrivals_s), lambda size, _start_s: service_time.mean_s(size)
    )
    served = result.accepted
    assert refused == result.refused
    assert (refused > 0) == (rate_per_s == 400), "8 requests in 28 ms are 286 per second"
    assert waits_s == pytest.approx(result.wait_s[served], abs=1e-9)
    assert totals_s == pytest.approx(result.time_in_system_s[served], abs=1e-9)
    assert list(sizes) == list(result.batch_size[served])


def test_a_stall_is_as_long_as_it_was_whatever_batch_meets_it():
    # A batch of one takes 10 ms, one of eight 40; the machine stood nearly still from 1 to 2 s, in a batch of one.
    sizes = {1: [0.010], 8: [0.040]}
    stall = service_vs_simulation.Moment(1.0, 2.0, 100.0)
    before = service_vs_simulation.Moment(0.5, 0.51, 1.0)

    def largest_ms(*arrivals_s):
        row = service_vs_simulation._at_its_moment(arrivals_s, sizes, [before, stall])
        return row["in_queue_ms"]["p99"]

    assert largest_ms(0.2) == pytest.approx(5 + 10), "long before it"
    assert largest_ms(3.0) == pytest.approx(5 + 10), "long after it"
    assert largest_ms(0.999) == pytest.approx(1000 + 1, abs=0.1), "its wait ends in the stall, which is all its work"
    assert largest_ms(*[0.999] * 8) == pytest.approx(1 + 1000 + 29, abs=0.1), "1 ms before, 10 in it, 29 after"
    assert largest_ms(1.9) == pytest.approx(100 + 10 - 0.95, abs=0.1), "only the rest of the stall"
