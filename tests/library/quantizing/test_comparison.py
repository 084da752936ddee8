"""The comparison: order, raw record, derived numbers by hand, verdicts, and what Ctrl-C leaves behind."""

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep_learning_cases import comparison, comparison_plots, comparison_trial, torch_quantization
from deep_learning_cases.commands.quantize import lines
from deep_learning_cases.errors import (
    FileError,
    InputError,
    MeasurementError,
    MissingDependencyError,
    ModelError,
)
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.models import artefacts, cifar_network, onnx_export
from deep_learning_cases.quantizing import runners, subjects, variants
from deep_learning_cases.quantizing.comparison import check as comparison_check
from deep_learning_cases.quantizing.comparison import claims as comparison_claims
from deep_learning_cases.quantizing.comparison import predictions, summary
from deep_learning_cases.quantizing.comparison import record as comparison_record

SEED = 1729


@pytest.fixture(scope="module")
def subject():
    return subjects.load("digits", epochs=1, qat_epochs=1)


def answer(job: dict, base_us: float = 100.0) -> dict:
    """What a measuring process would say; int8 takes half the time of float32, a little more in each round."""
    factor = 0.5 if variants.VARIANTS[job["config"]].baseline else 1.0
    samples = [base_us * factor * (1 + 0.001 * (job["seed"] % 7)) + index for index in range(job["iterations"])]
    return {
        "pid": 4242,
        "pinned_cpus": None,
        "backend_ran": job["backend"],
        "cold_start_us": 5000.0,
        "samples_us": {str(size): samples for size in job["batch_sizes"]},
        "warmups_us": {str(size): [9999.0] * job["warmups"] for size in job["batch_sizes"]},
        "rss_before_bytes": 1000,
        "rss_max_bytes": 2000,
        "tracemalloc_peak_bytes": 10,
        "peak_rss_bytes": 3000,
        "peak_rss_source": "VmHWM",
    }


