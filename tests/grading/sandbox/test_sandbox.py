"""The box as a kernel: what a notebook can do in it, what the calls bring back, and what is reported."""

import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from grading.sandbox.box import Box, ComputeFailed, open_box
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call, Cell, Run
from grading.sandbox.wall.plan import IsolationUnavailable

ANSWER = "def latency_stats(samples_us, batch_size):\n    return "
FULL = '{"n": len(samples_us), "p50_us": 2.0, "p95_us": 3, "images_per_second": 4.5}'


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    try:
        opened = open_box(Limits(seconds_per_cell=10))
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def run(box: Box, *sources: str, calls: list[Call] | None = None, files: Path | None = None) -> Run:
    return box.run([Cell(str(number), source) for number, source in enumerate(sources)], files, calls or [])


def text(result: Run, cell: str = "0", name: str = "stdout") -> str:
    return "".join(o["text"] for o in result.outputs[cell] if o["output_type"] == "stream" and o["name"] == name)


def ask(box: Box, source: str, samples: object = None, batch_size: object = 32, container: str = "list") -> dict:
    call = Call("a", [1.5, 2.5] if samples is None else samples, batch_size, container)
    return run(box, source, calls=[call]).answers["a"]


# A kernel ------------------------------------------------------------------------------------------------------------


def test_prints_results_and_counts_come_back_as_notebook_outputs(box: Box) -> None:
    result = run(box, "print('hi')\n1 + 1", "x = 2;", "x")
    assert result.outputs["0"] == [
        {"output_type": "stream", "name": "stdout", "text": "hi\n"},
        {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": "2"}, "execution_count": 1},
    ]
    assert result.outputs["1"] == []
    assert result.execution_counts == {"0": 1, "1": 2, "2": 3}
    assert result.finished == ["0", "1", "2"]
    assert result.stopped is None


def test_an_exception_is_recorded_and_the_next_cell_runs(box: Box) -> None:
    result = run(box, "1 / 0", "print('on')")
    (error,) = result.outputs["0"]
    assert error["output_type"] == "error"
    assert error["ename"] == "ZeroDivisionError"
    assert text(result, "1") == "on\n"


def test_a_cell_that_is_not_to_run_keeps_its_place(box: Box) -> None:
    result = box.run([Cell("a", "print(1)", run=False), Cell("b", "print(2)")])
    assert result.outputs["a"] == []
    assert result.execution_counts["a"] is None
    assert result.execution_counts["b"] == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("!echo hello", "hello"),
        ("%%bash\necho from bash", "from bash\n"),
        ("import asyncio\nawait asyncio.sleep(0.01)\nprint('awaited')", "awaited\n"),
        ("%time pass", "CPU times"),
        ("import os\nos.system('echo at C level')", "at C level\n"),
        ("import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start(); t.join()", "thread\n"),
        ("from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')", "kept\n"),
        (
            "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, 2]))",
            "[1, 2]\n",
        ),
        ("%%writefile note.txt\nhello", "Writing note.txt\n"),
        ("import sys\nprint(sys.stdin.read() == '')", "True\n"),
        ("%matplotlib inline\nprint('drawn')", "drawn\n"),
        ("help(len)", "Help on built-in function len"),
        ("%cd /\nprint('moved')", "/\nmoved\n"),
        ("%store", "Stored variables"),
    ],
    ids=[
        *("shell", "bash", "await", "time", "C", "thread", "clear", "processes", "writefile", "stdin", "inline"),
        *("help", "cd", "store"),
    ],
)
def test_what_notebooks_do_works(box: Box, source: str, expected: str) -> None:
    assert text(run(box, source)).replace("\r", "").startswith(expected)


def test_inline_figures_and_display_updates(box: Box) -> None:
    result = run(
        box,
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        "from IPython.display import display\nh = display('one', display_id='q')",
        "h.update('two')",
    )
    (figure,) = result.outputs["0"]
    assert figure["data"]["image/png"].startswith("iVBOR")
    assert result.outputs["1"][0]["data"]["text/plain"] == "'two'"


