"""What would spoil a measurement, from scripted facts and on this machine."""

import copy
import json

import pytest

from deep_learning_cases import doctor

CALM = {
    "environment": {
        "cpu": {"model": "Fast 9000", "architecture": "x86_64", "flags": ["avx2"]},
        "cores": {"logical": 8, "affinity": 8, "quota": None, "usable": 8},
        "governors": ["performance"],
        "memory": {"total_bytes": 16 << 30, "limit_bytes": None},
        "load_average": [0.1, 0.1, 0.1],
        "thread_settings": {"OMP_NUM_THREADS": None, "OPENBLAS_NUM_THREADS": "1"},
    },
    "engines": {"numpy": "2.3", "onnxruntime": "1.22", "pytorch": "2.8"},
    "clock": {"step_ns": 40, "loop_overhead_us": 0.06},
    "peak_memory_source": "VmHWM",
    "disk": {"path": "evidence", "free_bytes": 10 << 30, "writable": True},
    "on_battery": None,
    "noise": None,
    "noise_failure": None,
}


def changed(path, value):
    facts = copy.deepcopy(CALM)
    place = facts
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return facts


def test_a_calm_machine_has_no_findings():
    assert doctor.findings(CALM) == []
    assert doctor.lines(CALM | {"findings": []})[-1] == "nothing found that would spoil a measurement"


@pytest.mark.parametrize(
    ("path", "value", "level", "words"),
    [
        (("engines", "onnxruntime"), None, "problem", "ONNX Runtime is not installed"),
        (("engines", "pytorch"), None, "note", "PyTorch is not installed"),
        (
            ("environment", "cores"),
            {"logical": 8, "affinity": 8, "quota": 0.5, "usable": 1},
            "problem",
            "0.5 of a core",
        ),
        (
            ("environment", "cores"),
            {"logical": 8, "affinity": 1, "quota": None, "usable": 1},
            "note",
            "1 core is usable",
        ),
        (("environment", "cores"), {"logical": 8, "affinity": 2, "quota": None, "usable": 2}, "note", "2 of 8 cores"),
        (("environment", "load_average"), [5.2, 1, 1], "problem", "load average is 5.2 on 8"),
        (("environment", "memory"), {"total_bytes": 1 << 30, "limit_bytes": 256 << 20}, "problem", "limit is 256 MiB"),
        (("environment", "governors"), ["powersave"], "note", "powersave"),
        (("environment", "cpu"), {"model": None, "flags": ["hypervisor"]}, "note", "virtual machine"),
        (("environment", "thread_settings"), {"OMP_NUM_THREADS": "64"}, "note", "OMP_NUM_THREADS is 64 with 8"),
        (("clock", "step_ns"), 15_600_000, "problem", "steps of 15600000 ns"),
        (("clock", "loop_overhead_us"), 0.9, "note", "adds 0.90 us"),
        (("peak_memory_source",), "ru_maxrss", "note", "ru_maxrss"),
        (("disk", "writable"), False, "problem", "evidence cannot be written"),
        (("disk", "free_bytes"), 1 << 20, "problem", "1 MiB are free"),
        (("on_battery",), True, "problem", "battery"),
        (("noise_failure",), "the process crashed", "problem", "the process crashed"),
    ],
)
def test_each_cause_is_named_with_what_to_do(path, value, level, words):
    facts = changed(path, value)
    found = doctor.findings(facts)
    assert [finding["level"] for finding in found] == [level]
    assert words in found[0]["what"]
    assert found[0]["do"]
    text = doctor.lines(facts | {"findings": found})
    assert text[-1] == f"{level}: {found[0]['what']} -> {found[0]['do']}"


def aa(**batch):
    values = {
        "false_alarms": 0, "false_alarm_rate": 0.0, "rate_low": 0.0, "rate_high": 0.98, "ratio": 1.01, "low": 0.99,
        "high": 1.03, "process_sd_percent": 1.0, "detectable_percent": 2.0,
    }  # fmt: skip
    reading = {"file": "m.onnx", "trials": 1, "rounds": 5, "confidence": 0.95, "batches": {"1": values | batch}}
    return changed(("noise",), reading)


def test_the_reading_is_judged():
    assert doctor.findings(aa()) == []
    assert "12 % at batch 1" in doctor.findings(aa(process_sd_percent=12.0))[0]["what"]
    assert "1.0 % off itself" in doctor.findings(aa(false_alarms=1))[0]["what"]


def test_problems_come_before_notes():
    facts = changed(("engines", "pytorch"), None) | {"on_battery": True}
    assert [finding["level"] for finding in doctor.findings(facts)] == ["problem", "note"]


def test_an_unknown_machine_is_no_finding():
    facts = changed(("environment", "load_average"), None)
    facts["environment"]["governors"] = None
    facts["environment"]["cores"] = {"logical": None, "affinity": None, "quota": None, "usable": 2}
    assert doctor.findings(facts) == []
    assert doctor.lines(facts | {"findings": []})


@pytest.mark.slow
def test_this_machine_is_examined(tmp_path):
    result = json.loads(json.dumps(doctor.examine(tmp_path), allow_nan=False))
    assert result["noise_failure"] is None
    assert result["noise"]["batches"].keys() == {"1", "32"}
    assert result["engines"]["onnxruntime"]
    assert result["disk"]["writable"] is True
    text = doctor.lines(result)
    assert all(isinstance(line, str) and "\n" not in line for line in text)
    assert "A/A: a network of the lab's shape with random weights against itself, 1 trial of 5 rounds" in text
    assert not any("model_fp32.onnx" in line for line in text)
    assert list(tmp_path.iterdir()) == []


def test_the_reading_names_the_model_that_was_measured(built):
    result = doctor.examine(built)
    assert "A/A: model_fp32.onnx against itself, 1 trial of 5 rounds" in doctor.lines(result)


def test_an_evidence_folder_that_is_damaged_is_told_not_raised(tmp_path):
    (tmp_path / "data.npz").write_bytes(b"rubbish")
    (tmp_path / "model_fp32.onnx").write_bytes(b"rubbish")
    result = doctor.examine(tmp_path)
    assert result["noise"] is None
    assert "data.npz" in result["noise_failure"]
    assert any(finding["level"] == "problem" for finding in result["findings"])


def test_the_reading_can_be_left_out(tmp_path):
    assert doctor.examine(tmp_path, aa=False)["noise"] is None


@pytest.mark.parametrize(("text", "expected"), [("Discharging\n", True), ("Charging\n", False), (None, None)])
def test_a_battery_is_noticed(tmp_path, text, expected):
    if text:
        folder = tmp_path / "sys/class/power_supply/BAT0"
        folder.mkdir(parents=True)
        (folder / "status").write_text(text)
    assert doctor.examine(tmp_path, aa=False, root=tmp_path)["on_battery"] is expected
