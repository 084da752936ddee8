"""The benchmark protocol: order, counts, hashes, damage, with scripted processes and with real ones."""

import copy
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from deep_learning_cases import bench
from deep_learning_cases.errors import (
    EvidenceError,
    FileError,
    InputError,
    MeasurementError,
    MissingDependencyError,
    ModelError,
)
from deep_learning_cases.ground import files, machine, schemas
from deep_learning_cases.measuring import fresh_process, stats, trial
from deep_learning_cases.models import artefacts, conv, data


@pytest.fixture(scope="session")
def random_models(tmp_path_factory):
    """A small folder that can be measured: random weights, random images, the second model a little different."""
    folder = tmp_path_factory.mktemp("random-models")
    random = np.random.default_rng(1729)
    images = random.integers(0, 17, (64, 1, 8, 8), dtype=np.uint8)
    labels = np.zeros(64, np.uint8)
    archive = data.archive_bytes(
        calibration_images=images, calibration_labels=labels, test_images=images, test_labels=labels
    )
    (folder / "data.npz").write_bytes(archive)
    for name in ("model_fp32.onnx", "model_int8.onnx"):
        weights = {key: random.normal(0, 0.1, shape).astype(np.float32) for key, shape in conv.WEIGHT_SHAPES.items()}
        (folder / name).write_bytes(artefacts.onnx_bytes(weights))
    return folder


@pytest.fixture
def folder(random_models, tmp_path):
    for path in random_models.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


class Scripted:
    """Stands for the fresh processes: counts from 1, so that every timing of a record is known."""

    def __init__(self, change=None):
        self.jobs, self.count, self.change = [], 0, change or (lambda answer, _: answer)

    def __call__(self, job, timeout_s):
        self.jobs.append(job | {"timeout_s": timeout_s})
        number = len(self.jobs)
        answer = {
            "pid": 1000 + number,
            "cold_start_us": 5000.5,
            "peak_rss_bytes": 60_000_000,
            "peak_rss_source": "VmHWM",
            "samples_us": {str(size): self._next(job["repetitions"]) for size in job["batch_sizes"]},
            "warmups_us": {str(size): [0.5] * job["warmups"] for size in job["batch_sizes"]},
            "loop_overhead_us": 0.07,
        }
        return self.change(answer, number)

    def _next(self, count):
        self.count += count
        return [float(value) for value in range(self.count - count + 1, self.count + 1)]


def test_the_protocol_is_the_one_promised(folder):
    launch = Scripted()
    record = bench.measure(folder, launch=launch, progress=lambda *_: None)
    assert schemas.violations(json.loads(json.dumps(record)), "benchmark") == []
    assert {key: record["protocol"][key] for key in ("rounds", "warmups", "repetitions", "batch_sizes", "threads")} == {
        "rounds": 3, "warmups": 10, "repetitions": 100, "batch_sizes": [1, 32], "threads": 1,
    }  # fmt: skip
    order = [["fp32", "int8"], ["int8", "fp32"], ["fp32", "int8"]]
    assert record["protocol"]["order"] == order
    assert record["protocol"]["garbage_collector"] == "off while timing"
    places = [(run["round"], run["position"], run["model"]) for run in record["runs"]]
    assert places == [(r + 1, p + 1, name) for r, names in enumerate(order) for p, name in enumerate(names)]
    assert [run["pid"] for run in record["runs"]] == [1001, 1002, 1003, 1004, 1005, 1006]
    assert [Path(job["model"]).name for job in launch.jobs] == [f"model_{run['model']}.onnx" for run in record["runs"]]
    assert all(job["threads"] == 1 and job["engine"] == "onnxruntime" for job in launch.jobs)
    assert record["environment"]["thread_settings"] == dict.fromkeys(machine.THREAD_VARIABLES, "1")
    assert record["unit"] == "microseconds per batch"
    assert (record["schema"], record["summary"]) == ("deep-learning-cases/benchmark/1", {})