def test_a_figure_shown_during_a_call_is_not_drawn(box: Box) -> None:
    """Thirty pictures that nobody sees would take their function over the time of all calls."""
    drawing = (
        "import matplotlib.pyplot as plt\nimport matplotlib.figure\ndrawn = 0\n"
        "original = matplotlib.figure.Figure.draw\n"
        "def draw(*given):\n    global drawn\n    drawn += 1\n    return original(*given)\n"
        "matplotlib.figure.Figure.draw = draw\n"
        "def latency_stats(samples_us, batch_size):\n    plt.plot(samples_us)\n    plt.show()\n"
        "    return {'n': drawn, 'p50_us': 1, 'p95_us': 1, 'images_per_second': 1}\n"
    )
    result = run(box, drawing + "plt.plot([1])\nplt.show()\nprint(drawn)", calls=[Call("a", [1.0, 2.0], 1)])
    assert int(text(result)) > 0
    assert result.answers["a"]["value"]["n"] == int(text(result))


def test_input_is_an_error_and_not_a_wait(box: Box) -> None:
    assert run(box, "input('?')").outputs["0"][0]["ename"] == "StdinNotImplementedError"


@pytest.mark.slow
def test_a_slow_cell_is_interrupted_and_the_rest_still_counts() -> None:
    with open_box(Limits(seconds_per_cell=1)) as quick:
        result = run(quick, "import time\nprint('start')\ntime.sleep(60)", ANSWER + FULL, calls=[Call("a", [1.0], 1)])
        assert result.stopped == {
            "why": "time",
            "cell": "0",
            "message": "stopped after 1 s: the cell was still running",
        }
        assert text(result) == "start\n"
        assert result.outputs["0"][-1]["ename"] == "KeyboardInterrupt"
        assert result.answers["a"]["ok"] is True