@pytest.fixture(scope="module")
def measured(subject, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    jobs = []

    def launch(job, _timeout_s):
        jobs.append(job)
        return answer(job)

    plan = comparison.Plan(warmups=2, iterations=5, rounds=3, threads=1)
    return comparison.compare(subject, folder, plan, progress=False, launch=launch), folder, jobs


def test_the_record_is_valid_whole_and_on_disk(measured):
    record, folder, _ = measured
    assert schemas.violations(record, "quantization") == []
    assert files.read_json(folder / comparison.FILE) == json.loads(json.dumps(record))
    assert record["partial"] is False
    assert list(record["configs"]) == list(variants.DEFAULT)
    for facts in record["configs"].values():
        assert (folder / "models" / facts["size"]["file"]).stat().st_size == facts["size"]["file_bytes"]


def test_versions_take_turns_and_every_second_round_runs_backwards(measured):
    record, _, jobs = measured
    order = list(variants.DEFAULT)
    assert record["methodology"]["order"] == [order, order[::-1], order]
    assert [job["config"] for job in jobs] == order + order[::-1] + order
    assert [run["position"] for run in record["runs"]] == [1, 2, 3, 4, 5, 6] * 3
    assert {job["seed"] for job in jobs} == {SEED + 1, SEED + 2, SEED + 3}


def test_predictions_and_classes_of_every_version_agree_with_their_own_counts(measured):
    record, _, _ = measured
    labels = np.array(record["data"]["labels"])
    for facts in record["configs"].values():
        accuracy = facts["accuracy"]
        predicted = np.array(accuracy["predictions"])
        assert accuracy["images"] == len(predicted) == len(labels) == 500
        assert accuracy["batch_size"] == 128
        assert accuracy["top1"] == pytest.approx((predicted == labels).mean())
        assert accuracy["top5"] >= accuracy["top1"]
        for row in accuracy["per_class"]:
            rows = labels == row["label"]
            assert (row["images"], row["correct"]) == (rows.sum(), (predicted[rows] == row["label"]).sum())


def test_the_backend_that_ran_stands_in_the_record(measured):
    record, _, _ = measured
    for name in ("dynamic", "static", "qat"):
        backend = record["configs"][name]["backend"]
        assert backend["asked"] == "auto"
        assert backend["ran"] == torch_quantization.choose("auto")
        assert sum(backend["int8_kernels"].values()) == (2 if name == "dynamic" else 4)
    assert record["configs"]["fp32"]["backend"] is None


def test_sizes_tell_what_ships(measured):
    size = {name: facts["size"] for name, facts in measured[0]["configs"].items()}
    assert size["fp32"]["tensor_bytes"] == 4 * 18_154
    assert size["static"]["state_dict_bytes"] < size["dynamic"]["state_dict_bytes"] < size["fp32"]["state_dict_bytes"]
    assert size["onnx_int8"]["onnx_bytes"] < size["onnx_fp32"]["onnx_bytes"] == size["fp32"]["onnx_bytes"]
    assert all(part["why"] for part in size.values())


def test_two_runs_give_the_same_hashes_and_another_seed_others(measured, subject, tmp_path):
    def hashes(seed, name):
        plan = comparison.Plan(warmups=0, iterations=1, rounds=1, threads=1, batch_sizes=[1])
        record = comparison.compare(subject, tmp_path / name, plan, seed, False, lambda job, _: answer(job))
        return {name: facts["state_sha256"] for name, facts in record["configs"].items()}

    first = {name: facts["state_sha256"] for name, facts in measured[0]["configs"].items()}
    assert hashes(SEED, "again") == first
    assert not set(hashes(7, "other").values()) & set(first.values())


def test_percentiles_by_both_definitions_as_worked_by_hand():
    runs = [{"config": "fp32", "threads": 1, "round": 1, "samples_us": {"2": [4.0, 1.0]}},
            {"config": "fp32", "threads": 1, "round": 2, "samples_us": {"2": [3.0, 2.0]}}]  # fmt: skip
    row = summary.summary_of(runs)["fp32"]["1"]["2"]
    # Sorted 1 2 3 4.  Linear: rank 1 + 3 p, so p50 2.5, p95 3.85, p99 3.97.  Nearest rank: the 2nd, 4th and 4th.
    assert (row["n"], row["mean_us"], row["p50_us"]) == (4, 2.5, 2.5)
    assert (row["p95_us"], row["p99_us"]) == (pytest.approx(3.85), pytest.approx(3.97))
    assert row["nearest_rank"] == {"p50_us": 2.0, "p95_us": 4.0, "p99_us": 4.0}
    assert row["p50_interval_us"] is None  # four samples are too few for one
    assert row["images_per_second"] == 2e6 / 2.5


def test_linear_interpolation_is_numpys_default(measured):
    record, _, _ = measured
    samples = summary.merged_samples(record["runs"], "static", 1, 8)
    row = record["summary"]["static"]["1"]["8"]
    assert len(samples) == row["n"] == 15
    for name, level in (("p50_us", 50), ("p95_us", 95), ("p99_us", 99)):
        assert row[name] == pytest.approx(np.percentile(samples, level))
        assert row["nearest_rank"][name] == np.percentile(samples, level, method="inverted_cdf")


def test_speed_pairs_rounds_and_leaves_out_what_one_lacks():
    def run(config, number, value):
        return {"config": config, "threads": 1, "round": number, "samples_us": {"1": [value]}}

    runs = [run("fp32", 1, 10), run("static", 1, 5), run("fp32", 2, 10), run("static", 2, 5.5), run("fp32", 3, 99)]
    speed = summary.speed_of(runs, {"fp32": None, "static": "fp32"})
    row = speed["static"]["1"]["1"]
    assert row["round_ratios"] == pytest.approx([0.5, 0.55])
    assert row["baseline"] == "fp32"
    assert "fp32" not in speed


def test_memory_is_the_largest_over_the_rounds():
    keys = {"rss_before_bytes": 5, "rss_max_bytes": 7, "peak_rss_bytes": 9, "tracemalloc_peak_bytes": 1}
    run = {"config": "fp32", "threads": 1, "peak_rss_source": "VmHWM", **keys}
    row = summary.memory_of([run, run | {"rss_max_bytes": 8}])["fp32"]["1"]
    assert row == keys | {"rss_max_bytes": 8, "peak_rss_source": "VmHWM"}


def facts(name="static", state=40, low=-0.5, high=0.5):
    return {
        "baseline": None if name == "fp32" else "fp32",
        "size": {"state_dict_bytes": 100 if name == "fp32" else state, "file_bytes": 1},
        "loss": None if name == "fp32" else {
            "loss_pp": (low + high) / 2, "interval_pp": {"low": low, "high": high}, "lost": 1, "gained": 1,
            "worst_class": {"label": 3, "name": "3", "change_pp": -2.0},
        },
    }  # fmt: skip


def claims(speed=None, **kwargs):
    configs = {"fp32": facts("fp32"), "static": facts(**kwargs)}
    return comparison_claims.claims_of(configs, {"static": speed or {}})["static"]


def row(verdict, low, high):
    return {"verdict": verdict, "ratio": (low + high) / 2, "low": low, "high": high, "rounds": 3}


@pytest.mark.parametrize(
    ("by_threads", "verdict"),
    [
        ({"2": row("faster", 0.4, 0.6), "1": row("faster", 0.5, 0.7)}, "true"),
        ({"2": row("slower", 1.4, 1.6), "1": row("slower", 1.5, 1.7)}, "false"),
        ({"2": row("faster", 0.4, 0.6), "1": row("slower", 1.5, 1.7)}, "inconclusive"),
        ({"2": row("faster", 0.4, 0.6), "1": row("inconclusive", 0.5, 1.7)}, "inconclusive"),
        ({}, "inconclusive"),
    ],
)
def test_faster_needs_every_thread_count_to_agree(by_threads, verdict):
    speed = {threads: {"32": value} for threads, value in by_threads.items()}
    found = claims(speed)["faster at batch 32"]
    assert found["verdict"] == verdict
    assert "on this machine" in found["text"]
    assert set(found["evidence"]) == set(by_threads)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.5, 0.5, "true"), (0.2, 1.0, "true"), (-0.5, 1.01, "inconclusive"), (0.5, 2.0, "inconclusive"),
     (1.01, 3.0, "false")],
)  # fmt: skip
def test_as_accurate_asks_the_whole_interval(low, high, verdict):
    found = claims(low=low, high=high)["as accurate"]
    assert found["verdict"] == verdict
    assert "class 3 lost most, 2.0" in found["text"]