def test_the_files_are_named_by_their_hashes(folder):
    record = bench.measure(folder, launch=Scripted())
    assert record["data"] == files.file_record(folder / "data.npz")
    assert record["models"]["int8"] == files.file_record(folder / "model_int8.onnx") | {
        "engine": "onnxruntime",
        "precision": "int8",
    }
    assert record["models"]["fp32"]["precision"] == "float32"


def test_no_timing_is_dropped_averaged_or_moved(folder):
    record = bench.measure(folder, launch=Scripted())
    everything = [x for run in record["runs"] for size in ("1", "32") for x in run["samples_us"][size]]
    assert everything == [float(value) for value in range(1, 1201)]
    # Runs in order: fp32, int8, int8, fp32, fp32, int8, each 100 at batch 1 and 100 at batch 32.
    fp32 = [*range(1, 101), *range(601, 701), *range(801, 901)]
    assert bench.merged_samples(record, "fp32", 1) == fp32
    assert bench.merged_samples(record, "fp32", "32") == [value + 100 for value in fp32]


def test_other_protocols_are_recorded_as_they_are(folder):
    models = dict.fromkeys(("a", "b", "c"), bench.DEFAULT_MODELS["fp32"])
    record = bench.measure(
        folder, rounds=2, warmups=0, repetitions=5, batch_sizes=[4], threads=2, models=models, launch=Scripted()
    )
    assert record["protocol"]["order"] == [["a", "b", "c"], ["c", "b", "a"]]
    assert len(record["runs"]) == 6
    assert record["runs"][0]["samples_us"].keys() == {"4"}
    assert schemas.violations(json.loads(json.dumps(record)), "benchmark") == []


def test_progress_counts_the_processes(folder):
    seen = []
    bench.measure(folder, rounds=1, launch=Scripted(), progress=lambda *step: seen.append(step))
    assert seen == [(0, 2, "fp32"), (1, 2, "int8"), (2, 2, "")]


@pytest.mark.parametrize("name", ["data.npz", "model_fp32.onnx", "model_int8.onnx"])
def test_a_file_that_changes_meanwhile_voids_the_run(folder, name):
    def change(answer, number):
        if number == 6:
            (folder / name).write_bytes((folder / name).read_bytes() + b"\0")
        return answer

    with pytest.raises(MeasurementError, match=f"{name} changed while it was measured"):
        bench.measure(folder, launch=Scripted(change))


def test_a_file_that_vanishes_meanwhile_voids_the_run(folder):
    def change(answer, _):
        (folder / "model_int8.onnx").unlink(missing_ok=True)
        return answer

    with pytest.raises(MeasurementError, match=r"model_int8\.onnx changed"):
        bench.measure(folder, launch=Scripted(change))


def damaged(key, value):
    return lambda answer, number: answer | {key: value} if number == 3 else answer


@pytest.mark.parametrize(
    "change",
    [
        damaged("pid", True),
        damaged("peak_rss_bytes", 0),
        damaged("peak_rss_bytes", 1.5),
        damaged("peak_rss_source", None),
        damaged("cold_start_us", -1.0),
        damaged("cold_start_us", math.nan),
        damaged("loop_overhead_us", "0.1"),
        damaged("samples_us", {"1": [1.0] * 100}),
        damaged("samples_us", {"1": [1.0] * 100, "32": [1.0] * 99}),
        damaged("samples_us", {"1": [1.0] * 100, "32": [1.0] * 99 + [0.0]}),
        damaged("samples_us", {"1": [1.0] * 100, "32": [1.0] * 99 + [math.inf]}),
        damaged("samples_us", [[1.0] * 100] * 2),
        damaged("warmups_us", {"1": [], "32": []}),
        lambda *_: {},
    ],
)
def test_an_answer_that_cannot_be_right_is_refused(folder, change):
    (folder / "benchmark.json").write_text("old")
    with pytest.raises(MeasurementError, match="the measuring process answered"):
        bench.measure(folder, launch=Scripted(change))
    assert (folder / "benchmark.json").read_text() == "old"


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0}, {"rounds": True}, {"rounds": 1.0}, {"warmups": -1}, {"repetitions": 0}, {"repetitions": "100"},
        {"batch_sizes": []}, {"batch_sizes": [1, 1]}, {"batch_sizes": [0]}, {"batch_sizes": [None]}, {"threads": 0},
        {"timeout_s": 0}, {"timeout_s": math.nan}, {"timeout_s": None}, {"models": {}},
        {"models": {"m": {"file": "../m.onnx", "engine": "onnxruntime", "precision": "int8"}}},
        {"models": {"m": {"file": "model_fp32.onnx"}}},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_are_refused(folder, wrong):
    with pytest.raises(InputError, match="expected"):
        bench.run(folder, **wrong)


