"""The side-by-side measurements run, on few trials."""

import numpy as np

from benchmarks import bench_overhead, false_alarm
from deep_learning_cases.ground import files


def test_pooling_cries_wolf_where_rounds_do_not():
    row = false_alarm.row(5, 200, 40, np.random.default_rng(1729))
    assert row["per_round_t"]["rate"] <= 0.1
    assert row["pooled_bootstrap"]["rate"] >= 0.5
    assert row["per_round_t"]["low"] <= row["per_round_t"]["rate"] <= row["per_round_t"]["high"]


def test_the_false_alarm_table_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(false_alarm, "RESULT", tmp_path / "results" / "false_alarm.json")
    code = false_alarm.main(["--trials", "20", "--bootstrap-trials", "2"])
    written = files.read_json(tmp_path / "results" / "false_alarm.json")
    assert [row["process_sd_percent"] for row in written["rows"]] == [0, 1, 2, 5]
    worst = max(row["per_round_t"]["rate"] for row in written["rows"])
    assert code == (0 if worst <= 0.07 else 1)
    assert "pooled bootstrap" in capsys.readouterr().out


def test_a_broken_limit_is_reported(capsys):
    peaks = {"fp32": [60_000_000], "int8": [65_000_000]}
    result = {
        "loop_overhead_us": [0.07], "loop_total_us": [0.2], "bench_seconds": [1.0], "peak_rss_bytes": peaks,
        "peak_rss_source": ["VmHWM"], "bare": {"peak_rss_bytes": {}, "seconds": []},
    }  # fmt: skip
    assert bench_overhead.report(result) == 1
    assert "limit 64 MB: BROKEN" in capsys.readouterr().out
    assert bench_overhead.report(result | {"peak_rss_bytes": {"fp32": [60_000_000]}}) == 0
