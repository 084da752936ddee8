"""latency_case: what is counted, kept, saved and refused; every time here comes from a scripted clock."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import deep_learning_cases
from deep_learning_cases import cases, latency_engine
from deep_learning_cases.errors import EvidenceError, FileError, InputError, MeasurementError
from deep_learning_cases.ground import schemas
from deep_learning_cases.ground.threads import blas_threads
from deep_learning_cases.latency import record as latency_record
from deep_learning_cases.latency import view
from deep_learning_cases.measuring import stats


class FakeDevice:
    """An accelerator: ``run`` returns at once, ``synchronize`` returns when the work is done.  Nothing here waits."""

    LAUNCH_NS, WORK_NS = 10_000, 5_000_000

    def __init__(self):
        self.now = self.busy_until = 0
        self.shapes, self.first_pixels = [], []

    def clock(self):
        return self.now

    def run(self, batch):
        self.shapes.append(batch.shape)
        self.first_pixels.append(batch.tobytes())
        self.now += self.LAUNCH_NS
        self.busy_until = max(self.busy_until, self.now) + self.WORK_NS

    def synchronize(self):
        self.now = max(self.now, self.busy_until)

    def describe(self):
        return {"name": "fake", "precision": "float16", "device": "fake device"}


class Unsynchronised(FakeDevice):
    synchronize = None


def timed(device=None, **settings):
    device = device or FakeDevice()
    return cases.latency_case(engine=device, clock=device.clock, **settings), device


def test_the_first_lines_of_the_lab_run_as_they_stand():
    result = deep_learning_cases.latency_case()
    assert list(result["results"]) == [1, 32]
    for row in result["results"].values():
        assert row["warmups"] == len(row["warmups_ms"]) == 8
        assert row["trials"] == len(row["samples_ms"]) == 60
        assert 0 < row["min_ms"] <= row["median_ms"] <= row["p95_ms"] <= row["max_ms"]
        assert row["first_call_ms"] == row["warmups_ms"][0]
    for key in ("hardware", "software", "threads", "input_shape", "precision", "boundary", "created_at", "schema"):
        assert result[key]
    assert schemas.violations(latency_record.to_json(result), "latency") == []


def test_every_call_is_counted_and_gets_a_batch_of_its_own():
    result, device = timed(batches=(2, 3), warmups=2, trials=5)
    assert device.shapes == [(2, 1, 8, 8)] * 7 + [(3, 1, 8, 8)] * 7
    assert len(set(device.first_pixels)) == 14
    assert result["protocol"]["distinct_inputs"] == {2: 7, 3: 7}


def test_a_fixed_input_is_the_same_for_every_call():
    _, device = timed(batches=[4], warmups=1, trials=3, inputs="fixed")
    assert len(set(device.first_pixels)) == 1


def test_the_same_seed_gives_the_same_weights_and_inputs():
    first, second = latency_engine.seeded_weights(5), latency_engine.seeded_weights(5)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["conv1_weight"], latency_engine.seeded_weights(6)["conv1_weight"])
    _, one = timed(batches=[1], trials=2, seed=9)
    _, two = timed(batches=[1], trials=2, seed=9)
    assert one.first_pixels == two.first_pixels


def test_inputs_too_large_to_prepare_one_by_one_are_taken_in_turn(monkeypatch):
    monkeypatch.setattr(latency_engine, "MAX_INPUT_BYTES", 3 * 4 * 64 * 10)
    assert len(latency_engine.draw_inputs(10, 50, 1, fresh=True)) == 3
    assert len(latency_engine.draw_inputs(1000, 50, 1, fresh=True)) == 2


def test_a_device_is_waited_for_inside_the_timer():
    result, device = timed(batches=[1], warmups=1, trials=4)
    whole_ms = (device.LAUNCH_NS + device.WORK_NS) / 1e6
    assert result["results"][1]["samples_ms"] == pytest.approx([whole_ms] * 4)
    assert "synchronize() inside the timer" in result["execution"]["synchronised"]


def test_without_waiting_only_the_launch_is_timed():
    result, device = timed(Unsynchronised(), batches=[1], warmups=1, trials=4)
    assert result["results"][1]["median_ms"] == pytest.approx(device.LAUNCH_NS / 1e6)
    assert result["execution"]["synchronised"] == "the engine has no such call"


def test_precision_device_and_engine_are_those_of_the_engine():
    result, _ = timed(batches=[1], trials=1)
    assert (result["precision"], result["execution"]["device"]) == ("float16", "fake device")
    assert (result["engine"]["name"], result["model"]) == ("fake", None)


def test_the_numbers_of_a_row_by_hand():
    samples = [float(number) for number in range(1, 61)]
    row = latency_record.row(samples, [100.0, 7.0], 4)
    assert (row["median_ms"], row["p95_ms"], row["mean_ms"]) == (30.5, 57.0, 30.5)
    assert (row["min_ms"], row["max_ms"], row["first_call_ms"]) == (1.0, 60.0, 100.0)
    assert row["images_per_second"] == pytest.approx(4 * 60 * 1000 / 1830)
    assert row["ms_per_image"] == pytest.approx(30.5 / 4)
    interval = stats.percentile_interval(samples, 0.5)
    assert (row["median_low_ms"], row["median_high_ms"]) == (interval.low, interval.high)


@pytest.mark.parametrize(("trials", "expected"), [(60, None), (99, None), (100, 99.0), (400, 396.0)])
def test_p99_is_given_only_where_it_is_not_the_slowest_trial(trials, expected):
    row = latency_record.row([float(number) for number in range(1, trials + 1)], [], 1)
    assert row["p99_ms"] == expected
    if expected is None:
        assert f"{trials} trials" in row["p99_note"]
        assert "299 for an upper bound" in row["p99_note"]
    else:
        assert ("no 95 % interval" in row["p99_note"]) == (trials < 368)


def test_without_warmups_the_first_call_is_the_first_sample():
    row = latency_record.row([9.0, 1.0], [], 1)
    assert (row["warmups"], row["first_call_ms"]) == (0, 9.0)


def test_a_clock_too_coarse_to_see_a_call_is_refused():
    with pytest.raises(MeasurementError, match="took 0 ns"):
        cases.latency_case(engine=Unsynchronised(), clock=lambda: 5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"batches": []}, "at least one"),
        ({"batches": (1, 1)}, "none twice"),
        ({"batches": (0,)}, "a batch size is 0"),
        ({"batches": (True,)}, "a batch size is True"),
        ({"batches": (1.5,)}, "a batch size is 1.5"),
        ({"batches": "32"}, "a batch size is '32'"),
        ({"batches": None}, "a batch size is None"),
        ({"batches": 1 << 30}, "from 1 to 1048576"),
        ({"warmups": -1}, "warmups is -1"),
        ({"trials": 0}, "trials is 0"),
        ({"trials": "60"}, "trials is '60'"),
        ({"seed": -1}, "seed is -1"),
        ({"threads": 0}, "threads is 0"),
        ({"engine": "tensorrt"}, "no engine 'tensorrt'"),
        ({"engine": None}, "engine is NoneType"),
        ({"inputs": "cold"}, "inputs is 'cold'"),
        ({"device": "tpu"}, "is 'tpu'"),
        ({"device": "cuda"}, "the device of numpy is 'cuda'"),
        ({"model": 3}, "model is int"),
        ({"artifact": 3}, "artifact is int"),
    ],
)
def test_nonsense_is_refused_with_the_reason_in_one_line(settings, expected):
    with pytest.raises(InputError) as caught:
        cases.latency_case(**settings)
    assert expected in str(caught.value)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"artifact": "no/such/folder/latency.json"}, {"model": "no/such/model.npz"}])
def test_a_place_that_is_not_there_is_named(settings):
    with pytest.raises(FileError, match="expected"):
        cases.latency_case(**settings)


def test_a_wrong_place_costs_no_measurement(tmp_path):
    device = FakeDevice()
    with pytest.raises(FileError):
        cases.latency_case(engine=device, clock=device.clock, artifact=tmp_path)
    assert device.shapes == []


def test_a_batch_too_large_for_the_memory_is_a_message():
    class Greedy(FakeDevice):
        def run(self, _batch):
            raise MemoryError

    with pytest.raises(MeasurementError, match="batch 8 does not fit in memory"):
        timed(Greedy(), batches=[8])


@pytest.mark.parametrize("engine", ["numpy", "onnxruntime"])
def test_engines_read_the_models_of_a_folder(engine, random_models):
    result = cases.latency_case([2], engine=engine, model=random_models, warmups=1, trials=2)
    assert result["model"]["weights"] == "a model file"
    assert result["precision"] == "float32"
    assert result["engine"]["threads"] == 1


def test_an_int8_model_is_called_that(random_models):
    result = cases.latency_case([1], engine="onnxruntime", model=random_models / "model_int8.onnx", warmups=1, trials=2)
    assert result["precision"] == "int8"


def test_blas_is_held_to_the_threads_asked_for():
    with blas_threads(1) as found:
        assert found is None or all(pool["threads"] == 1 for pool in found)


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "latency.json"
    result, _ = timed(batches=(1, 32), artifact=path)
    return path, result


@pytest.fixture
def saved(saved_once, tmp_path):
    """A record that a test may damage, and what it says; never change the latter."""
    path, result = saved_once
    return Path(shutil.copy(path, tmp_path)), result


def test_a_saved_record_comes_back_with_int_keys(saved):
    path, result = saved
    again = cases.load_latency_case(path)
    assert again == result
    assert [type(size) for size in again["results"]] == [int, int]
    assert isinstance(again, cases.LatencyCase)


def _set(record, pointer, value):
    *way, last = pointer.strip("/").split("/")
    for part in way:
        record = record[int(part) if isinstance(record, list) else part]
    record[int(last) if isinstance(record, list) else last] = value


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/schema", "deep-learning-cases/latency/2"),
        ("/results", {}),
        ("/results/1/median_ms", 4.0),
        ("/results/1/p95_ms", "5"),
        ("/results/1/trials", 59),
        ("/results/1/p99_ms", 5.01),
        ("/results/1/p99_note", "trust me"),
        ("/results/32/samples_ms/7", 1e9),
        ("/results/32/samples_ms/7", 0),
        ("/results/32/samples_ms/7", True),
        ("/results/32/samples_ms", []),
        ("/results/32/warmups_ms/0", -1.0),
        ("/results/32/images_per_second", 1.0),
        ("/results/one", {}),
        ("/hardware", None),
        ("/protocol/trials", 61),
        ("/protocol/batches", [1, 8]),
        ("/unheard_of", 1),
    ],
)
def test_a_damaged_record_is_refused_and_the_place_named(saved, pointer, value):
    path, _ = saved
    record = json.loads(path.read_text())
    _set(record, pointer, value)
    path.write_text(json.dumps(record))
    with pytest.raises(EvidenceError) as caught:
        cases.load_latency_case(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": NaN}', "null"])
def test_what_is_no_record_at_all_is_refused(tmp_path, content):
    path = tmp_path / "latency.json"
    path.write_text(content)
    with pytest.raises(EvidenceError):
        cases.load_latency_case(path)


def test_a_record_that_is_missing_is_refused(tmp_path):
    with pytest.raises(FileError):
        cases.load_latency_case(tmp_path / "latency.json")


def test_a_notebook_shows_a_table_and_a_figure_in_words():
    result, _ = timed()
    shown = result._repr_html_()
    assert shown.count("<tr>") == 3
    assert "<svg" in shown
    assert "aria-label='Empirical distributions." in shown


def test_what_an_engine_says_of_itself_is_text_and_never_markup():
    class Sly(FakeDevice):
        def describe(self):
            return {"name": "<script>alert(1)</script>"}

    result, _ = timed(Sly(), batches=[1])
    assert "<script>" not in result._repr_html_()


def test_without_matplotlib_the_table_stays(monkeypatch):
    result, _ = timed()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert "No figure" in result._repr_html_()


def test_the_histogram_counts_every_sample():
    for samples in ([1.0], [2.0] * 9, [1.0, 1.1, 1.2, 50.0], [float(number) for number in range(1, 61)]):
        lines = view.histogram(samples)
        assert sum(int(line.split()[-1]) for line in lines) == len(samples)
        assert all(len(line) < 80 for line in lines)
    assert view.histogram([1.0, 1.1, 1.2, 50.0])[-1].startswith("   > 2.200 ms |")


cuda = pytest.mark.skipif("not _cuda()", reason="PyTorch finds no CUDA device here")


def _cuda():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@cuda
def test_on_cuda_the_time_without_synchronising_is_wrong():
    import torch

    from deep_learning_cases.measuring import timing

    x = torch.randn(8192, 8192, device="cuda")

    def call(_):
        torch.mm(x, x)

    wrong = timing.time_calls(call, [None], 3, 10).samples_us
    torch.cuda.synchronize()
    right = timing.time_calls(call, [None], 3, 10, synchronize=torch.cuda.synchronize).samples_us
    assert stats.percentile(right, 0.5) > 5 * stats.percentile(wrong, 0.5)


@cuda
def test_the_case_runs_on_cuda():
    result = cases.latency_case(engine="pytorch", device="cuda", warmups=2, trials=5)
    assert result["execution"]["device"] == "cuda"
    assert "inside the timer" in result["execution"]["synchronised"]