def test_missing_things_are_named(folder):
    with pytest.raises(FileError, match="is not a folder"):
        bench.run(folder / "nowhere")
    (folder / "model_int8.onnx").unlink()
    with pytest.raises(FileError, match=r"model_int8\.onnx"):
        bench.run(folder)


@pytest.fixture
def measured(folder):
    record = bench.measure(folder, launch=Scripted())
    files.write_json(folder / "benchmark.json", record)
    return folder


def test_the_summary_is_the_function_s_own(measured):
    calls = []

    def latency_stats(samples_us, batch_size):
        calls.append((len(samples_us), type(samples_us), batch_size))
        samples_us.clear()
        return {"n": np.int64(300), "p50_us": 1, "p95_us": np.float32(2.5), "images_per_second": 3.0, "extra": object()}

    before = files.read_json(measured / "benchmark.json")
    record = bench.summarise(measured, latency_stats)
    assert calls == [(300, list, 1), (300, list, 32)] * 2
    row = {"n": 300, "p50_us": 1.0, "p95_us": 2.5, "images_per_second": 3.0}
    assert record["summary"] == {name: {"1": row, "32": row} for name in ("fp32", "int8")}
    assert files.read_json(measured / "benchmark.json") == record == before | {"summary": record["summary"]}


def test_the_library_s_summary_is_that_of_the_merged_timings(measured):
    record = bench.summarise(measured, stats.latency_summary)
    merged = [*range(1, 101), *range(601, 701), *range(801, 901)]
    assert record["summary"]["fp32"]["1"] == {
        "n": 300,
        "p50_us": 650.5,
        "p95_us": 885.0,
        "images_per_second": 300 * 1_000_000 / sum(merged),
    }


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {"n": 300}]
    + [
        {"n": 300, "p50_us": 1.0, "p95_us": 1.0, "images_per_second": 1.0} | wrong
        for wrong in (
            {"n": 0}, {"n": 1.5}, {"p50_us": math.nan}, {"p95_us": "1"}, {"p95_us": True}, {"p50_us": None},
            {"images_per_second": math.inf}, {"images_per_second": 10**400},
        )
    ],
    ids=str,
)  # fmt: skip
def test_an_unusable_summary_is_refused_and_nothing_written(measured, answer):
    before = (measured / "benchmark.json").read_bytes()
    with pytest.raises(InputError, match="latency_stats"):
        bench.summarise(measured, lambda *_: answer)
    assert (measured / "benchmark.json").read_bytes() == before


def test_a_failing_function_shows_its_own_error_and_nothing_is_written(measured):
    before = (measured / "benchmark.json").read_bytes()
    with pytest.raises(ZeroDivisionError):
        bench.summarise(measured, lambda samples, size: 1 / 0)  # noqa: ARG005
    assert (measured / "benchmark.json").read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "deep-learning-cases/benchmark/1"}', "null"])
def test_what_is_no_record_is_not_summarised(folder, content):
    (folder / "benchmark.json").write_text(content)
    with pytest.raises(EvidenceError, match=r"benchmark\.json"):
        bench.summarise(folder, stats.latency_summary)
    assert (folder / "benchmark.json").read_text() == content


def test_merging_names_what_there_is(measured):
    record = files.read_json(measured / "benchmark.json")
    with pytest.raises(InputError, match="expected one of fp32, int8 at 1, 32"):
        bench.merged_samples(record, "fp16", 1)


