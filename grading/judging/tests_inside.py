"""Ordinary nbgrader tests, for assignments whose items have no judge outside.

Such a cell runs after the student's code in the student's process, as it does under nbgrader itself, and whatever runs
there can be forged.  It is kept for other courses' assignments; a submission with points from it is flagged.
"""

import math
from typing import Any

from grading.course.skeleton import Cell, role_of
from grading.judging.flags import Flag
from grading.judging.items import ItemResult

__all__ = ["INSIDE", "judge_inside"]

INSIDE = Flag(
    "checked-inside",
    "some tests of this assignment run in the student's own process, where a result can be forged",
)
"""The flag of a submission with points from there."""


def judge_inside(cell: Cell, run: dict[str, Any]) -> ItemResult:
    """The item of one executed test cell: nbgrader's rules, but nothing for what did not run or is below zero.

    An error gives nothing; a last expression that is a number gives that many points; anything else gives all.  A line
    on standard error costs nothing: native libraries write there whatever they like.
    """
    role = role_of(cell)
    item, maximum = role["grade_id"], float(role["points"])
    outputs = run["outputs"].get(cell["id"], [])
    if run["execution_counts"].get(cell["id"]) is None:
        why = (run["stopped"] or {}).get("message") or "the notebook did not get this far"
        return ItemResult(item, 0.0, maximum, False, f"This test did not run: {why}.")
    for output in outputs:
        if output.get("output_type") == "error":
            return ItemResult(item, 0.0, maximum, False, f"This test did not pass{_reason(cell, output)}.")
        if output.get("output_type") == "execute_result":
            points = _points(output, maximum)
            passed = points == maximum
            return ItemResult(item, points, maximum, passed, "This test passed." if passed else "Partial credit.")
    return ItemResult(item, maximum, maximum, True, "This test passed.")


def _reason(cell: Cell, output: dict[str, Any]) -> str:
    """What the error said, unless the cell holds hidden tests, whose words may carry what they compare with."""
    if "BEGIN HIDDEN TESTS" in cell["source"]:
        return ""
    name, value = str(output.get("ename", ""))[:100], str(output.get("evalue", ""))[:500]
    return f": {name}: {value}" if value else f": {name}"


def _points(output: dict[str, Any], maximum: float) -> float:
    data = output.get("data")
    text = data.get("text/plain") if isinstance(data, dict) else None
    text = "".join(text) if isinstance(text, list) else text
    try:
        points = float(str(text))
    except ValueError:
        return maximum
    return min(max(points, 0.0), maximum) if math.isfinite(points) else 0.0
