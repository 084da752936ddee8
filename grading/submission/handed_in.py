"""When a submission was handed in: a strict reading of ``timestamp.txt``, which its student may have written.

nbgrader gives the file to a parser that guesses.  It takes "10" for a day of this month and ``+0200`` for 200 seconds,
and a text that it cannot guess can stop the plan of a whole class.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from grading.submission.stage import read_file

__all__ = ["TIMESTAMP", "handed_in_at", "has_unreadable_time", "parse_time", "written"]

TIMESTAMP = "timestamp.txt"
MAX_BYTES = 200

_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?"
    r"(?: ?(Z|[+-]\d{2}:?(?:\d{2})?)| ([A-Za-z][A-Za-z0-9_+-]{0,19}(?:/[A-Za-z0-9_+-]{1,20}){0,2}))?",
    re.ASCII,
)
_SUMMER = {"BST": 1, "WEST": 1, "CEST": 2, "EEST": 3, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "PST": -8, "CST": -6}
"""Hours from UTC, for names that ``strftime`` writes and the list of zones does not have."""


def parse_time(text: str) -> datetime | None:
    """The moment in UTC, without a zone as nbgrader keeps it; None for what is no date with a time.

    A date, a time to the minute or finer, and perhaps a zone: Z, an offset such as +0200, or a name. Without one it is
    UTC, and a zone that nobody knows leaves the moment unknown.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, offset, name = found.groups()
    try:
        zone = _offset(offset) if offset else _named(name) if name else UTC
        moment = datetime.fromisoformat(f"{day} {clock}").replace(microsecond=int(f"{fraction or 0:0<6}"[:6]))
        return moment.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, KeyError, OverflowError, OSError, ImportError):
        return None


def handed_in_at(folder: Path) -> datetime | None:
    """As :func:`parse_time`, of a submission's folder; None also where there is no such file."""
    content = read_file(folder / TIMESTAMP, MAX_BYTES)
    return None if content is None else parse_time(content.decode("utf-8", "replace"))


def has_unreadable_time(folder: Path) -> bool:
    """Whether something was handed in as a time and is none, so that nobody knows whether it was late."""
    return handed_in_at(folder) is None and (folder / TIMESTAMP).exists()


def written(moment: datetime) -> str:
    """A moment in the one form that nbgrader's parser and ours read alike."""
    return f"{moment.isoformat(sep=' ')} UTC\n"


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-away if text[0] == "-" else away)


def _named(name: str) -> tzinfo:
    hours = _SUMMER.get(name)
    return ZoneInfo(name) if hours is None else timezone(timedelta(hours=hours))
