"""Several worlds of one submission, the library's own summary while questions are asked, and walls that are refused."""

import os
import subprocess
import sys
import textwrap

import pytest

from grading.sandbox.box import Box, open_box
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call, Part
from grading.sandbox.wall.kinds import make_plan
from grading.sandbox.wall.places import tidy
from grading.sandbox.wall.plan import IsolationUnavailable
from tests.grading.ordinary_user import CHECKOUT, as_ordinary_user, ordinary_home

CALL = Call("a", [3.0, 1.0, 2.0], 1)
STATS = "deep_learning_cases.measuring.stats"


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def box(request):
    try:
        with open_box(Limits(seconds_per_cell=10), request.param) as opened:
            yield opened
    except IsolationUnavailable as error:
        pytest.skip(str(error))


def _text(run, cell="c") -> str:
    return "".join(output.get("text", "") for output in run.outputs[cell])


def _part(source: str, *calls: Call) -> Part:
    return Part.of([{"id": "c", "source": source}], None, calls)


def test_all_cells_of_all_notebooks_run_before_the_first_question(box: Box) -> None:
    asked = "import time\nprint(time.time())\ndef latency_stats(s, b):\n    return {'n': time.time()}"
    late = "import time\ntime.sleep(0.3)\nprint(time.time())"
    first, second, last = box.run_all([_part(asked, CALL), _part(f"{late}\n{asked}", CALL), _part(late)])
    ran = max(float(line) for run in (first, second, last) for line in _text(run).split())
    assert ran < min(run.answers["a"]["value"]["n"] for run in (first, second))
    assert box.restarts == 0


def test_worlds_of_one_submission_share_no_folder(box: Box) -> None:
    asked = "import os\nopen('left', 'w')\nprint(os.listdir('.'))\ndef latency_stats(s, b):\n    return {'n': 1}"
    runs = box.run_all([_part(asked, CALL), _part(asked, CALL), _part(asked)])
    assert [_text(run) for run in runs] == ["['left']\n"] * 3


BACK = {
    "reloaded": f"import importlib, {STATS} as s\n    f = importlib.reload(s).latency_summary",
    "imported afresh": f"import sys, importlib\n    del sys.modules['{STATS}']\n"
    f"    f = importlib.import_module('{STATS}').latency_summary",
    "from its file": "import importlib.util as u\n    spec = u.spec_from_file_location('again', PATH)\n"
    "    m = u.module_from_spec(spec); spec.loader.exec_module(m)\n    f = m.latency_summary",
    "read and executed": "space = {'__name__': 'again', '__file__': PATH}\n    exec(open(PATH).read(), space)\n"
    "    f = space['latency_summary']",
    "from what is compiled": "import glob, marshal, os\n    space = {'__name__': 'again'}\n"
    "    (path,) = glob.glob(os.path.dirname(PATH) + '/__pycache__/stats.*.pyc')\n"
    "    exec(marshal.loads(open(path, 'rb').read()[16:]), space)\n    f = space['latency_summary']",
    "another interpreter": "import subprocess, sys, os\n    code = f'import sys; sys.path[:] = {sys.path!r}; "
    f"from {STATS} import latency_summary as f; print(f({{list(s)}}, {{b}}))'\n"
    "    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout\n"
    "    f = lambda s, b: eval(out)",
    "built around its code": "f = BUILT",
    "built around a copy of its code": "f = COPIED",
    "executed from a text kept since": "space = {'__name__': 'again', '__file__': PATH}\n    exec(TEXT, space)\n"
    "    f = space['latency_summary']",
    "executed before": "f = SPACE['latency_summary']",
    "executed before and frozen": "f = FROZEN['latency_summary']",
    "laid over another function": "f = lambda s, b: 0\n    f.__code__ = F2",
    "built from its bytes": "import marshal, types\n    f = types.FunctionType(marshal.loads(BYTES), G)",
}


@pytest.mark.parametrize("way", BACK.values(), ids=BACK.keys())
def test_the_librarys_own_summary_does_not_come_back(box: Box, way: str) -> None:
    before = (
        f"import {STATS} as stats, marshal, types\nPATH = stats.__file__\nF, G = stats.latency_summary, vars(stats)\n"
        "BUILT = types.FunctionType(F.__code__, dict(G))\nCOPIED = types.FunctionType(F.__code__.replace(), G)\n"
        "TEXT, SPACE, FROZEN = open(PATH).read(), {}, {}\nexec(TEXT, SPACE)\nF2 = F.__code__.replace()\n"
        "import gc\nexec(TEXT, FROZEN)\nif 'FROZEN[' in In[-1].partition('def latency')[2]: gc.freeze()\n"
        "BYTES = marshal.dumps(F.__code__)\nprint(F([1.0, 2.0], 1)['n'])\n"
    )
    run = box.run(
        [{"id": "c", "source": f"{before}def latency_stats(s, b):\n    {way}\n    return f(s, b)"}], None, [CALL]
    )
    assert _text(run) == "2\n"
    assert run.answers["a"]["ok"] is False


def test_what_reports_on_the_answers_is_not_a_name_away(box: Box) -> None:
    source = "import sys\nprint([name for name in sys.modules if name.startswith('behind_wall')])"
    assert _text(box.run([{"id": "c", "source": source}])) == "[]\n"


def test_landlock_alone_is_refused_to_an_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(IsolationUnavailable, match="install bubblewrap") as refused:
        make_plan("landlock", Limits(), 3, False)
    assert "\n" not in str(refused.value)


def test_a_weaker_wall_is_never_silent(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    if os.geteuid() != 0:
        pytest.skip("an ordinary user has no second wall")
    with open_box() as weaker:
        assert weaker.isolation["kind"] == "landlock"
        assert "bubblewrap is not installed" in weaker.isolation["not_possible"][0]
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "landlock alone, because bubblewrap is not installed" in told


def test_an_ordinary_user_without_bubblewrap_gets_one_line_and_a_way_out() -> None:
    code = textwrap.dedent(f"""
        import os, sys; sys.path.insert(0, {str(CHECKOUT)!r}); os.environ["PATH"] = "/nowhere"
        from grading.sandbox.box import open_box
        open_box()
    """)
    with ordinary_home() as home:
        done = as_ordinary_user([sys.executable, "-c", code], home)
    last = done.stderr.strip().splitlines()[-1]
    assert "bubblewrap is not installed" in last
    assert "Landlock alone is no wall for an ordinary user" in last


def test_a_path_with_a_detour_is_straightened_and_a_link_at_its_end_kept(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "python").symlink_to(sys.executable)
    assert tidy(f"{tmp_path}/a/../python") == f"{tmp_path}/python"
    assert tidy(f"{tmp_path}/a/..") == str(tmp_path)
    assert tidy(f"{tmp_path}/a") == f"{tmp_path}/a"


def test_a_number_that_a_process_had_names_nobody_afterwards(box: Box) -> None:
    """What is started in the background ends with the world, whatever signals it ignores."""
    source = (
        "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    [signal.signal(n, signal.SIG_IGN) for n in range(1, 32) if n not in (9, 19)]\n    time.sleep(600)\n"
    )
    box.run([{"id": "c", "source": source}])
    listed = subprocess.run(["ps", "-eo", "uid="], capture_output=True, text=True, check=True).stdout.split()
    assert str(box.isolation["seen_from_inside"]["uid"]) not in listed or not box.isolation["user_changed"]
