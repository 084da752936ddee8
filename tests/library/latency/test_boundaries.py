"""Preprocessing, cold starts and memory: stages, counts and limits, with scripted clocks and a few real processes."""

import argparse
import io
import json
import sys

import numpy as np
import pytest

from deep_learning_cases import cases, latency_engine
from deep_learning_cases.commands import latency
from deep_learning_cases.errors import EvidenceError, InputError, MeasurementError
from deep_learning_cases.latency import boundaries, fresh_starts, trial
from deep_learning_cases.measuring import fresh_process
from deep_learning_cases.serving import images

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


class Slow:
    """An engine whose calls move the clock; the first may take longer."""

    def __init__(self, *durations_ms):
        self.durations_ms, self.now, self.shapes = list(durations_ms), 0, []

    def clock(self):
        return self.now

    def run(self, batch):
        self.shapes.append((batch.shape, batch.dtype))
        self.now += round(1e6 * (self.durations_ms.pop(0) if len(self.durations_ms) > 1 else self.durations_ms[0]))


def preprocess(engine, **settings):
    return boundaries.preprocessing([2], 16, engine=engine, clock=engine.clock, **settings)


@pytest.mark.parametrize("image_format", images.FORMATS)
def test_what_is_decoded_is_what_the_network_takes(image_format):
    batch = boundaries.prepare([images.photo(64, image_format, seed) for seed in (1, 2, 3)])
    assert (batch.shape, batch.dtype) == ((3, 1, 8, 8), np.float32)
    assert batch.min() >= 0
    assert batch.max() <= 1
    assert not np.array_equal(batch[0], batch[1])


def test_resizing_takes_the_mean_of_the_pixels_by_hand():
    pixels = np.zeros((16, 16), np.uint8)
    pixels[0, 0], pixels[0, 1], pixels[1, 0], pixels[1, 1] = 0, 100, 100, 200
    result = images.to_input(PIL.fromarray(pixels))
    assert result[0, 0, 0] == pytest.approx(100 / 255)
    assert result[0, 1:, 1:].max() == 0


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", images.photo(64, "png", 1)[:500]])
def test_what_cannot_be_decoded_is_refused_in_one_line(content):
    with pytest.raises(InputError, match="expected a whole PNG or JPEG") as caught:
        images.decode(content)
    assert "\n" not in str(caught.value)


def test_a_format_that_is_not_served_stays_closed():
    buffer = io.BytesIO()
    PIL.new("L", (8, 8)).save(buffer, "BMP")
    with pytest.raises(InputError):
        images.decode(buffer.getvalue())


def test_too_many_pixels_are_refused_before_they_are_decoded():
    with pytest.raises(InputError, match="64 x 64 pixels: expected at most 4095"):
        images.decode(images.photo(64, "png", 1), max_pixels=4095)


@pytest.mark.parametrize(("width", "image_format"), [(7, "png"), (5000, "png"), (True, "png"), (64, "gif")])
def test_pictures_that_make_no_sense_are_refused(width, image_format):
    with pytest.raises(InputError, match="expected"):
        images.photo(width, image_format, 1)


@pytest.mark.slow
def test_all_trials_are_made_where_there_is_time():
    engine = Slow(9.0, 1.0)
    row = preprocess(engine, warmups=8, trials=60, seconds=1.0)["results"][2]
    assert (row["warmups"], row["trials"], row["first_call_ms"], row["median_ms"]) == (8, 60, 9.0, 1.0)
    assert "trials_note" not in row
    assert engine.shapes == [((2, 1, 8, 8), np.float32)] * 68


@pytest.mark.slow
def test_a_slow_series_is_cut_and_says_so():
    row = preprocess(Slow(100.0), warmups=8, trials=60, seconds=1.0)["results"][2]
    assert (row["warmups"], row["trials"]) == (2, 8)
    assert row["trials_note"].startswith("2 warm-up(s) and 8 trials instead of 8 and 60")
    assert preprocess(Slow(3000.0), warmups=8, trials=60, seconds=1.0)["results"][2]["trials"] == 3


@pytest.mark.slow
def test_one_slow_first_call_does_not_cut_a_fast_series():
    row = preprocess(Slow(400.0, 1.0), warmups=8, trials=60, seconds=1.0)["results"][2]
    assert (row["warmups"], row["trials"]) == (8, 60)


def test_seconds_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="seconds is 0"):
        preprocess(Slow(1.0), seconds=0)


def fake_process(answers):
    """Stands in for the fresh processes: from the batch size to stages, or to a failure."""

    def launch(job, _timeout_s):
        launch.jobs.append(job)
        answer = answers(job)
        if isinstance(answer, Exception):
            raise answer
        return {"stages": None, "before_bytes": 30, "source": "VmHWM", "reason": None, "fits": True} | answer

    launch.jobs = []
    return launch