def test_smaller_compares_what_ships():
    assert claims(state=99)["smaller"]["verdict"] == "true"
    assert claims(state=100)["smaller"]["verdict"] == "false"
    assert list(claims()) == list(comparison_claims.CLAIMS)


def test_accuracy_and_loss_of_four_images_by_hand():
    labels = np.array([0, 1, 1, 2], np.uint8)
    before = predictions.accuracy(np.eye(7, dtype=np.float32)[[0, 1, 1, 0]], labels, list("abcdefg"))
    after = predictions.accuracy(np.eye(7, dtype=np.float32)[[0, 0, 1, 2]], labels, list("abcdefg"))
    assert (before["top1"], after["top1"]) == (0.75, 0.75)
    # The last image: class 0 leads, then 1 and 2 by their number, so that class 2 is among the first five.
    assert before["top5"] == 1.0
    found = predictions.loss("fp32", before, after, labels)
    assert (found["lost"], found["gained"], found["loss_pp"], found["agreement"]) == (1, 1, 0.0, 0.5)
    assert found["worst_class"] == {"label": 1, "name": "b", "change_pp": -50.0}
    assert [part["change_pp"] for part in after["per_class"]][:3] == [0.0, -50.0, 100.0]
    assert after["per_class"][6]["top1"] is None
    assert found["interval_pp"]["low"] < 0 < found["interval_pp"]["high"]


def test_logits_that_are_not_finite_or_do_not_fit_are_refused():
    with pytest.raises(ModelError, match="NaN"):
        predictions.accuracy(np.full((1, 2), np.nan, np.float32), np.array([0], np.uint8), ["a", "b"])
    with pytest.raises(InputError):
        predictions.accuracy(np.zeros((1, 2), np.float32), np.array([0, 1], np.uint8), ["a", "b"])


class Scripted:
    """A clock whose passes take 1, 2, 3, ... microseconds; reading it is free."""

    def __init__(self):
        self.now, self.readings = 0, 0

    def __call__(self):
        self.readings += 1
        if self.readings % 2 == 0:
            self.now += 500 * self.readings
        return self.now


