"""Processes that crash, hang or answer rubbish, each a real one."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import deep_learning_cases
from deep_learning_cases.errors import DeepLearningCasesError, MeasurementError, ModelError
from deep_learning_cases.measuring import fresh_process

JOB = {"threads": 1}


def python(code):
    return [sys.executable, "-c", code]


def run(code, timeout_s=30.0, job=None):
    return fresh_process.run_fresh(job or JOB, timeout_s, python(code))


def test_the_job_goes_in_and_the_answer_comes_out():
    assert run("import sys; print(sys.stdin.readline())", job={"threads": 1, "x": "ü"}) == {"threads": 1, "x": "ü"}


def test_the_threads_and_the_library_are_set_for_the_process():
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    environment = run(code, job={"threads": 2})
    assert environment["OPENBLAS_NUM_THREADS"] == environment["OMP_NUM_THREADS"] == "2"
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(Path(deep_learning_cases.__path__[0]).resolve().parent)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", "ended with code 3 and gave no answer"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("print('hello')", "answered 'hello"),
        ("print('[1, 2]')", "expected one JSON object"),
        ("print('{\"a\": NaN}')", "expected one JSON object"),
        ("print('{}'); print('{}')", "expected one JSON object"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "expected one JSON object"),
        ("print('{}'); raise SystemExit(1)", "ended with code 1 after its answer"),
        ('print(\'{"error": "SystemExit", "message": "sly"}\')', "sly"),
    ],
)
def test_rubbish_is_named_in_one_line(code, expected):
    with pytest.raises(MeasurementError) as caught:
        run(code)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_crash_names_the_signal():
    with pytest.raises(MeasurementError, match="was ended by signal 9"):
        run("import os; os.kill(os.getpid(), 9)")


def test_a_failure_that_has_a_name_keeps_it():
    with pytest.raises(ModelError, match=r"^m\.onnx is not a model$"):
        run('print(\'{"error": "ModelError", "message": "m.onnx is not a model"}\'); raise SystemExit(1)')


def test_an_endless_answer_is_cut_and_the_process_ended():
    with pytest.raises(MeasurementError, match="wrote more than"):
        run("while True: print('x' * 100_000)")


def test_endless_complaints_do_not_block():
    assert run("import sys; sys.stderr.write('x' * 1_000_000); print('{}')") == {}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks processes up in /proc")
@pytest.mark.parametrize(
    "code", ["import time; time.sleep(600)", "import os, time; os.close(1); os.close(2); time.sleep(600)"]
)
def test_a_process_that_hangs_is_ended(code, tmp_path):
    note = tmp_path / "pid"
    with pytest.raises(MeasurementError, match="did not end within 1 s"):
        run(f"import os; open({str(note)!r}, 'w').write(str(os.getpid())); {code}", timeout_s=1.0)
    assert not Path(f"/proc/{note.read_text()}").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks processes up in /proc")
def test_ctrl_c_leaves_no_process(tmp_path):
    note = tmp_path / "pid"

    def interrupt():
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)", timeout_s=60)
    assert not Path(f"/proc/{note.read_text()}").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks processes up in /proc")
def test_ctrl_c_while_the_process_starts_leaves_none(monkeypatch):
    started = []
    real = subprocess.Popen

    def interrupted(*arguments, **settings):
        started.append(real(*arguments, **settings))
        signal.raise_signal(signal.SIGINT)  # the process runs, and nobody outside Popen knows it yet
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run("import time; time.sleep(600)", timeout_s=60)
    assert started[0].returncode is not None
    assert not Path(f"/proc/{started[0].pid}").exists()
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sleep is not a command there")
def test_an_output_held_open_by_a_grandchild_is_not_waited_for():
    code = "import subprocess; print('{}', flush=True); subprocess.Popen(['sleep', '20'])"
    assert run(code, timeout_s=15.0) == {}


def test_an_interpreter_that_is_missing_is_named():
    with pytest.raises(DeepLearningCasesError, match="cannot start /no/such/python"):
        fresh_process.run_fresh(JOB, 1.0, ["/no/such/python"])
