"""Items and flags on the terminal."""

import textwrap
from collections.abc import Sequence

from grading.judging.flags import Flag
from grading.judging.items import ItemResult

__all__ = ["result_lines"]


def result_lines(items: Sequence[ItemResult], flags: Sequence[Flag], isolation: str) -> list[str]:
    """One paragraph per item, then the flags, the total and the wall."""
    width = max(len(item.id) for item in items)
    lines = []
    for item in items:
        named = f"[{item.mistake}] " if item.mistake else ""
        head = f"{item.id:<{width}}  {item.points:>3g} of {item.max_points:g}  "
        lines += textwrap.wrap(named + item.message, 110, initial_indent=head, subsequent_indent=" " * len(head))
    for flag in flags:
        place = f" ({flag.where})" if flag.where else ""
        lines += textwrap.wrap(f"to look at: {flag.reason}{place}", 110, subsequent_indent="  ")
    points, most = sum(item.points for item in items), sum(item.max_points for item in items)
    return [*lines, f"{points:g} of {most:g} points; isolation: {isolation}"]