def runner(seen):
    return runners.Runner(
        run=lambda x: seen.append(("run", float(x[0]))),
        prepare=lambda x: seen.append(("prepare", float(x[0]))) or x,
        logits=lambda x: x,
        synchronize=lambda: seen.append(("wait", 0.0)),
        engine=lambda: None,
        kernels=lambda _: {},
    )


def test_each_pass_gets_a_fresh_input_outside_the_timer_and_warm_ups_stand_apart():
    seen, drawn, resident = [], iter(range(100)), iter([10, 50, 20, 20, 20])
    samples, warmups, largest = comparison_trial.measure_series(
        runner(seen), lambda: np.array([next(drawn)], np.float32), 2, 3, lambda: next(resident), Scripted()
    )
    assert warmups == [1.0, 2.0]
    assert samples == [3.0, 4.0, 5.0]
    assert largest == 50
    assert [value for what, value in seen if what == "run"] == [0, 1, 2, 3, 4]
    assert [what for what, _ in seen[:4]] == ["prepare", "wait", "run", "wait"]


def test_a_clock_that_runs_backwards_voids_the_series():
    times = iter([5, 3])
    with pytest.raises(MeasurementError, match="ran back"):
        comparison_trial.measure_series(
            runner([]), lambda: np.zeros(1, np.float32), 0, 1, lambda: 1, lambda: next(times)
        )


