"""``dlcases serve`` and ``dlcases load`` as a person runs them: a process, signals, one line for every mistake."""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deep_learning_cases import load
from deep_learning_cases.commands import load as load_cli
from deep_learning_cases.commands import serve
from deep_learning_cases.errors import EvidenceError, FileError, InputError, MeasurementError, MissingDependencyError
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.models import artefacts
from deep_learning_cases.serving import process as service_process
from deep_learning_cases.serving.load import report
from deep_learning_cases.serving.predictor import PARTS
from tests.library.served import Asking, Scripted, ask, png, running

SERVE = """
import argparse, sys
from deep_learning_cases.commands import serve
parser = argparse.ArgumentParser()
serve.add_arguments(parser)
sys.exit(serve.command(parser.parse_args()))
"""


class _At:
    def __init__(self, url: str) -> None:
        self.url = url


def _serve(*options):
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip


def _load(*options):
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    load_cli.add_arguments(parser)
    return load_cli.command(parser.parse_args([str(option) for option in options]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_gracefully(random_models, number):
    with _serve(random_models, "--model", "int8", "--max-wait-ms", "700", "--max-batch", "4") as process:
        try:
            started = _At(process.stdout.readline().strip())
            assert started.url.startswith("http://127.0.0.1:")
            waiting = Asking(started, body=png(1))
            time.sleep(0.2)  # it waits 0.7 s for company, and gets a signal instead
            process.send_signal(number)
            assert waiting.result()[0] == 200
            assert process.wait(20) == 0
        finally:
            process.kill()
    with pytest.raises(OSError):
        ask(started, "GET", "/healthz")


def test_a_service_process_ends_with_its_parent(random_models):
    settings = service_process.Settings(str(random_models / artefacts.FP32))
    with service_process.serving(settings) as served:
        assert ask(_At(served.url), "GET", "/healthz")[0] == 200
    with pytest.raises(OSError):
        ask(_At(served.url), "GET", "/healthz")


def test_a_service_that_cannot_start_says_why(tmp_path):
    with (
        pytest.raises(MeasurementError, match=r"did not start \(.*absent\.onnx"),
        service_process.serving(service_process.Settings(str(tmp_path / "absent.onnx"))),
    ):
        pass


def test_a_load_is_printed_and_kept(tmp_path, capsys):
    with running(Scripted(), queue_bound=100) as started:
        assert _load(started.url, "--rate", 100, "--seconds", 0.5, "--out", tmp_path / "load.json") == 0
    printed = capsys.readouterr().out
    assert "from the intended start" in printed
    assert "200: " in printed
    record = files.read_json(tmp_path / "load.json")
    assert record["schema"] == "deep-learning-cases/load/1"
    assert len(record["requests"]["status"]) == record["summary"]["requests"]
    assert record["settings"]["rate"] == 100


@pytest.mark.parametrize("rate", [["--rate", 50], ["--concurrency", 1], ["--rate", 50, "--concurrency", 2]])
def test_what_is_kept_follows_the_schema(rate, tmp_path):
    with running(Scripted(), queue_bound=100) as started:
        assert _load(started.url, *rate, "--seconds", 0.3, "--out", tmp_path / "load.json") == 0
    assert schemas.violations(files.read_json(tmp_path / "load.json"), "load") == []


def test_a_load_without_an_answer_follows_the_schema(tmp_path):
    (tmp_path / "image.png").write_bytes(b"no image")
    with running(Scripted()) as started:
        options = ["--rate", 20, "--seconds", 0.3, "--image", tmp_path / "image.png", "--out", tmp_path / "load.json"]
        assert _load(started.url, *options) == 1
    assert schemas.violations(files.read_json(tmp_path / "load.json"), "load") == []


def test_a_record_that_breaks_the_schema_is_not_written(tmp_path, monkeypatch):
    whole = report.record
    monkeypatch.setattr(report, "record", lambda *arguments: whole(*arguments) | {"created_at": "today"})
    with running(Scripted(), queue_bound=100) as started, pytest.raises(EvidenceError, match="/created_at"):
        _load(started.url, "--rate", 50, "--seconds", 0.1, "--out", tmp_path / "load.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_keeps_the_part_and_says_so_in_one_line(kept, tmp_path, monkeypatch, capsys):
    sent = [load.Fate(0.0, 0.0, 0.01, "200", 1, dict.fromkeys(PARTS, 1.0)), load.Fate(0.1, 0.1, 0.2, load.INTERRUPTED)]

    def stopped(*_arguments, **_options):
        raise load.LoadInterrupted(sent)

    monkeypatch.setattr(load, "send", stopped)
    path = tmp_path / "load.json"
    assert _load("http://127.0.0.1:9", "--rate", 50, *(["--out", path] if kept else [])) == 130
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "stopped by Ctrl-C after 2 requests" in told.err
    assert "interrupted: 1" in told.out
    if kept:
        assert str(path) in told.err
        record = files.read_json(path)
        assert schemas.violations(record, "load") == []
        assert record["summary"]["interrupted"] is True
        assert record["requests"]["status"] == ["200", "interrupted"]
    else:
        assert "nothing is kept" in told.err
        assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_any_request_is_the_usual_line(tmp_path, monkeypatch):
    def stopped(*_arguments, **_options):
        raise load.LoadInterrupted([])

    monkeypatch.setattr(load, "send", stopped)
    with pytest.raises(KeyboardInterrupt):
        _load("http://127.0.0.1:9", "--rate", 50, "--out", tmp_path / "load.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_json_is_one_value_and_the_closed_loop_says_what_it_omits(tmp_path, capsys):
    (tmp_path / "image.png").write_bytes(png(3))
    with running(Scripted(), queue_bound=100) as started:
        common = [started.url, "--seconds", 0.2, "--concurrency", 2, "--image", tmp_path / "image.png"]
        assert _load(*common, "--json") == 0
        assert json.loads(capsys.readouterr().out)["kept_up"] is None
        assert _load(*common) == 0
        assert "closed loop: a slow service was sent fewer" in capsys.readouterr().out
        assert _load(*common, "--rate", 50) == 0
        assert "'from sending' omits that waiting" in capsys.readouterr().out


def test_no_answer_at_all_is_exit_code_1(tmp_path):
    (tmp_path / "image.png").write_bytes(b"no image")
    with running(Scripted()) as started:
        assert _load(started.url, "--rate", 20, "--seconds", 0.2, "--image", tmp_path / "image.png") == 1


@pytest.mark.parametrize(
    ("options", "failure", "told"),
    [
        (["http://127.0.0.1:9"], InputError, "neither --rate nor --concurrency"),
        (["http://192.0.2.1:9", "--rate", "1"], InputError, "not this machine"),
        (["http://127.0.0.1:9", "--rate", "-1"], InputError, "rate"),
        (["http://127.0.0.1:9", "--rate", "1", "--out", "/absent/load.json"], FileError, "cannot write"),
        (["http://127.0.0.1:9", "--rate", "1", "--image", "/absent.png"], FileError, "cannot read"),
        (["http://127.0.0.1:9", "--rate", "1", "--width", "3"], InputError, "width"),
        (["http://127.0.0.1:9", "--rate", "1", "--width", "1000000000"], InputError, "width"),
        (["http://127.0.0.1:9", "--rate", "1e308"], InputError, "at most"),
        (["http://127.0.0.1:9", "--rate", "1", "--seconds", "1e308"], InputError, "at most 3600"),
        (["http://127.0.0.1:9", "--rate", "1", "--timeout-s", "1e300"], InputError, r"timeout .* is 1e\+300"),
        (["http://127.0.0.1:9", "--rate", "1", "--timeout-s", "nan"], InputError, "timeout .* is nan"),
        (["http://127.0.0.1:9", "--concurrency", "1000000000"], InputError, "concurrency is 1000000000"),
        (["http://127.0.0.1:9", "--concurrency", "-1"], InputError, "concurrency is -1"),
        (["http://127.0.0.1:9", "--rate", "1", "--arrivals", "bursts:9000000"], InputError, "burst size is 9000000"),
        (
            ["http://127.0.0.1:9", "--rate", "1", "--arrivals", "bursts:" + "9" * 5000],
            InputError,
            "expected bursts:SIZE",
        ),
    ],
)
def test_mistakes_of_a_load_are_one_line(options, failure, told):
    with pytest.raises(failure, match=told):
        _load(*options)


@pytest.mark.parametrize(
    ("options", "failure", "told"),
    [
        (["--port", "70000"], InputError, "--port"),
        (["--model", "int8", "--engine", "numpy"], InputError, "int8"),
        (["--queue", "2"], InputError, "queue bound is 2"),
        (["--max-wait-ms", "-1"], InputError, "longest wait"),
        (["--max-batch", "0"], InputError, "largest batch"),
        (
            ["--max-batch", "1000000000"],
            InputError,
            "largest batch .* is 1000000000: expected a whole number from 1 to 4096",
        ),
        (["--queue", "1" + "0" * 30], InputError, "queue bound .* is 10+: expected"),
        (["--threads", "1000000"], InputError, "threads .* is 1000000: expected a whole number from 1 to 1024"),
        (["--threads", "0"], InputError, "threads .* is 0"),
        (["--max-wait-ms", "1e300"], InputError, "longest wait"),
        (["--max-wait-ms", "nan"], InputError, "longest wait"),
        (["--request-timeout-s", "1e300"], InputError, "request timeout"),
        ([], FileError, "dlcases build"),
    ],
)
def test_mistakes_of_serving_are_one_line(random_models, tmp_path, options, failure, told):
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    folder = random_models if options else tmp_path
    with pytest.raises(failure, match=told):
        serve.command(parser.parse_args([str(folder), *options]))


def test_threads_without_a_core_draw_a_remark(random_models, monkeypatch, capsys):
    monkeypatch.setattr(serve.machine, "usable_cores", lambda: 1)
    monkeypatch.setattr(service_process, "serve", lambda *_arguments: True)
    for threads, told in ((1, ""), (4, "dlcases serve: 4 threads on 1 usable core: they take turns")):
        parser = argparse.ArgumentParser()
        serve.add_arguments(parser)
        assert serve.command(parser.parse_args([str(random_models), "--threads", str(threads)])) == 0
        assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("missing", ["tornado", "PIL", "psutil"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(random_models, missing):
    code = f"import sys; sys.modules[{missing!r}] = None\n" + SERVE.replace(
        "sys.exit(", "from deep_learning_cases.errors import MissingDependencyError\ntry: ("
    ).replace("parse_args()))", "parse_args()))\nexcept MissingDependencyError as error: sys.exit(str(error))")
    done = subprocess.run(
        [sys.executable, "-c", code, str(random_models)], capture_output=True, text=True, check=False, timeout=60,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    assert issubclass(MissingDependencyError, ImportError)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("pip install 'deep_learning_cases[service]'")
    assert done.stdout == ""