def test_every_key_of_the_record_is_required_or_named(measured):
    record = files.read_json(measured / "benchmark.json")
    for key in record:
        assert schemas.violations({k: v for k, v in record.items() if k != key}, "benchmark")
    for key in record["runs"][0].keys() - {"warmups_us", "loop_overhead_us"}:
        broken = copy.deepcopy(record)
        del broken["runs"][0][key]
        assert schemas.violations(broken, "benchmark"), key
    assert schemas.violations(record | {"extra": 1}, "benchmark")


BARE = """
import sys
import numpy as np, onnxruntime as ort
from deep_learning_cases import machine
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for size in (1, 32):
    session.run(None, {"images": np.zeros((size, 1, 8, 8), np.float32)})
print(machine.peak_rss()[0])
"""
"""What no measuring process can do without.  Python 3.13 needs 12 MB more for it than 3.11 and 3.12."""


@pytest.mark.slow
def test_a_real_run_keeps_the_protocol_and_the_memory_bound(folder):
    record = bench.run(folder, latency_stats=stats.latency_summary)
    stored = files.read_json(folder / "benchmark.json")
    assert stored == json.loads(json.dumps(record))
    assert schemas.violations(stored, "benchmark") == []
    assert len({run["pid"] for run in record["runs"]}) == 6
    for run in record["runs"]:
        assert {size: len(samples) for size, samples in run["samples_us"].items()} == {"1": 100, "32": 100}
        assert {size: len(samples) for size, samples in run["warmups_us"].items()} == {"1": 10, "32": 10}
    assert record["summary"]["fp32"]["32"]["n"] == 300
    output = subprocess.run(
        [sys.executable, "-c", BARE, str(folder / "model_fp32.onnx")],
        capture_output=True,
        text=True,
        check=True,
        env=fresh_process.child_environment(1),
    )
    for run in record["runs"]:
        if run["peak_rss_source"] == "VmHWM":
            assert run["peak_rss_bytes"] <= int(output.stdout) + 6_000_000


