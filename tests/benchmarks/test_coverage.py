"""The coverage of a load's intervals, counted on few short runs: the table, the record, and the verdict."""

import json

import pytest
from deep_learning_cases.serving.load.interval import Interval

from benchmarks import coverage


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "RESULTS", tmp_path)
    monkeypatch.setattr(coverage, "LONG_RUN", 100_000)
    monkeypatch.setattr(coverage, "LOADS", (0.3,))
    monkeypatch.setattr(coverage, "CASES", {"fast": (0.0018, 0.0002, 5.0), "short": (0.0018, 0.0002, 0.05)})
    return tmp_path / "coverage_load.json"


def test_every_run_is_right_wrong_or_without_an_interval(small, capsys):
    assert coverage.main(["load", "--seeds", "20"]) == 0
    rows = json.loads(small.read_text())["rows"]
    assert [(row["service"], row["percent"]) for row in rows] == [(s, p) for s in ("fast", "short") for p in (50, 95)]
    for row in rows:
        assert row["right"] + row["wrong"] == row["printed"] == (20 if row["service"] == "fast" else 0)
    assert rows[1]["right"] >= 16
    assert "at most 9 %: kept" in capsys.readouterr().out


def test_intervals_that_are_too_narrow_are_told(small, monkeypatch):
    class Narrow(coverage.Latencies):
        def interval(self, percent):
            return Interval(self.percentile(percent), self.percentile(percent), None)

    monkeypatch.setattr(coverage, "Latencies", Narrow)
    assert coverage.main(["load", "--seeds", "10"]) == 1
    assert small.is_file()
