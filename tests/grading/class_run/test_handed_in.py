"""When a submission was handed in, whatever its ``timestamp.txt`` says."""

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.submission.handed_in import handed_in_at, has_unreadable_time, parse_time, written
from tests.grading.classroom import ASSIGNMENT, grade, hand_in, make_course

NOON = datetime.fromisoformat("2026-07-10 12:00")
NO_TIMES = [
    ",99999999999999999999199999999999999999999m",
    "yesterday evening",
    "",
    "10",
    "2026-02-30 12:00:00 UTC",
    "2026-07-10",
    "0001-01-01 00:00:00 +2300",
    "9999-12-31 23:59:59 -2300",
    "2026-07-10 12:00:00 +9900",
    "2026-07-10 12:00:00 Nowhere/Here",
    "2026-07-10 12:00:00 ../../etc/passwd",
    "2026-07-10 12:00:00 /etc/localtime",
    "2026-07-10 12:00:00 UTC and more",
    "²026-07-10 12:00:00",
    "\x00",
]


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-10 12:00:00 UTC",
        "2026-07-10 12:00:00.000000 UTC",
        "2026-07-10T12:00Z",
        "2026-07-10 12:00",
        " 2026-07-10 12:00:00\n",
        "2026-07-10 14:00:00 +0200",
        "2026-07-10 14:00:00+02:00",
        "2026-07-10 14:00:00 CEST",
        "2026-07-10 14:00:00 Europe/Berlin",
        "2026-07-10 08:00:00 EDT",
        "2026-07-10 06:30:00 -0530",
    ],
)
def test_one_moment_in_many_forms(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_none_and_raises_nothing(text: str, tmp_path: Path) -> None:
    assert parse_time(text) is None
    (tmp_path / "timestamp.txt").write_text(text)
    assert has_unreadable_time(tmp_path)


@given(st.one_of(st.text(max_size=60), st.from_regex(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( [+A-Za-z/-]\w{1,9})?")))
def test_any_text_is_a_time_or_none(text: str) -> None:
    moment = parse_time(text)
    assert moment is None or parse_time(written(moment)) == moment


def test_the_file_may_be_anything(tmp_path: Path) -> None:
    assert handed_in_at(tmp_path) is None
    assert not has_unreadable_time(tmp_path), "none was handed in, which is a way to collect"
    (tmp_path / "timestamp.txt").mkdir()
    assert has_unreadable_time(tmp_path)


def test_nbgrader_reads_what_we_write() -> None:
    from nbgrader.utils import parse_utc

    for moment in (NOON, NOON.replace(microsecond=5)):
        assert parse_utc(written(moment).strip()) == moment


@pytest.mark.slow
def test_a_class_with_times_that_are_none(tmp_path: Path) -> None:
    """All are graded, again when they hand in again, and formgrader's list has all of them."""
    course = make_course(tmp_path)
    hand_in(course, "ada")
    hand_in(course, "zoe", timestamp="2026-01-10 14:00:00 +0200")
    for number in range(3):
        hand_in(course, f"s{number}")
    assert grade(course).graded == 5
    for number in range(3):
        hand_in(course, f"s{number}", timestamp=NO_TIMES[number])
    hand_in(course, "ada", timestamp="2026-01-11 12:00:00 UTC")
    assert grade(course).graded == 1, "one is newer; of the others nobody knows"
    summary = grade(course, force=True)
    assert (summary.graded, summary.failed) == (5, {})
    assert (course / "autograded/zoe" / ASSIGNMENT / "timestamp.txt").read_text() == "2026-01-10 12:00:00 UTC\n"
    from grading.commands import class_report

    flags = class_report.collect(course, ASSIGNMENT).flags
    assert {key[0]: who for key, who in flags.items()}["time-unknown"] == ["s0", "s1", "s2"]
    assert _formgraders_list(course) == {"ada", "zoe", "s0", "s1", "s2"}


def _formgraders_list(course: Path) -> set[str]:
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    from grading.course_config import course_config

    config = course_config(course)
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    return {one["student"] for one in api.get_submissions(ASSIGNMENT)}
