"""A folder that a command writes into: its alone, with room in it, and as it was where nothing came of it."""

import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pytest

from deep_learning_cases import bench, cases, cli, comparison, release, report, target_kit
from deep_learning_cases.commands import latency
from deep_learning_cases.errors import FileError
from deep_learning_cases.ground import archive, files, out_folder
from deep_learning_cases.models import network
from deep_learning_cases.quantizing import subjects
from deep_learning_cases.release import pack, preparation

ROOT = Path(__file__).resolve().parents[3]

HOLD = """
import sys
from pathlib import Path
from deep_learning_cases.ground import out_folder
with out_folder.taken(Path(sys.argv[1])):
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(evidence):
    """Another process that has taken the evidence folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    with subprocess.Popen([sys.executable, "-c", HOLD, evidence], **pipes) as process:
        assert process.stdout.readline() == b"taken\n"
        yield process
        process.kill()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


WRITING = [
    ["run"],
    ["build"],
    ["regress"],
    ["bench"],
    ["release"],
    ["report"],
    ["pack"],
    ["latency", "--out"],
    ["quantize", "--out"],
]


@pytest.mark.usefixtures("holder")
@pytest.mark.parametrize("call", WRITING, ids=lambda call: call[0])
def test_a_second_command_that_writes_stops_at_once_and_changes_nothing(call, evidence, capsys):
    before = contents(evidence)
    assert cli.main([*call, str(evidence)]) == 1
    told = capsys.readouterr().err
    assert f"another command is writing into {evidence}" in told
    assert told.count("\n") == 1
    assert contents(evidence) == before


@pytest.mark.usefixtures("holder")
def test_what_only_reads_needs_nobody_to_be_away(evidence):
    assert cli.main(["check", str(evidence)]) == 0


def test_a_killed_process_holds_nothing(holder, evidence):
    holder.kill()
    holder.wait()
    with out_folder.taken(evidence):
        pass


def test_the_lock_leaves_no_file_neither_during_nor_after(evidence):
    before = contents(evidence)
    with out_folder.taken(evidence):
        assert contents(evidence) == before
    assert contents(evidence) == before


def test_windows_locks_a_file_that_the_system_deletes(tmp_path, monkeypatch):
    calls, held = [], []

    def locking(handle, mode, count):
        calls.append((mode, count, os.fstat(handle).st_ino))
        if held:
            raise PermissionError(13, "Permission denied")
        held.append(handle)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "O_TEMPORARY", 0, raising=False)
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    with out_folder.taken(tmp_path):
        with pytest.raises(FileError, match="another command"), out_folder.taken(tmp_path):
            pass
        assert (tmp_path / out_folder.LOCK_FILE).exists()
    assert [call[:2] for call in calls] == [(2, 1), (2, 1)]
    assert calls[0][2] == calls[1][2]


def test_a_drive_that_locks_no_folder_is_used_all_the_same(tmp_path, monkeypatch):
    def refused(*_arguments):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("fcntl.flock", refused)
    with out_folder.taken(tmp_path):
        pass


@pytest.fixture(params=[(30, "Read-only file system"), (28, "No space left on device")], ids=["read-only", "full"])
def unwritable(request, monkeypatch):
    """No file can be made, or none can be filled."""
    failure = OSError(*request.param)

    def refuse(*_arguments, **_options):
        raise failure

    if failure.errno == 30:
        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    else:
        monkeypatch.setattr(os, "fsync", refuse)
    return failure.strerror


def forbidden(*_arguments, **_options):
    raise AssertionError("this should not have begun")