def test_the_measuring_process_imports_little():
    code = (
        "import sys; from deep_learning_cases import trial;"
        "print([m for m in ('torch', 'matplotlib', 'jsonschema', 'sklearn', 'onnx', 'tqdm', 'subprocess', 'hashlib',"
        " 'scipy', 'deep_learning_cases.bench', 'deep_learning_cases.cli') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_measuring_needs_neither_the_schema_validator_nor_the_progress_bar():
    code = (
        "import sys; from deep_learning_cases import bench;"
        "print([m for m in ('jsonschema', 'tqdm', 'onnx', 'sklearn', 'torch', 'onnxruntime') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


NEEDED = (
    "__init__", "errors", "bench",
    "ground/__init__", "ground/arguments", "ground/command_line", "ground/files", "ground/machine",
    "ground/out_folder", "ground/progress", "models/__init__", "models/data", "models/engines",
    "measuring/__init__", "measuring/bench_record", "measuring/distributions", "measuring/fresh_process",
    "measuring/stats", "measuring/timing", "measuring/trial",
)  # fmt: skip
"""All of the library that measuring takes; a module more is a module more to carry to a target machine."""


@pytest.mark.slow
def test_a_few_modules_measure_with_numpy_and_onnx_runtime_alone(folder, tmp_path):
    library = tmp_path / "kit" / "deep_learning_cases"
    library.mkdir(parents=True)
    for name in NEEDED:
        copy = library / f"{name}.py"
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((Path(bench.__file__).parent / f"{name}.py").read_bytes())
    # Python imports this by itself at start, in both processes.
    (library.parent / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('jsonschema', 'tqdm', 'onnx', 'sklearn', 'scipy', 'torch', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
    )
    command = [sys.executable, "-m", "deep_learning_cases.bench", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(library.parent)}
    output = subprocess.run(command, capture_output=True, text=True, cwd=library.parent, env=environment)
    assert (output.returncode, output.stderr) == (0, "")
    record = files.read_json(folder / "benchmark.json")
    assert schemas.violations(record, "benchmark") == []
    assert record["summary"]["int8"]["32"]["n"] == 300


def test_a_module_of_the_student_s_folder_is_not_imported_instead(folder, monkeypatch):
    (folder / "numpy.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(folder)
    assert bench.run(folder, rounds=1, repetitions=1)["runs"]


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07" * 50])
def test_what_onnx_runtime_refuses_is_named_and_the_old_record_stays(folder, content):
    (folder / "benchmark.json").write_text("old")
    (folder / "model_int8.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"model_int8\.onnx"):
        bench.run(folder, rounds=1, repetitions=1)
    assert (folder / "benchmark.json").read_text() == "old"


def test_a_runtime_that_is_not_installed_is_named(folder, tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys; sys.modules['onnxruntime'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(blocked))
    with pytest.raises(MissingDependencyError, match="pip install onnxruntime"):
        bench.run(folder, rounds=1, repetitions=1)


def test_other_engines_are_measured_by_the_same_protocol(folder):
    random = np.random.default_rng(1729)
    weights = {key: random.normal(0, 0.1, shape).astype(np.float32) for key, shape in conv.WEIGHT_SHAPES.items()}
    (folder / "model_fp32.npz").write_bytes(artefacts.weights_bytes(weights))
    models = {"numpy": {"file": "model_fp32.npz", "engine": "numpy", "precision": "float32"}}
    record = bench.run(folder, rounds=1, repetitions=3, models=models | {"fp32": bench.DEFAULT_MODELS["fp32"]})
    assert schemas.violations(json.loads(json.dumps(record)), "benchmark") == []
    assert record["models"]["numpy"]["engine"] == "numpy"


def test_an_engine_that_does_not_exist_is_named(folder):
    models = {"m": {"file": "model_fp32.onnx", "engine": "abacus", "precision": "float32"}}
    with pytest.raises(InputError, match="no engine 'abacus'"):
        bench.run(folder, rounds=1, repetitions=1, models=models)


def test_a_summary_that_somebody_spoilt_can_be_made_again(measured):
    record = files.read_json(measured / "benchmark.json")
    files.write_json(measured / "benchmark.json", record | {"summary": {"fp32": "fast"}})
    assert bench.summarise(measured, stats.latency_summary)["summary"]["fp32"]["1"]["n"] == 300


def test_damaged_data_is_named(folder):
    (folder / "data.npz").write_bytes(b"PK\x03\x04 rubbish")
    with pytest.raises(EvidenceError, match=r"data\.npz"):
        bench.run(folder, rounds=1, repetitions=1)


def test_too_few_images_for_a_batch_are_named(folder):
    with pytest.raises(EvidenceError, match="64 test images: expected at least 65"):
        bench.run(folder, rounds=1, repetitions=1, batch_sizes=[65])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os._exit(7)", "code 7"),
        ("print('rubbish')", "rubbish"),
        ("import time; time.sleep(600)", "within 1 s"),
    ],
)
def test_a_process_that_fails_leaves_the_old_record(folder, monkeypatch, code, message):
    (folder / "benchmark.json").write_text("old")
    monkeypatch.setattr(fresh_process, "COMMAND", ("-c", code))
    with pytest.raises(MeasurementError, match=message):
        bench.run(folder, timeout_s=1.0)
    assert (folder / "benchmark.json").read_text() == "old"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks processes up in /proc")
def test_ctrl_c_in_the_middle_leaves_the_old_record_and_no_process(folder):
    (folder / "benchmark.json").write_text("old")
    command = [sys.executable, "-m", "deep_learning_cases.bench", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=fresh_process.child_environment(1)
    )
    children = _wait_for_child(process.pid)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint.strip() == "bench: stopped; the old benchmark.json, if any, is untouched"
    assert (folder / "benchmark.json").read_text() == "old"
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def _wait_for_child(pid):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/task/{pid}/children") as stream:
            children = stream.read().split()
        if children:
            return children
        time.sleep(0.005)
    raise AssertionError("no measuring process was started")


@pytest.mark.slow
def test_the_command_measures_and_prints_the_table(folder, capsys):
    assert bench.main([str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:3] == ["model", "batch", "n"]
    assert [line.split()[:3] for line in out[1:]] == [
        ["fp32", "1", "300"], ["fp32", "32", "300"], ["int8", "1", "300"], ["int8", "32", "300"],
    ]  # fmt: skip
    assert files.read_json(folder / "benchmark.json")["summary"]["int8"]["1"]["n"] == 300


@pytest.mark.parametrize(("arguments", "code"), [(["/no/such/folder"], 1), (["--timeout-s", "-1"], 2)])
def test_the_command_names_what_is_wrong_in_one_line(folder, capsys, arguments, code):
    if len(arguments) > 1:
        arguments = [str(folder), *arguments]
    assert bench.main(arguments) == code
    error = capsys.readouterr().err
    assert error.startswith("bench: ")
    assert error.count("\n") == 1


class ScriptedEngine:
    """An engine whose every call takes one microsecond of a scripted clock more than the call before."""

    def __init__(self):
        self.now = self.calls = 0
        self.seen = []

    def open(self, path, engine, threads):
        self.opened = (path, engine, threads)
        self.now += 50_000
        return self

    def run(self, batch):
        self.calls += 1
        self.seen.append(batch)
        self.now += 1000 * self.calls

    def clock(self):
        return self.now


def test_what_a_measuring_process_times(folder):
    engine = ScriptedEngine()
    job = {"model": "m.onnx", "data": str(folder / "data.npz"), "engine": "numpy", "threads": 1}
    answer = trial.run_job(job | {"warmups": 2, "repetitions": 3, "batch_sizes": [1, 32]}, engine.open, engine.clock)
    assert engine.opened == ("m.onnx", "numpy", 1)
    assert answer["cold_start_us"] == 51.0
    assert answer["warmups_us"] == {"1": [2.0, 3.0], "32": [7.0, 8.0]}
    assert answer["samples_us"] == {"1": [4.0, 5.0, 6.0], "32": [9.0, 10.0, 11.0]}
    assert answer["loop_overhead_us"] == 0.0
    assert answer["pid"] == os.getpid()
    images = data.normalise(data.read_data(folder / "data.npz")["test"].images)
    assert [batch.shape for batch in engine.seen] == [(1, 1, 8, 8)] * 6 + [(32, 1, 8, 8)] * 5
    assert all(batch.dtype == np.float32 and batch.flags.c_contiguous for batch in engine.seen)
    # The cold start takes image 0 and the series start with it again; 64 images are 2 batches of 32.
    for batch, image in zip(engine.seen[1:6], images, strict=False):
        assert np.array_equal(batch[0], image)
    assert np.array_equal(engine.seen[6], images[:32])
    assert np.array_equal(engine.seen[7], images[32:])
    assert np.array_equal(engine.seen[8], images[:32])


@pytest.mark.parametrize("text", ["", "rubbish", "{}", "[]"])
def test_a_measuring_process_without_a_job_says_so(text):
    with pytest.raises(InputError, match="cannot use its job"):
        fresh_process.run_fresh({}, 30.0, _with_input(text))


def _with_input(text):
    code = f"import io, sys; sys.stdin = io.StringIO({text!r}); from deep_learning_cases import trial; trial.main()"
    return [sys.executable, "-c", code]


def test_what_a_library_prints_does_not_spoil_the_answer(folder):
    code = (
        "import sys; from deep_learning_cases import trial; real = trial.run_job;"
        "trial.run_job = lambda job: (print('noise from a library'), real(job))[1]; trial.main()"
    )
    job = {
        "model": str(folder / "model_fp32.onnx"), "data": str(folder / "data.npz"), "engine": "onnxruntime",
        "threads": 1, "warmups": 0, "repetitions": 1, "batch_sizes": [1],
    }  # fmt: skip
    assert fresh_process.run_fresh(job, 60.0, [sys.executable, "-c", code])["samples_us"].keys() == {"1"}


def test_an_interrupt_between_two_processes_writes_nothing(folder):
    def interrupt(answer, number):
        if number == 4:
            signal.raise_signal(signal.SIGINT)
        return answer

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        bench.measure(folder, launch=Scripted(interrupt))
    assert not (folder / "benchmark.json").exists()
