"""The command line: what it prints, its exit codes, and one line for whatever goes wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deep_learning_cases import bench, cli, release, report
from deep_learning_cases.ground import files
from deep_learning_cases.release import preparation, regression

ON_A_FOLDER = ["regress", "bench", "release", "check", "report", "pack"]


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith("dlcases")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("command", ON_A_FOLDER)
def test_a_missing_folder_is_one_line_that_says_how_to_make_it(command, tmp_path, capsys):
    assert cli.main([command, str(tmp_path / "nowhere")]) == 1
    line = one_line(capsys)
    assert "nowhere does not exist" in line
    assert "dlcases run" in line


@pytest.mark.parametrize("command", ["regress", "bench", "release", "report"])
def test_an_empty_folder_is_one_line_and_stays_empty(command, tmp_path, capsys):
    assert cli.main([command, str(tmp_path)]) == 1
    one_line(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call", [[], ["brench"], ["bench"], ["run", "x", "--seed", "many"], ["bench", "x", "--timeout-s", "soon"]]
)
def test_a_wrong_call_is_one_line_and_exit_code_2(call, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(call)
    assert stopped.value.code == 2
    assert "--help" in one_line(capsys)


@pytest.mark.parametrize(
    ("call", "program", "unknown"),
    [
        (["check", "x", "--bogus"], "dlcases check", "--bogus"),
        (["batching", "--rate", "1", "--bogus"], "dlcases batching", "--bogus"),
        (["doctor", "x", "y"], "dlcases doctor", "y"),
        (["--bogus", "doctor"], "dlcases", "--bogus"),
    ],
)
def test_what_a_command_does_not_know_points_to_its_own_help(call, program, unknown, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(call)
    assert stopped.value.code == 2
    assert one_line(capsys) == f"{program}: unrecognized arguments: {unknown}; see {program} --help\n"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("mode", [[], ["--aa"]])
def test_a_time_limit_has_to_be_a_time(seconds, mode, evidence, capsys):
    assert cli.main(["bench", str(evidence), *mode, "--timeout-s", seconds]) == 2
    assert seconds in one_line(capsys)


@pytest.mark.parametrize(
    "call", [["run", ""], ["build", ""], ["check", ""], ["pack", "x", "--out", ""], ["doctor", ""], ["lab", ""]]
)
def test_an_unset_shell_variable_is_not_the_current_folder(call, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        cli.main(call)
    assert stopped.value.code == 2
    assert "it is empty" in one_line(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["run", "build"])
def test_a_file_where_the_folder_should_be(command, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert cli.main([command, str(tmp_path / "file")]) == 1
    one_line(capsys)
    assert (tmp_path / "file").read_text() == "mine"


def test_check_passes_a_sound_folder_and_claims_no_more_than_it_knows(real_evidence, capsys):
    assert cli.main(["check", str(real_evidence)]) == 0
    text = capsys.readouterr().out
    assert "does not prove that the times were really measured" in text


def test_check_gives_one_line_per_reason_and_exit_code_1(evidence, capsys):
    model = evidence / "model_int8.onnx"
    model.write_bytes(model.read_bytes() + b"\0")
    assert cli.main(["check", str(evidence)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("model_int8" in line or "json" in line or "report" in line for line in lines)
    assert cli.main(["check", str(evidence), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is False
    assert len(answer["findings"]) == len(lines)
    assert set(answer["findings"][0]) == {"area", "file", "pointer", "message", "redo"}


@pytest.mark.parametrize("command", [["report"], ["pack"], ["pack", "--target-kit"]])
@pytest.mark.parametrize("place", ["evidence", "absolute", "."])
def test_what_was_written_is_named_as_the_folder_was(command, place, evidence, monkeypatch, capsys):
    monkeypatch.chdir(evidence if place == "." else evidence.parent)
    assert cli.main([*command, str(evidence) if place == "absolute" else place]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert Path(line).is_file()
    assert Path(line).is_absolute() == (place == "absolute")


@pytest.mark.parametrize("command", ["regress", "release"])
def test_json_is_what_the_command_wrote(command, evidence, capsys):
    name = {"regress": "regression.json", "release": "release.json"}[command]
    assert cli.main([command, str(evidence), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == files.read_json(evidence / name)


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (preparation, "build"),
        (regression, "regress"),
        (bench, "run"),
        (bench, "summarise"),
        (release, "make"),
        (report, "build"),
    ],
)
def test_ctrl_c_in_any_stage_leaves_whole_files_and_exits_130(module, function, evidence, monkeypatch, capsys):
    for later, name in ((preparation, "build"), (regression, "regress"), (bench, "run"), (bench, "summarise")):
        monkeypatch.setattr(later, name, lambda *_a, **_k: None)
    before = {path.name: path.read_bytes() for path in evidence.iterdir()}

    def stop(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, function, stop)
    assert cli.main(["run", str(evidence)]) == 130
    assert "Ctrl-C" in one_line(capsys)
    after = {path.name: path.read_bytes() for path in evidence.iterdir()}
    assert set(after) == set(before)
    unchanged = set(before) - {"release.json", "report.html"}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert all(path.suffix != ".part" for path in evidence.iterdir())


@pytest.mark.parametrize("command", ["regress", "release", "report"])
def test_a_full_disk_is_one_line_and_the_old_files_stay(command, evidence, monkeypatch, capsys):
    before = {path.name: path.read_bytes() for path in evidence.iterdir()}

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert cli.main([command, str(evidence)]) == 1
    assert "No space left on device" in one_line(capsys)
    assert {path.name: path.read_bytes() for path in evidence.iterdir()} == before


class NotInstalled:
    """An import system in which this package is not there; None in ``sys.modules`` would trip others who look there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_without_pytorch_building_says_how_to_install_it_and_measuring_works(evidence, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled("torch"), *sys.meta_path])
    assert cli.main(["build", str(evidence)]) == 3
    assert "pip install" in one_line(capsys)
    assert cli.main(["bench", str(evidence), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "deep-learning-cases/benchmark/1"


def dlcases(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "deep_learning_cases.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, **options)


def test_outside_a_terminal_nothing_but_the_answer_is_printed(evidence):
    (evidence / "benchmark.json").unlink()
    done = dlcases("bench", evidence, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    json.loads(done.stdout)


def test_a_reader_that_goes_away_is_no_error(real_evidence):
    # The shell's pipe closes after one byte, long before the JSON is written.
    command = f"{sys.executable} -m deep_learning_cases.cli check {real_evidence} --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=Path(__file__).resolve().parents[3])
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr


def test_the_version_is_the_package_version():
    assert dlcases("--version").stdout.strip() == "dlcases 0.1.0"


def test_an_interrupt_that_an_import_turned_into_its_own_failure_is_still_an_interrupt(monkeypatch, tmp_path, capsys):
    def importing(_folder):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("the C extension could not be loaded") from None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(release, "check", importing)
    assert cli.main(["check", str(tmp_path)]) == 130
    assert "Ctrl-C" in one_line(capsys)
    assert signal.getsignal(signal.SIGINT) is before


INTERRUPTING = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["dlcases", "check", {folder!r}]
from deep_learning_cases.cli import main
sys.exit(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to itself")
@pytest.mark.parametrize(
    "name",
    [
        "deep_learning_cases.commands.table", "argparse", "deep_learning_cases.commands.release", "json",
        "deep_learning_cases.release.gate", "numpy", "deep_learning_cases.release.evidence",
    ],
)  # fmt: skip
def test_ctrl_c_during_any_import_is_the_usual_line(name, tmp_path):
    code = INTERRUPTING.format(name=name, folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[3]
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"dlcases: {cli.STOPPED}\n"


def test_before_ctrl_c_is_looked_after_next_to_nothing_is_imported():
    code = "import sys; before = set(sys.modules); import deep_learning_cases.cli; print(*(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(__file__).resolve().parents[3],
    ).stdout.split()  # fmt: skip
    ours = {name for name in loaded if name.startswith("deep_learning_cases")}
    assert ours == {"deep_learning_cases", "deep_learning_cases.cli", "deep_learning_cases.errors"}
    assert not set(loaded) & {"typing", "argparse", "json", "signal", "enum", "re", "pathlib", "contextlib"}


def test_a_second_ctrl_c_while_the_first_is_told_changes_nothing(monkeypatch, tmp_path, capsys):
    def twice(_folder):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            fail = cli._fail
            monkeypatch.setattr(cli, "_fail", lambda *told: (signal.raise_signal(signal.SIGINT), fail(*told))[1])

    monkeypatch.setattr(release, "check", twice)
    assert cli.main(["check", str(tmp_path)]) == 130
    assert "Ctrl-C" in one_line(capsys)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to itself")
def test_ctrl_c_while_python_ends_is_no_traceback():
    code = (
        "import atexit, os, signal, sys\nfrom deep_learning_cases.cli import main\n"
        "sys.argv = ['dlcases', '--version']\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\nsys.exit(main())"
    )
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}  # what is printed has to be out by then without its help
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "dlcases 0.1.0\n", "")


def test_a_defect_of_ours_is_not_dressed_as_an_interrupt(monkeypatch, tmp_path):
    def broken(_folder):
        raise ImportError("a defect")

    monkeypatch.setattr(release, "check", broken)
    with pytest.raises(ImportError, match="a defect"):
        cli.main(["check", str(tmp_path)])


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a shell does")
@pytest.mark.parametrize(("closed", "code"), [("<&- >&- 2>&-", 1), (">&-", 1), ("2>&-", 1)])
def test_closed_streams_are_no_defect_and_take_no_file(closed, code, evidence):
    before = {path.name: path.read_bytes() for path in evidence.iterdir()}
    (evidence / "release.json").unlink()
    call = f"{sys.executable} -m deep_learning_cases.cli check {evidence} {closed}"
    done = subprocess.run(["/bin/sh", "-c", call], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
    del before["release.json"]
    assert {path.name: path.read_bytes() for path in evidence.iterdir()} == before


@pytest.mark.parametrize(
    ("module", "package", "command"),
    [
        ("onnx", "onnx", "check"),
        ("onnxruntime", "onnxruntime", "check"),
        ("jsonschema", "jsonschema", "check"),
        ("matplotlib", "matplotlib", "report"),
        ("sklearn", "scikit-learn", "build"),
    ],
)
def test_a_missing_package_is_named_and_no_file_is_blamed(module, package, command, real_evidence, tmp_path):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('No module named {module}', name='{module}')")
    folder = real_evidence if command == "check" else shutil.copytree(real_evidence, tmp_path / "evidence")
    done = subprocess.run(
        [sys.executable, "-m", "deep_learning_cases.cli", command, folder],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(cli.__file__).parents[1])])},
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"pip install {package}" in done.stderr