@pytest.mark.parametrize(
    ("call", "begun"),
    [
        (["run"], "preparation.build"),
        (["build"], "preparation.build"),
        (["bench"], "measuring.fresh_process.run_fresh"),
        (["latency", "--out"], "fresh_starts.memory"),
        (["quantize", "--out"], "comparison.compare"),
        (["load", "http://127.0.0.1:9", "--rate", "1", "--out"], "load.send"),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_a_folder_without_room_is_noticed_before_anything_is_measured(
    call, begun, unwritable, evidence, monkeypatch, capsys
):
    monkeypatch.setattr(f"deep_learning_cases.{begun}", forbidden)
    place = evidence / "load.json" if call[0] == "load" else evidence
    assert cli.main([*call, str(place)]) == 1
    told = capsys.readouterr().err
    assert unwritable in told
    assert str(evidence) in told
    assert told.count("\n") == 1


def test_the_library_notices_it_as_early(unwritable, evidence, monkeypatch):
    monkeypatch.setattr(bench, "measure", forbidden)
    with pytest.raises(FileError, match=unwritable):
        bench.run(evidence)
    monkeypatch.setattr(subjects.Subject, "train", forbidden)
    with pytest.raises(FileError, match=unwritable):
        comparison.compare(subjects.load("digits"), evidence / "new")
    assert not (evidence / "new").exists()


def test_the_target_notices_it_as_early(unwritable, evidence, monkeypatch):
    (evidence / target_kit.MANIFEST).write_text('{"files": {}}')
    monkeypatch.setattr(bench, "measure", forbidden)
    with pytest.raises(FileError, match=unwritable):
        target_kit.measure_target(evidence)


def test_only_what_was_made_and_stayed_empty_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    for place in ("old", "new/er/est", "old/new"):
        with pytest.raises(KeyboardInterrupt), out_folder.made(tmp_path / place):
            raise KeyboardInterrupt
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "old"]

    def fill_and_stop():
        (tmp_path / "full" / "file").write_text("kept")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), out_folder.made(tmp_path / "full"):
        fill_and_stop()
    assert (tmp_path / "full" / "file").read_text() == "kept"


