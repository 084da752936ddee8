"""The side-by-side measurement of starting runs, and says when a limit is broken."""

import subprocess

import pytest

from benchmarks import start_up
from deep_learning_cases.ground import files


def test_every_round_times_every_side_on_a_copy_and_the_table_is_written(real_evidence, tmp_path, monkeypatch, capsys):
    sides = (start_up.BARE, "import deep_learning_cases", "dlcases release")
    monkeypatch.setattr(start_up, "SIDES", {name: start_up.SIDES[name] for name in sides})
    monkeypatch.setattr(start_up, "LIMITS_S", {"dlcases release": 60.0})
    monkeypatch.setattr(start_up, "RESULT", tmp_path / "results" / "start_up.json")
    before = (real_evidence / "release.json").read_bytes()
    assert start_up.main([str(real_evidence), "--rounds", "1"]) == 0
    assert (real_evidence / "release.json").read_bytes() == before
    seconds = files.read_json(start_up.RESULT)["processor_seconds"]
    assert {name: len(values) for name, values in seconds.items()} == dict.fromkeys(sides, 1)
    assert "limit 60.0 s: kept" in capsys.readouterr().out


def test_a_broken_limit_is_reported_with_the_median_ratio(capsys):
    seconds = {start_up.BARE: [0.1, 0.2, 0.1], "dlcases check": [0.4, 0.6, 0.7]}
    assert start_up.report({"processor_seconds": seconds, "limits_s": {"dlcases check": 0.5}}) == 1
    assert "0.600    4.00   limit 0.5 s: BROKEN" in capsys.readouterr().out


def test_a_process_that_fails_is_no_reading():
    with pytest.raises(subprocess.CalledProcessError):
        start_up.processor_seconds(("-c", "raise SystemExit(1)"))


def test_every_limit_belongs_to_a_side():
    assert set(start_up.LIMITS_S) < set(start_up.SIDES)