@pytest.mark.slow
def test_real_processes_answer_with_raw_samples_and_the_backend_that_ran(subject, tmp_path):
    plan = comparison.Plan(configs=["static", "onnx_fp32"], warmups=1, iterations=3, rounds=1, threads=1, pin=True)
    record = comparison.compare(subject, tmp_path, plan, progress=False)
    assert list(record["configs"]) == ["fp32", "static", "onnx_fp32"]
    assert len({run["pid"] for run in record["runs"]}) == 3
    for run in record["runs"]:
        assert {size: len(samples) for size, samples in run["samples_us"].items()} == {"1": 3, "8": 3, "32": 3}
        assert {len(samples) for samples in run["warmups_us"].values()} == {1}
        assert min(min(samples) for samples in run["samples_us"].values()) > 0
        assert run["peak_rss_bytes"] >= run["rss_before_bytes"] > 10_000_000
        assert len(run["pinned_cpus"]) == 1
        assert run["backend_ran"] == (plan.backend if run["config"] == "static" else None)
    with_torch, without = (
        next(run for run in record["runs"] if run["config"] == name) for name in ("fp32", "onnx_fp32")
    )
    assert without["peak_rss_bytes"] < with_torch["peak_rss_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backend_ran": "qnnpack"}, "ran on the backend 'qnnpack': expected"),
        ({"samples_us": {"1": [1.0]}}, "samples_us"),
        ({"warmups_us": {}}, "warmups_us"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_an_error(subject, tmp_path, change, message):
    plan = comparison.Plan(
        configs=["static"], warmups=1, iterations=2, rounds=1, threads=1, batch_sizes=[1], backend="x86"
    )
    with pytest.raises(MeasurementError, match=message):
        comparison.compare(subject, tmp_path, plan, progress=False, launch=lambda job, _: answer(job) | change)


def test_a_count_with_a_decimal_point_is_read_as_json_means_it(measured):
    record = json.loads(json.dumps(measured[0]))
    plain = list(comparison_check._runs(record))
    record["methodology"]["rounds"] = 3.0
    assert schemas.violations(record, "quantization") == []
    assert list(comparison_check._runs(record)) == plain


@pytest.mark.slow
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), MeasurementError("the process hung: expected an answer")])
def test_what_was_measured_before_a_stop_is_kept_and_marked(subject, tmp_path, failure):
    done = []

    def launch(job, _timeout_s):
        if len(done) == 4:
            raise failure
        done.append(job)
        return answer(job)

    plan = comparison.Plan(configs=["dynamic"], warmups=1, iterations=3, rounds=3, threads=1)
    with pytest.raises(type(failure)):
        comparison.compare(subject, tmp_path, plan, progress=False, launch=launch)
    record = files.read_json(tmp_path / comparison.FILE)
    assert schemas.violations(record, "quantization") == []
    assert record["partial"] is True
    assert record["stopped"] == ("stopped by Ctrl-C" if isinstance(failure, KeyboardInterrupt) else str(failure))
    assert len(record["runs"]) == 4
    assert record["speed"]["dynamic"]["1"]["1"]["rounds"] == 2
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.slow
def test_a_stop_before_any_round_leaves_sizes_and_predictions(subject, tmp_path):
    def launch(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        comparison.compare(
            subject, tmp_path, comparison.Plan(configs=["fp32"], threads=1), progress=False, launch=launch
        )
    record = files.read_json(tmp_path / comparison.FILE)
    assert record["runs"] == []
    assert record["configs"]["fp32"]["accuracy"]["images"] == 500
    assert comparison_plots.pictures(record) == []
    assert lines(record)


def test_a_model_that_changes_while_it_is_measured_voids_the_run(subject, tmp_path):
    def launch(job, _):
        (tmp_path / "models" / "fp32.pt").write_bytes(b"other")
        return answer(job)

    plan = comparison.Plan(configs=["fp32"], iterations=1, rounds=1, threads=1)
    with pytest.raises(MeasurementError, match=r"fp32\.pt changed"):
        comparison.compare(subject, tmp_path, plan, progress=False, launch=launch)


def test_versions_that_need_what_is_missing_are_left_out_with_the_reason(subject, tmp_path, monkeypatch):
    monkeypatch.setattr(variants, "missing", lambda name: "no compiler here" if name == "compiled" else None)
    plan = comparison.Plan(configs=["fp32", "compiled"], iterations=1, rounds=1, threads=1)
    record = comparison.compare(subject, tmp_path, plan, progress=False, launch=lambda job, _: answer(job))
    assert record["skipped"] == {"compiled": "no compiler here"}
    assert list(record["configs"]) == ["fp32"]
    assert "left out: compiled: no compiler here" in lines(record)


def test_without_a_cuda_device_the_record_says_so(measured):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    record, _, _ = measured
    assert record["gpu"]["present"] is False
    assert "no CUDA device" in record["gpu"]["reason"]
    assert "no CUDA device" in variants.missing("cuda_fp16")


def test_without_torchao_pt2e_names_the_command(monkeypatch):
    from deep_learning_cases.quantizing import pt2e

    def gone(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(pt2e.importlib, "import_module", gone)
    monkeypatch.setattr(pt2e.shutil, "which", lambda _: "/usr/bin/g++")
    with pytest.raises(MissingDependencyError, match="pip install torchao"):
        pt2e.require()
    monkeypatch.setattr(pt2e.shutil, "which", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"C\+\+ compiler"):
        pt2e.require(quantizer=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"configs": ["fp32", "int4"]}, "no configuration 'int4': expected some of fp32, dynamic"),
        ({"configs": []}, "no configuration"),
        ({"configs": ["fp32", "fp32"]}, "repeat one"),
        ({"backend": "mkl"}, "no backend 'mkl'"),
        ({"iterations": 0}, "iters is 0: expected a whole number from 1"),
        ({"warmups": -1}, "warmup is -1"),
        ({"rounds": 0}, "rounds is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"batch_sizes": []}, "batch sizes"),
        ({"batch_sizes": [1, 1]}, "batch sizes"),
        ({"batch_sizes": [0]}, "a batch size is 0"),
        ({"iterations": True}, "iters is True"),
        ({"iterations": 100_000, "threads": 1}, "would keep 7,200,720 timings: expected at most 150,000"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as error:
        comparison.Plan(**arguments)
    assert "\n" not in str(error.value)


def test_batches_larger_than_the_data_and_too_little_memory_are_refused(subject, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a batch of 501 is larger than the test set of 500 images"):
        comparison.compare(subject, tmp_path, comparison.Plan(batch_sizes=[501]))
    monkeypatch.setattr(comparison, "_free_bytes", lambda: 50_000_000)
    with pytest.raises(MeasurementError, match="only 50 MB of memory are free: expected at least 700 MB"):
        comparison.compare(subject, tmp_path, comparison.Plan())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(subject, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot make the folder"):
        comparison.compare(subject, tmp_path / "file", comparison.Plan())


def test_the_default_threads_are_pytorchs_own_and_one():
    plan = comparison.Plan()
    assert plan.threads == list(dict.fromkeys([torch.get_num_threads(), 1]))
    assert comparison.Plan(threads=3).threads == [3]


def test_baselines_are_added_and_the_order_is_the_tables():
    assert variants.choose(["onnx_int8", "dynamic"]) == ["fp32", "dynamic", "onnx_fp32", "onnx_int8"]


def test_figures_have_titles_units_words_and_other_marks_for_every_version(measured):
    record, _, _ = measured
    drawn = comparison_plots.pictures(record)
    assert [picture.name for picture in drawn] == ["size-against-speed-1", "class-changes", "distributions-1"]
    for picture in drawn:
        assert "static" in picture.alt_text
        labels = [axes.get_xlabel() for axes in picture.figure.axes]
        assert set(labels) <= {"size, KiB", "class", "µs per batch"}
        assert picture.caption
    assert len({style[:2] for style in comparison_plots.STYLES.values()}) == len(variants.VARIANTS)
    assert set(comparison_plots.STYLES) == set(variants.VARIANTS)


def test_the_general_exporter_agrees_with_the_digits_own(random_weights, random_images):
    import onnxruntime as ort

    from deep_learning_cases.models import network

    model = network.from_weights(random_weights)
    found = []
    for content in (onnx_export.sequential_bytes(model, (1, 8, 8), 10, "digits"), artefacts.onnx_bytes(random_weights)):
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        found.append(session.run(None, {"images": random_images})[0])
    assert np.array_equal(*found)


@pytest.mark.slow
def test_the_cifar_network_survives_every_technique_and_the_exporter(tmp_path):
    rng = np.random.default_rng(2)
    images, labels = rng.integers(0, 256, (40, 3, 32, 32), dtype=np.uint8), np.arange(40, dtype=np.uint8) % 10
    split = subjects.Dataset("cifar10", *(subjects.data.Split(images, labels) for _ in range(3)))
    subject = subjects.Subject(
        "cifar10", "random", "VGG-style CNN", split, [str(label) for label in range(10)], (3, 32, 32), 1, 1,
        cifar_network.normalise,
    )  # fmt: skip
    plan = comparison.Plan(warmups=0, iterations=2, rounds=1, threads=1, batch_sizes=[1])
    record = comparison.compare(subject, tmp_path, plan, progress=False, launch=lambda job, _: answer(job))
    agreement = {name: facts["loss"]["agreement"] for name, facts in record["configs"].items() if facts["loss"]}
    assert set(agreement) == {"dynamic", "static", "qat", "onnx_int8"}
    assert record["network"]["parameters"] == 551_018
    fp32, onnx = (record["configs"][name]["accuracy"]["predictions"] for name in ("fp32", "onnx_fp32"))
    assert fp32 == onnx
    assert (
        record["configs"]["static"]["size"]["state_dict_bytes"]
        < 0.3 * record["configs"]["fp32"]["size"]["state_dict_bytes"]
    )


def test_a_layer_that_cannot_be_exported_is_named():
    with pytest.raises(ModelError, match="LSTM"):
        onnx_export.sequential_bytes(torch.nn.Sequential(torch.nn.LSTM(2, 2)), (1, 8, 8), 10, "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnist"}, "no data set 'mnist': expected digits or cifar10"),
        ({"name": "cifar10"}, "cifar10 without an archive: download"),
        ({"name": "digits", "archive": "x.tar.gz"}, "add --data cifar10"),
        ({"epochs": 0}, "epochs is 0"),
    ],
)
def test_a_subject_that_does_not_exist_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        subjects.load(**arguments)


def test_a_subject_is_frozen(subject):
    with pytest.raises(dataclasses.FrozenInstanceError):
        subject.name = "other"


def test_a_busy_machine_gets_a_caveat_and_a_quiet_one_none(monkeypatch):
    monkeypatch.setattr(comparison_record.machine, "usable_cores", lambda: 2)
    quiet, busy = ([{"load_average": [load, 9.0, 9.0]}] * 3 for load in (3.9, 4.1))
    assert comparison_record.busy(quiet, [2, 1]) == []
    assert "4.1 on 2 usable cores" in comparison_record.busy(busy, [2, 1])[0]
    assert comparison_record.busy([{"load_average": None}], [1]) == []