@pytest.mark.parametrize(
    "call",
    [
        ["run", "DIR", "--seed", "-1"],
        ["run", "DIR", "--seed", "4294967296"],
        ["build", "DIR", "--seed", "-1"],
        ["latency", "--out", "DIR", "--seed", "-1"],
        ["latency", "--out", "DIR", "--threads", "0"],
        ["latency", "--out", "DIR", "--engine", "abacus"],
        ["latency", "--out", "DIR", "--device", "abacus"],
        ["latency", "--out", "DIR", "--model", "nowhere"],
        ["latency", "--out", "DIR", "--memory-limit-mb", "-1"],
        ["latency", "--out", "DIR", "--boundary", "preprocessing", "--image-format", "bmp"],
        ["quantize", "--out", "DIR", "--seed", "-1"],
        ["quantize", "--out", "DIR", "--batches", "501"],
        ["quantize", "--out", "DIR", "--data", "abacus"],
        ["load", "http://127.0.0.1:9", "--rate", "1", "--seed", "-1", "--out", "load.json"],
        ["batching", "--simulate", "--rate", "1", "--service", "constant:1", "--max-batch", "1", "--seed", "-1"],
    ],
    ids=lambda call: " ".join(call[:1] + call[2:]),
)
def test_a_bad_option_is_one_line_and_leaves_nothing(call, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(call) in (1, 2)
    told = capsys.readouterr().err
    assert told.count("\n") == 1, told
    assert list(tmp_path.iterdir()) == []


def test_a_bad_seed_is_refused_before_a_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(out_folder, "made", forbidden)
    for command in (["run"], ["build"], ["latency", "--out"], ["quantize", "--out"]):
        assert cli.main([*command, str(tmp_path / "new"), "--seed", "-1"]) == 2


def kept(folder: Path) -> dict[str, bytes]:
    return contents(folder / "earlier") if (folder / "earlier").exists() else {}


def test_running_again_keeps_every_record_that_it_replaces(evidence, capsys):
    mine = files.read_json(evidence / "release.json")
    mine["not_claimed"][0] = "latency on the real device, which I never saw"
    files.write_json(evidence / "release.json", mine)
    before = contents(evidence)
    assert cli.main(["run", str(evidence), "--json"]) == 0
    assert cli.main(["run", str(evidence), "--json"]) == 0
    told = capsys.readouterr().err.splitlines()
    copies = kept(evidence)
    assert {before["benchmark.json"], before["release.json"]} < set(copies.values())
    # Nothing else differs from run to run: the models are the same bytes, the regression says the same.
    assert sorted(name.split("-")[0] for name in copies) == ["benchmark", "benchmark", "release", "release"]
    assert sorted(told) == sorted(
        f"the earlier {name.split('-')[0]}.json is kept as {evidence / 'earlier' / name}" for name in copies
    )
    created_at = json.loads(before["benchmark.json"])["created_at"]
    assert f"benchmark-{created_at[:19].replace(':', '-')}Z.json" in copies
    assert release.check(evidence) == []


def test_a_check_and_a_package_leave_the_earlier_records_out(evidence):
    packed = archive.read_zip(pack.pack(evidence))
    out_folder.keep(evidence / "benchmark.json", b"{}")
    assert kept(evidence)
    assert release.check(evidence) == []
    assert archive.read_zip(pack.pack(evidence)) == packed
    report.build(evidence)
    assert release.check(evidence) == []


def test_release_keeps_somebody_s_claims_and_nothing_that_is_the_same(evidence, capsys):
    assert cli.main(["release", str(evidence)]) == 0
    assert (kept(evidence), capsys.readouterr().err) == ({}, "")
    mine = files.read_json(evidence / "release.json") | {"universally_faster": True}
    files.write_json(evidence / "release.json", mine)
    os.utime(evidence / "release.json", (0, 0))
    assert cli.main(["release", str(evidence)]) == 0
    assert json.loads(kept(evidence)["release-1970-01-01T00-00-00Z.json"]) == mine
    assert capsys.readouterr().err.count("\n") == 1


def test_two_records_of_one_second_have_a_place_each_and_the_same_one_has_one(tmp_path):
    path = tmp_path / "record.json"
    for value in ("first", "second", "first", "third"):
        content = json.dumps({"created_at": "2026-01-31T12:00:00+01:00", "value": value}).encode()
        out_folder.keep(path, content)
        path.write_bytes(content)
    names = {name: json.loads(content)["value"] for name, content in kept(tmp_path).items()}
    assert names == {"record-2026-01-31T11-00-00Z.json": "first", "record-2026-01-31T11-00-00Z-2.json": "second"}
    out_folder.keep(path, json.dumps({"created_at": "2027-01-01T00:00:00Z", "value": "third"}).encode())
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"\xff", b'{"created_at": 3}', b'{"created_at": "0001-01-01T00:00+09:00"}']
)
def test_what_is_no_record_is_kept_by_its_file_s_time(tmp_path, content):
    path = tmp_path / "benchmark.json"
    path.write_bytes(content)
    os.utime(path, (0, 0))
    out_folder.keep(path, b'{"value": 1}')
    assert kept(tmp_path) == {"benchmark-1970-01-01T00-00-00Z.json": content}


def test_where_nothing_can_be_kept_nothing_is_replaced(evidence, capsys):
    (evidence / "earlier").write_text("mine")
    before = contents(evidence)
    assert cli.main(["bench", str(evidence)]) == 1
    assert "cannot keep the earlier benchmark.json" in capsys.readouterr().err
    assert contents(evidence) == before


def test_other_models_do_not_take_those_that_were_measured(built, monkeypatch, random_weights):
    before = contents(built)
    monkeypatch.setattr(preparation, "LEAST_ACCURACY", 0.0)
    monkeypatch.setattr(network, "train", lambda *_: network.from_weights(random_weights))
    preparation.build(built, progress=False)
    assert set(kept(built).values()) == {content for name, content in before.items() if name != "data.npz"}


def test_latency_keeps_the_record_that_it_replaces(tmp_path, monkeypatch, capsys):
    (tmp_path / "latency.json").write_text('{"created_at": "2026-01-31T12:00:00Z"}')
    monkeypatch.setattr(latency, "_measure", lambda *_: {"results": {}})
    monkeypatch.setattr(latency, "_pictures", lambda _: [])
    monkeypatch.setattr(cases, "save", lambda record, path: files.write_json(path, record))
    assert cli.main(["latency", "--out", str(tmp_path), "--json"]) == 0
    assert list(kept(tmp_path)) == ["latency-2026-01-31T12-00-00Z.json"]
    assert capsys.readouterr().err.count("\n") == 1