def test_a_cold_start_adds_up_and_the_batches_take_turns():
    stages = {"start_ms": 100.0, "import_ms": 20.0, "load_ms": 3.0, "first_call_ms": 0.5, "second_call_ms": 0.1}
    launch = fake_process(lambda _: {"stages": stages})
    part = fresh_starts.cold([1, 8], starts=2, launch=launch)
    assert [job["batch"] for job in launch.jobs] == [1, 8, 8, 1]
    assert all(job["limit_bytes"] is None for job in launch.jobs)
    assert part["results"][8]["median_ms"] == 123.5
    assert len(part["results"][8]["starts"]) == 2


def linear(per_image, base=40, limit=1000):
    def answer(job):
        peak = base + per_image * job["batch"]
        return {"peak_rss_bytes": peak, "fits": peak <= limit, "reason": None if peak <= limit else "over the limit"}

    return answer


@pytest.mark.parametrize(("per_image", "expected"), [(10, 96), (960, 1), (7, 137)])
def test_the_largest_batch_that_fits_is_found(per_image, expected):
    part = fresh_starts.memory([1], limit_bytes=1000, launch=fake_process(linear(per_image)))
    found = part["largest_batch"]
    assert found["fits"] <= expected < found["fails"]
    assert found["fails"] - found["fits"] <= max(1, expected // 64)
    assert found["probes"][found["fits"]]["fits"]
    assert "over the limit" in found["reason"]


def test_not_even_one_image_is_an_answer():
    found = fresh_starts.memory([1], limit_bytes=10, launch=fake_process(linear(1, limit=10)))["largest_batch"]
    assert (found["fits"], found["fails"], list(found["probes"])) == (0, 1, [1])


def test_the_search_ends_where_everything_fits():
    found = fresh_starts.largest_batch(lambda _: {"fits": True, "reason": None}, most=100)
    assert (found["fits"], found["fails"]) == (100, None)


def test_a_process_that_dies_does_not_fit_and_is_no_crash():
    launch = fake_process(lambda _: fresh_process.NoAnswerError("ended by signal 9"))
    row = fresh_starts.memory([4], launch=launch)["results"][4]
    assert (row["fits"], row["peak_rss_bytes"], row["reason"]) == (False, None, "ended by signal 9")


def test_a_process_that_hangs_is_a_failure_of_the_measurement():
    launch = fake_process(lambda _: MeasurementError("did not end within 1 s"))
    with pytest.raises(MeasurementError, match="did not end"):
        fresh_starts.memory([4], launch=launch)


@pytest.mark.parametrize("limit_bytes", [0, -1, 1.5, True, "100", 1 << 60])
def test_limits_that_make_no_sense_are_refused(limit_bytes):
    with pytest.raises(InputError, match="expected"):
        fresh_starts.memory([1], limit_bytes=limit_bytes)


class Engine:
    def __init__(self, run):
        self.run = run


def job(**settings):
    return {
        "model": "m", "engine": "none", "threads": 1, "device": "cpu", "batch": 4, "seed": 1, "limit_bytes": None,
        "started_ns": 1_000_000,
    } | settings  # fmt: skip


def test_the_stages_of_a_cold_start_by_a_scripted_clock():
    readings = iter(ms * 1_000_000 for ms in (101, 121, 200, 203, 210, 212))
    shapes = []
    engine = Engine(lambda batch: shapes.append(batch.shape))
    answer = trial.run_job(job(), lambda *_: engine, lambda: next(readings))
    assert answer["stages"] == {
        "start_ms": 100, "import_ms": 20, "load_ms": 3, "first_call_ms": 7, "second_call_ms": 2,
    }  # fmt: skip
    assert shapes == [(4, 1, 8, 8)] * 2
    assert answer["fits"]


def raising(error, after=1):
    calls = []

    def run(batch):
        calls.append(batch)
        if len(calls) > after:
            raise error

    return Engine(run)


@pytest.mark.parametrize(
    "error", [MemoryError("Unable to allocate 1 TiB"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_an_allocation_that_fails_under_a_limit_is_an_answer(error, monkeypatch):
    monkeypatch.setattr(trial, "watch_memory", lambda _: True)
    answer = trial.run_job(job(limit_bytes=1 << 40), lambda *_: raising(error))
    assert not answer["fits"]
    assert "an allocation failed" in answer["reason"]
    assert answer["stages"] is None


def test_another_failure_is_not_taken_for_a_lack_of_memory(monkeypatch):
    monkeypatch.setattr(trial, "watch_memory", lambda _: True)
    with pytest.raises(RuntimeError, match="wrong shape"):
        trial.run_job(job(limit_bytes=1 << 40), lambda *_: raising(RuntimeError("wrong shape")))


def test_a_peak_over_the_limit_does_not_fit(monkeypatch):
    monkeypatch.setattr(trial, "watch_memory", lambda _: True)
    answer = trial.run_job(job(limit_bytes=1000), lambda *_: Engine(lambda _: None))
    assert not answer["fits"]
    assert "is over the limit" in answer["reason"]


def test_real_processes_start_cold_and_tell_their_memory():
    part = fresh_starts.cold([2], starts=1)
    (start,) = part["results"][2]["starts"]
    assert all(start[stage] >= 0 for stage in fresh_starts.STAGES)
    assert start["total_ms"] == pytest.approx(sum(start[stage] for stage in fresh_starts.STAGES))
    row = fresh_starts.memory([2])["results"][2]
    assert 0 < row["before_bytes"] <= row["peak_rss_bytes"]


def test_without_proc_no_limit_is_set_and_the_peak_alone_judges(monkeypatch):
    monkeypatch.setattr(trial, "_kilobyte_lines", lambda _path: {})
    assert trial.watch_memory(1) is False


@pytest.mark.skipif(not trial._kilobyte_lines("/proc/self/status"), reason="needs /proc/self/status")
def test_a_real_batch_far_beyond_the_limit_is_a_message():
    with latency_engine.model_file("numpy", None, 1) as (path, _):
        settings = {"model": str(path), "engine": "numpy", "batch": 1_000_000, "limit_bytes": 70_000_000}
        command = (sys.executable, *fresh_starts._COMMAND)
        row = fresh_starts._memory_row(lambda: fresh_process.run_fresh(job(**settings), 60.0, command))
    assert not row["fits"]
    assert row["reason"]


def run_command(tmp_path, *options):
    parser = argparse.ArgumentParser()
    latency.add_arguments(parser)
    arguments = parser.parse_args([*options, "--out", str(tmp_path)])
    arguments.json = True
    return latency.command(arguments)


@pytest.mark.slow
def test_the_command_writes_a_record_and_its_figures(tmp_path, capsys):
    options = (
        "--batches",
        "1,8",
        "--boundary",
        "model,preprocessing",
        "--widths",
        "16",
        "--cold",
        "--cold-starts",
        "1",
    )
    assert run_command(tmp_path, *options, "--trials", "4", "--warmups", "2") == 0
    record = cases.load_latency_case(tmp_path / "latency.json")
    assert list(record["results"]) == list(record["boundaries"]["preprocessing_jpeg_16"]["results"]) == [1, 8]
    assert list(record["cold"]["results"]) == list(record["memory"]["results"]) == [1, 8]
    stored = json.loads((tmp_path / "latency.json").read_text())
    stored["cold"]["results"]["8"]["starts"][0]["load_ms"] += 1.0
    (tmp_path / "changed.json").write_text(json.dumps(stored))
    with pytest.raises(EvidenceError, match="/cold/results/8/starts/0/total_ms"):
        cases.load_latency_case(tmp_path / "changed.json")
    said = json.loads(capsys.readouterr().out)
    assert said["record"]["schema"] == "deep-learning-cases/latency/1"
    figures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert sorted(said["alt_texts"]) == figures
    assert len(figures) == 5
    for name in figures:
        assert PIL.open(tmp_path / name).text["Description"] == said["alt_texts"][name]


@pytest.mark.slow
def test_a_batch_that_does_not_fit_is_left_out_and_named(tmp_path, monkeypatch, capsys):
    def fits_up_to_eight(sizes, *, limit_bytes, **_):
        rows = {
            size: {
                "fits": size <= 8, "peak_rss_bytes": 10**6 * size, "before_bytes": 10**6, "source": "VmHWM",
                "reason": None if size <= 8 else "an allocation failed",
            }
            for size in sizes
        }  # fmt: skip
        largest = {"fits": 8, "fails": 9, "reason": "batch 9 does not fit", "probes": {}}
        return {"boundary": "b", "limit_bytes": limit_bytes, "results": rows, "largest_batch": largest}

    monkeypatch.setattr(fresh_starts, "memory", fits_up_to_eight)
    options = ("--batches", "8,64", "--memory-limit-mb", "8", "--trials", "2", "--warmups", "0")
    parser = argparse.ArgumentParser()
    latency.add_arguments(parser)
    arguments = parser.parse_args([*options, "--out", str(tmp_path)])
    arguments.json = False
    assert latency.command(arguments) == 0
    assert list(cases.load_latency_case(tmp_path / "latency.json")["results"]) == [8]
    said = capsys.readouterr().out
    assert "batch 64 does not fit in 8 MB: an allocation failed; it was left out" in said
    assert "the largest batch that fits in 8 MB is 8" in said
    arguments.batches = "64"
    with pytest.raises(MeasurementError, match=r"no batch of \[64\] fits in 8 MB"):
        latency.command(arguments)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--batches", "1;2"), "--batches is '1;2'"),
        (("--batches", "0"), "a batch size is 0"),
        (("--boundary", "http"), "--boundary is 'http'"),
        (("--widths", "x"), "--widths is 'x'"),
        (("--trials", "0"), "trials is 0"),
        (("--seconds", "nan"), "--seconds is nan"),
        (("--cold-starts", "0"), "--cold-starts is 0"),
        (("--memory-limit-mb", "-5"), "--memory-limit-mb is -5"),
    ],
)
def test_options_that_make_no_sense_cost_no_measurement(options, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(fresh_process, "run_fresh", lambda *_: pytest.fail("a process was started"))
    with pytest.raises(InputError) as caught:
        run_command(tmp_path, *options)
    assert expected in str(caught.value)
    assert list(tmp_path.iterdir()) == []
