"""Odd evidence is named for a person, with reasons that claim no more than they can."""

import copy
import random
from datetime import UTC, datetime, timedelta

import pytest

from grading.judging.suspicion import NO_PROOF, evidence_flags

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def record():
    """A benchmark record as measuring gives it: jitter on the clock's grid, fresh processes, a second or so per run."""
    rng = random.Random(1729)
    runs = []
    for index in range(6):
        samples = {
            batch: [round(base * (1 + 0.02 * rng.random() + 0.3 * rng.random() ** 9), 3) for _ in range(100)]
            for batch, base in (("1", 12.0), ("32", 78.0))
        }
        runs.append(
            {
                "round": index // 2 + 1,
                "position": index % 2 + 1,
                "model": ("fp32", "int8")[(index + index // 2) % 2],
                "pid": 4000 + 7 * index,
                "started_at": (START + timedelta(seconds=1.4 * index)).isoformat(),
                "load_average": [0.1, 0.1, 0.1],
                "cold_start_us": 9000.0 + index,
                "peak_rss_bytes": 57_000_000 + 4096 * index,
                "peak_rss_source": "VmHWM",
                "samples_us": samples,
            }
        )
    return {"created_at": (START + timedelta(seconds=9)).isoformat(), "runs": runs}


def ids(value):
    return {flag.id for flag in evidence_flags(value)}


def test_measured_times_raise_no_flag():
    assert evidence_flags(record()) == []


def identical(value):
    value["runs"][0]["samples_us"]["1"] = [12.345] * 100


def no_spread(value):
    value["runs"][0]["samples_us"]["1"] = [12.0 + 0.001 * (k % 7) for k in range(100)]


def ascending(value):
    value["runs"][2]["samples_us"]["32"].sort()


def descending(value):
    value["runs"][2]["samples_us"]["32"].sort(reverse=True)


def whole(value):
    for run in value["runs"]:
        run["samples_us"] = {batch: [float(round(s)) for s in samples] for batch, samples in run["samples_us"].items()}


def generated(value):
    rng = random.Random(3)
    for run in value["runs"]:
        run["samples_us"] = {batch: [rng.gauss(50, 5) for _ in samples] for batch, samples in run["samples_us"].items()}


def copied(value):
    value["runs"][3]["samples_us"]["1"] = list(value["runs"][0]["samples_us"]["1"])


def half_copied(value):
    value["runs"][3]["samples_us"]["1"][:60] = value["runs"][0]["samples_us"]["1"][:60]


def shuffled(value):
    value["runs"][3]["samples_us"]["1"] = list(reversed(value["runs"][0]["samples_us"]["1"]))


def scaled(value):
    value["runs"][3]["samples_us"]["1"] = [1.5 * sample for sample in value["runs"][0]["samples_us"]["1"]]


def shifted(value):
    value["runs"][3]["samples_us"]["1"] = [sample + 2 for sample in value["runs"][0]["samples_us"]["1"]]


def one_process(value):
    value["runs"][1]["pid"] = value["runs"][0]["pid"]


def same_memory(value):
    for run in value["runs"]:
        run["peak_rss_bytes"] = 57_000_000


def swapped_starts(value):
    runs = value["runs"]
    runs[1]["started_at"], runs[2]["started_at"] = runs[2]["started_at"], runs[1]["started_at"]


def made_before_it_was_measured(value):
    value["created_at"] = (START - timedelta(days=1)).isoformat()


def too_quick(value):
    value["runs"][0]["samples_us"]["32"] = [sample * 1000 for sample in value["runs"][0]["samples_us"]["32"]]


def warm_cold_start(value):
    value["runs"][4]["cold_start_us"] = 3.0


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        (identical, "identical-samples"),
        (no_spread, "no-spread"),
        (ascending, "sorted-samples"),
        (descending, "sorted-samples"),
        (whole, "round-numbers"),
        (generated, "finer-than-the-clock"),
        (copied, "repeated-samples"),
        (half_copied, "repeated-samples"),
        (shuffled, "repeated-samples"),
        (scaled, "scaled-samples"),
        (shifted, "shifted-samples"),
        (one_process, "same-process"),
        (same_memory, "identical-memory"),
        (swapped_starts, "impossible-order"),
        (made_before_it_was_measured, "impossible-order"),
        (too_quick, "impossible-time"),
        (warm_cold_start, "cold-start-faster"),
    ],
)
def test_odd_evidence_is_flagged(change, flag):
    value = record()
    change(value)
    assert flag in ids(value)
    for one in evidence_flags(value):
        assert NO_PROOF in one.reason
        assert "\n" not in one.reason


def test_the_text_says_what_cannot_be_proved():
    assert "neither hashes nor statistics can prove that times were measured" in NO_PROOF
    assert "costs no points" in NO_PROOF


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"runs": None},
        {"runs": "text"},
        {"runs": [None, 3, [], {}]},
        {"runs": [{"samples_us": {"1": ["a"] * 30}, "pid": "x", "started_at": 7, "peak_rss_bytes": None}]},
        {"runs": [{"samples_us": [1, 2]}, {"samples_us": {"1": [10**400] * 30}}], "created_at": "yesterday"},
        {"runs": [{"samples_us": {"1": [True] * 30}, "started_at": "2026-01-05", "cold_start_us": -1}]},
    ],
)
def test_a_damaged_record_is_passed_over(value):
    assert isinstance(evidence_flags(copy.deepcopy(value)), list)


def test_a_record_with_very_many_series_stays_cheap():
    value = record()
    value["runs"] = value["runs"] * 200
    assert "same-process" in ids(value)
