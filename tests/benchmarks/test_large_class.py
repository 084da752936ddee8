"""The benchmarks of grading run, and what they say of growth is arithmetic that can be checked."""

import pytest

from benchmarks.large_class import growth, measure


def test_growth_is_seen_where_there_is_some() -> None:
    steady = growth([(0.05 * k, 200.0) for k in range(1000)])
    assert steady == {"first_tenth_ms": 50.0, "last_tenth_ms": 50.0, "first_tenth_mb": 200.0, "end_mb": 200.0}
    quadratic = growth([(0.0001 * k * k, 200.0 + k) for k in range(1000)])
    assert quadratic["last_tenth_ms"] > 10 * quadratic["first_tenth_ms"]
    assert quadratic["end_mb"] == 1199.0
    assert quadratic["first_tenth_mb"] == 300.0


@pytest.mark.parametrize("number", [1, 2, 5])
def test_growth_of_a_few_is_no_failure(number: int) -> None:
    assert growth([(0.05 * k, 200.0) for k in range(number)])["end_mb"] == 200.0


@pytest.mark.slow
def test_a_small_large_class_is_measured() -> None:
    row = measure(12)
    assert row["students"] == 12
    assert all(row[key] > 0 for key in ("record_seconds", "report_seconds", "export_seconds", "list_seconds"))
    assert all(row[key] > 0 for key in ("first_tenth_ms", "last_tenth_ms", "first_tenth_mb", "end_mb", "disk_mb"))