def test_staged_files_are_there_and_changes_are_listed(box: Box, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("content")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text("VALUE = 3")
    (tmp_path / "link").symlink_to("/etc/passwd")
    result = run(
        box,
        "import os\nprint(open('data.txt').read(), sorted(os.listdir('.')))",
        "import sub.helper\nprint(sub.helper.VALUE)",
        "open('new.bin', 'wb').write(b'abc');",
        files=tmp_path,
    )
    assert text(result) == "content ['data.txt', 'sub']\n"
    assert text(result, "1") == "3\n"
    assert result.files == [{"file": "new.bin", "bytes": 3}]


def test_nothing_is_left_for_the_next_submission(box: Box) -> None:
    run(
        box,
        "import os, builtins\nopen('left', 'w'); open('/tmp/left', 'w'); builtins.left = 1; os.environ['LEFT'] = '1'",
    )
    result = run(
        box,
        "import os, builtins\nprint(os.listdir('.'), os.listdir('/tmp'))\n"
        "print(hasattr(builtins, 'left'), 'LEFT' in os.environ)",
    )
    assert "left" not in text(result).replace("hasattr", "")
    assert "False False" in text(result)


def test_temporary_files_and_home_are_the_submissions_own(box: Box) -> None:
    source = (
        "import os, tempfile\nopen(os.path.expanduser('~/x'), 'w').close()\n"
        "with tempfile.NamedTemporaryFile() as f: print('server' in f.name)"
    )
    assert text(run(box, source)) == "False\n"


def test_random_numbers_differ_between_submissions(box: Box) -> None:
    source = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    assert text(run(box, source)) != text(run(box, source))


# Calls ---------------------------------------------------------------------------------------------------------------


def test_answers_come_back_as_plain_numbers(box: Box) -> None:
    source = (
        "import numpy as np\nfrom fractions import Fraction\nfrom decimal import Decimal\n"
        "def latency_stats(samples_us, batch_size):\n"
        "    return {'n': np.int64(len(samples_us)), 'p50_us': np.array(2.5), 'p95_us': Fraction(7, 2),\n"
        "            'images_per_second': Decimal('4.25'), 'extra': object()}"
    )
    answer = ask(box, source)
    assert answer["ok"] is True
    assert answer["returned"] == "dict"
    assert answer["value"] == {"n": 2, "p50_us": 2.5, "p95_us": 3.5, "images_per_second": 4.25}
    assert type(answer["value"]["n"]) is int


def test_what_is_no_number_is_named(box: Box) -> None:
    answer = ask(box, ANSWER + "{'n': True, 'p50_us': float('nan'), 'p95_us': '3'}")
    assert answer["value"] == {"n": "bool", "p50_us": None, "p95_us": "str", "images_per_second": "missing"}
    assert answer["notes"] == {"p50_us": "nan"}


def test_other_results_are_named_by_type(box: Box) -> None:
    assert ask(box, ANSWER + "None")["returned"] == "NoneType"
    assert ask(box, ANSWER + "(1, 2)")["value"] is None


def test_exceptions_are_named_with_their_ancestors_and_without_their_text(box: Box) -> None:
    source = "class BadTiming(ValueError): pass\ndef latency_stats(s, b):\n    raise BadTiming(str(s))"
    answer = ask(box, source, [12.5])
    assert answer["error"]["type"] == "BadTiming"
    assert answer["error"]["mro"][:2] == ["BadTiming", "ValueError"]
    assert "12.5" not in json.dumps({key: value for key, value in answer.items() if key != "samples_after"})


@pytest.mark.parametrize(
    ("container", "kind"), [("list", "list"), ("tuple", "tuple"), ("numpy", "float64"), ("numpy_int", "int64")]
)
def test_samples_arrive_in_the_wanted_container(box: Box, container: str, kind: str) -> None:
    source = (
        "def latency_stats(s, b):\n"
        "    raise {'list': KeyError, 'tuple': IndexError, 'float64': OSError, 'int64': EOFError}"
        "[str(getattr(s, 'dtype', type(s).__name__))]"
    )
    wanted = {"list": "KeyError", "tuple": "IndexError", "float64": "OSError", "int64": "EOFError"}[kind]
    assert ask(box, source, [1, 2], container=container)["error"]["type"] == wanted


def test_a_changed_input_is_seen(box: Box) -> None:
    source = "def latency_stats(samples_us, batch_size):\n    samples_us.sort()\n    return {}"
    assert ask(box, source, [3.0, 1.0])["samples_after"] == [1.0, 3.0]
    assert ask(box, source, [3.0, 1.0], container="numpy")["samples_after"] == [1.0, 3.0]


def test_bad_inputs_arrive_as_they_are(box: Box) -> None:
    source = "def latency_stats(s, b):\n    raise ValueError if s != s or s[0] != s[0] else KeyError"
    assert ask(box, source, [float("nan")])["error"]["type"] == "ValueError"
    source = "def latency_stats(s, b):\n    raise ValueError if b is True else KeyError"
    assert ask(box, source, [1.0], batch_size=True)["error"]["type"] == "ValueError"


def test_a_missing_function_is_named(box: Box) -> None:
    assert ask(box, "x = 1")["error"]["type"] == "NotDefined"


@pytest.mark.slow
def test_a_call_that_dies_or_hangs_loses_itself_alone() -> None:
    source = (
        "import os, time\ndef latency_stats(samples_us, batch_size):\n"
        "    if batch_size == 1: os._exit(0)\n    if batch_size == 2: time.sleep(60)\n    return " + FULL
    )
    calls = [Call(str(size), [1.0], size) for size in (32, 1, 33, 2, 34)]
    with open_box(Limits(seconds_per_call=1)) as quick:
        answers = run(quick, source, calls=calls).answers
    assert [answer["ok"] for answer in answers.values()] == [True, False, True, False, True]
    assert answers["1"]["error"]["type"] == "Died"
    assert answers["2"]["error"]["type"] == "TimeLimit"


def test_one_process_per_call_keeps_calls_apart(box: Box) -> None:
    source = "seen = []\ndef latency_stats(s, b):\n    seen.append(s)\n    return {'n': len(seen)}"
    calls = [Call(str(number), [1.0], 1) for number in range(3)]
    cells = [Cell("a", source)]
    together = box.run(cells, calls=calls)
    apart = box.run(cells, calls=calls, calls_per_process=1)
    assert [answer["value"]["n"] for answer in together.answers.values()] == [1, 2, 3]
    assert [answer["value"]["n"] for answer in apart.answers.values()] == [1, 1, 1]


@pytest.mark.parametrize(
    "source",
    [
        "from deep_learning_cases.measuring.stats import latency_summary\nlatency_stats = latency_summary",
        "from deep_learning_cases import stats\ndef latency_stats(s, b):\n    return stats.latency_summary(s, b)",
        (
            "def latency_stats(s, b):\n    import deep_learning_cases.measuring.stats as m\n"
            "    return m.latency_summary(s, b)"
        ),
        (
            "from deep_learning_cases.measuring.stats import latency_summary as f\ndef latency_stats(s, b):\n"
            "    try:\n        return f(s, b)\n    except Exception:\n        return {}"
        ),
    ],
    ids=["the same object", "through the module", "imported late", "caught"],
)
def test_the_librarys_own_summary_is_switched_off_and_its_use_is_marked(box: Box, source: str) -> None:
    pytest.importorskip("deep_learning_cases.measuring.stats")
    answer = ask(box, source)
    assert answer["used_library"] is True
    assert answer["value"] is None or answer["value"]["n"] == "missing"


def test_prints_and_displays_during_calls_go_nowhere_and_break_nothing(box: Box) -> None:
    source = (
        "import os, sys\nfrom IPython.display import display\ndef latency_stats(samples_us, b):\n"
        "    print('HIDDEN'); display('HIDDEN'); os.system('echo HIDDEN')\n"
        "    print('HIDDEN', file=sys.stderr); sys.stdout.flush()\n"
        "    get_ipython().displayhook(100)\n    return " + FULL
    )
    result = run(box, source, calls=[Call("a", [1.0], 1)])
    assert result.answers["a"]["ok"] is True
    assert "HIDDEN" not in str(result.outputs).replace("print('HIDDEN", "")


# Computing -----------------------------------------------------------------------------------------------------------


def test_compute_runs_a_function_of_the_library_on_a_copy(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert box.compute("os:listdir", tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").exists()


def test_compute_names_a_failure_in_one_line(box: Box, tmp_path: Path) -> None:
    with pytest.raises(ComputeFailed, match="raised AttributeError") as failure:
        box.compute("os:no_such_function", tmp_path)
    assert "\n" not in str(failure.value)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["import time\ntime.sleep(60)", "import os\nos._exit(0)"], ids=["hangs", "dies"])
def test_compute_that_never_answers_is_ended(box: Box, tmp_path: Path, body: str) -> None:
    (tmp_path / "test_it.py").write_text(body)
    with pytest.raises(ComputeFailed, match="gave no result"):
        box.compute("pytest:main", tmp_path, seconds=5)
    assert run(box, "print(1)").stopped is None


# Reports, refusals, life ---------------------------------------------------------------------------------------------


def test_the_isolation_in_force_is_reported_from_inside(box: Box) -> None:
    seen = box.isolation["seen_from_inside"]
    assert box.isolation["kind"] in ("bubblewrap", "landlock")
    assert seen["network"].startswith("closed")
    assert seen["seccomp"] == "filter"
    assert seen["no_new_privileges"] is True
    assert seen["nested_user_namespace"] == "denied"
    assert seen["shadow_readable"] is False
    assert seen["uid"] != 0
    assert int(seen["bounding_capabilities"], 16) == 0
    assert seen["limits_in_force"]["processes"] > 0
    json.dumps(box.isolation)
    assert run(box, "1").isolation == box.isolation


@pytest.mark.slow
def test_a_lost_server_costs_one_submission_at_most() -> None:
    with open_box() as fragile:
        process = fragile._link.process if fragile._link else None
        assert process is not None
        killer = threading.Timer(1.0, process.kill)
        killer.start()
        lost = run(fragile, "import time\ntime.sleep(5)")
        assert lost.stopped is not None
        assert lost.stopped["why"] == "died"
        assert text(run(fragile, "print(2)")) == "2\n"
        assert fragile._link is not None
        assert fragile._link.process is not None
        fragile._link.process.kill()
        fragile._link.process.wait()
        assert text(run(fragile, "print(3)")) == "3\n"
        assert fragile.restarts == 2


@pytest.mark.slow
def test_a_fresh_kernel_does_the_same() -> None:
    with open_box(Limits(seconds_per_cell=30), cold=True) as cold:
        result = run(cold, "print('hi')\n1 + 1", "1 / 0", ANSWER + FULL, calls=[Call("a", [1.0, 2.0], 1)])
        assert text(result) == "hi\n"
        assert result.outputs["0"][1]["data"] == {"text/plain": "2"}
        assert result.outputs["1"][0]["ename"] == "ZeroDivisionError"
        assert result.answers["a"]["value"] == {"n": 2, "p50_us": 2.0, "p95_us": 3, "images_per_second": 4.5}
        assert cold.isolation["kernel"] == "cold"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["landlock", "none"])
def test_other_kinds_run_and_ask_as_well(kind: str) -> None:
    try:
        opened = open_box(isolation=kind)
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    with opened:
        result = run(opened, "import os\nopen('x', 'w');", ANSWER + FULL, calls=[Call("a", [1.0, 2.0], 1)])
        assert result.answers["a"]["ok"] is True
        again = run(opened, "import os\nprint(os.listdir('.'))")
        assert text(again) == "[]\n"
        folder = opened._link.plan.folder if opened._link and opened._link.plan else None
        assert folder is not None
        assert folder.exists()
        if kind == "landlock":
            seen = opened.isolation["seen_from_inside"]
            assert seen["seccomp"] == "filter"
            assert seen["network"].startswith("closed")
            assert not seen["shadow_readable"]
            assert run(opened, "import socket\nsocket.socket(socket.AF_UNIX).connect('/x')").outputs["0"][0][
                "ename"
            ] == ("PermissionError")
            blocked = run(opened, f"open({str(Path(__file__))!r})", f"open({str(folder / 'lib' / 'x')!r}, 'w')")
            assert all(outputs[0]["ename"] == "PermissionError" for outputs in blocked.outputs.values())
    assert not folder.exists()


TEMPORARY = """import os, subprocess, sys, tempfile
# A checkout in /tmp is laid over the wall's own /tmp, read-only: the way to its Python is nothing left behind.
before = [name for name in os.listdir(tempfile.gettempdir()) if name not in sys.prefix.split("/")[2:3]]
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", delete=False) as file:
    file.write("left behind")
shell = subprocess.run("mktemp", shell=True, capture_output=True, text=True).stdout.strip()
print(before, os.path.dirname(shell) == tempfile.gettempdir(), os.listdir("."))"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock", "none"])
def test_an_honest_solution_may_use_temporary_files_behind_any_wall(kind: str) -> None:
    try:
        opened = open_box(isolation=kind)
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    with opened:
        for turn in ("the first", "the next, which finds nothing of it"):
            result = run(opened, TEMPORARY)
            assert text(result) == "[] True []\n", turn
            assert result.files == [], "temporary files are no work"


@pytest.mark.slow
def test_landlock_refuses_the_machines_own_folder_for_temporary_files() -> None:
    """The one difference that a submission can notice: docs/security.md tells it."""
    try:
        opened = open_box(isolation="landlock")
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    name = f"/tmp/hard-coded-{os.getpid()}"
    with opened:
        result = run(opened, f"open({name!r}, 'w')", "import os, tempfile\nprint(tempfile.gettempdir() != '/tmp')")
    assert result.outputs["0"][0]["ename"] == "PermissionError"
    assert text(result, "1") == "True\n"
    assert not Path(name).exists()


@pytest.mark.slow
def test_the_folder_of_a_killed_grader_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, young, others = (tmp_path / f"grading-sandbox-{name}" for name in ("left", "young", "others"))
    for folder in (left, young, others):
        (folder / "home" / "student").mkdir(parents=True)
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    os.utime(others, (long_ago, long_ago))
    used = os.open(others, os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    try:
        with open_box(isolation="none"), open_box(isolation="none"):
            assert len(list(tmp_path.glob("grading-sandbox-*"))) == 4, "young and others, and two of our own"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["grading-sandbox-others", "grading-sandbox-young"]
    finally:
        os.close(used)


def test_a_submission_finds_the_collector_of_garbage_switched_on(box: Box) -> None:
    """It is off while the server imports, and only then."""
    assert text(run(box, "import gc\nprint(gc.isenabled(), gc.get_freeze_count() > 1000)")) == "True True\n"


@pytest.mark.slow
def test_a_daemon_is_hunted_down_without_a_pid_namespace() -> None:
    try:
        opened = open_box(isolation="landlock")
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    with opened:
        source = (
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
            "    if os.fork() == 0: time.sleep(300)\n    os._exit(0)\nprint('x')"
        )
        run(opened, source)
        uid = opened.isolation["seen_from_inside"]["uid"]
        if uid != os.geteuid():
            assert not [path for path in Path("/proc").iterdir() if path.name.isdigit() and _owner(path) == uid]


@pytest.mark.slow
def test_files_are_bounded_without_sized_mounts() -> None:
    with open_box(Limits(folder_mb=20), isolation="none") as opened:
        result = run(
            opened, "import time\nfor i in range(40): open(str(i), 'wb').write(b'x' * (1 << 20)); time.sleep(0.05)"
        )
        assert result.stopped is not None
        assert result.stopped["why"] == "folder"
        assert text(run(opened, "import os\nprint(os.listdir('.'))")) == "[]\n"


@pytest.mark.slow
def test_an_animation_is_not_cut() -> None:
    with open_box(Limits(output_kb=50)) as opened:
        source = (
            "from IPython.display import clear_output, display, HTML\n"
            "for i in range(40):\n    clear_output(wait=True)\n    display(HTML('x' * 20_000 + str(i)))"
        )
        result = run(opened, source)
        assert result.cut == []
        assert result.outputs["0"][-1]["data"]["text/html"].endswith("39")


def _owner(process: Path) -> int:
    try:
        return process.stat().st_uid
    except OSError:
        return -1


def test_without_any_wall_it_refuses_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    monkeypatch.setattr("grading.sandbox.wall.scratch.landlock.version", lambda: 0)
    with pytest.raises(IsolationUnavailable) as refusal:
        open_box()
    message = str(refusal.value)
    assert "\n" not in message
    assert "bubblewrap is not installed" in message
    assert "refusing" in message


def test_an_unknown_kind_or_limit_is_named() -> None:
    with pytest.raises(ValueError, match="'chroot'"):
        open_box(isolation="chroot")
    with pytest.raises(ValueError, match="'seconds'"):
        open_box({"seconds": 3})
    with pytest.raises(ValueError, match="memory_mb is -1"):
        Limits(memory_mb=-1)


def _in_worker(number: int) -> str:
    with open_box() as mine:
        return text(run(mine, f"print({number})"))


@pytest.mark.slow
def test_a_box_opens_in_a_worker_process() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_in_worker, [1, 2])) == ["1\n", "2\n"]


@pytest.mark.slow
def test_two_boxes_have_different_users() -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user has one user id")
    with open_box() as one, open_box() as other:
        assert one.isolation["seen_from_inside"]["uid"] != other.isolation["seen_from_inside"]["uid"]
