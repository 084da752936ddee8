"""A/A readings from scripted records: counts, intervals, sentences."""

import math

import pytest

from deep_learning_cases import noise
from deep_learning_cases.errors import InputError
from deep_learning_cases.measuring import stats


def record(first, second, size=1):
    """A record in which every round of each name holds one timing; the second is run first in even rounds."""
    runs = []
    for number, pair in enumerate(zip(first, second, strict=True), 1):
        both = [
            {"round": number, "model": name, "samples_us": {str(size): [value]}}
            for name, value in zip(noise.NAMES, pair, strict=True)
        ]
        runs += both if number % 2 else both[::-1]
    return {
        "models": {name: {"file": "m.onnx"} for name in noise.NAMES},
        "protocol": {"order": [list(noise.NAMES)] * len(first), "batch_sizes": [size]},
        "runs": runs,
    }


def test_alarms_are_counted_trial_by_trial():
    # Trial 1 is far off in every round (an alarm), trial 2 swings around 1 (none).
    reading = noise.reading(record([10.0, 10.1, 9.9, 10, 12, 9], [20.0, 20.0, 20.0, 11, 10, 11]), 3)
    assert (reading["trials"], reading["rounds"], reading["file"]) == (2, 3, "m.onnx")
    batch = reading["batches"]["1"]
    assert (batch["false_alarms"], batch["false_alarm_rate"]) == (1, 0.5)
    assert (batch["rate_low"], batch["rate_high"]) == stats.proportion_interval(1, 2)


def test_the_noise_of_one_process_is_that_of_a_log_ratio_over_the_root_of_two():
    first, second = [math.exp(0.02), math.exp(-0.02)] * 3, [1.0] * 6
    batch = noise.reading(record(first, second), 3)["batches"]["1"]
    deviation = math.sqrt(6 * 0.02**2 / 5)
    assert batch["process_sd_percent"] == pytest.approx(100 * deviation / math.sqrt(2))
    half = stats.t_quantile(0.975, 2) * deviation / math.sqrt(3)
    assert batch["detectable_percent"] == pytest.approx(100 * (math.exp(half) - 1))
    assert batch["low"] < batch["ratio"] < batch["high"]


def test_one_round_shows_no_noise():
    reading = noise.reading(record([1.0], [2.0]), 1)
    batch = reading["batches"]["1"]
    assert (batch["process_sd_percent"], batch["detectable_percent"], batch["low"]) == (None, None, None)
    assert noise.lines(reading)[1] == "batch 1: time ratio to itself 0.500: not told apart, as it should be"


def test_the_lines_state_the_rate_with_its_interval():
    text = noise.lines(noise.reading(record([1, 2, 1, 2] * 3, [2, 1, 2, 1] * 3), 3))
    assert text[0] == "A/A: m.onnx against itself, 4 trials of 3 rounds"
    assert text[1] == "batch 1: 0 false alarms in 4 trials (0 %, 95 % interval 0 to 60 %; promised 5 %)"
    assert "is noise here" in text[2]


def scripted(jobs):
    def launch(job, _):
        jobs.append(job)
        value = 10.0 + len(jobs) % 2
        series = {str(size): [value] * job["repetitions"] for size in job["batch_sizes"]}
        return {
            "pid": 1, "cold_start_us": 1.0, "peak_rss_bytes": 1, "peak_rss_source": "VmHWM", "loop_overhead_us": 0.0,
            "samples_us": series, "warmups_us": {str(size): [1.0] * job["warmups"] for size in job["batch_sizes"]},
        }  # fmt: skip

    return launch


@pytest.fixture
def folder(tmp_path):
    for name in ("data.npz", "model_fp32.onnx", "model_int8.onnx"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_one_model_is_measured_under_two_names_in_turns(folder):
    jobs = []
    result = noise.measure(folder, trials=2, rounds=3, model="int8", launch=scripted(jobs))
    assert len(jobs) == 12
    assert {job["model"].rsplit("/", 1)[-1] for job in jobs} == {"model_int8.onnx"}
    # The first of a round is always slower here; taking turns keeps that from looking like a difference.
    assert result["batches"]["1"]["false_alarms"] == 0
    assert not (folder / "benchmark.json").exists()


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"trials": 1.5}, {"rounds": 0}, {"rounds": True}, {"model": "fp16"}])
def test_wrong_arguments_are_refused(folder, wrong):
    with pytest.raises(InputError, match="expected"):
        noise.measure(folder, launch=scripted([]), **wrong)
