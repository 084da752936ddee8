"""What a graded notebook shows: the points and the message of every item, in the cell that names it.

nbgrader reads points from a cell's outputs, gives full credit to a cell without any and fails on more than the maximum,
so every automatic cell gets exactly two outputs, both ours: the message, and a number that is never out of range.
"""

import html
import math
from typing import Any

from grading.course.skeleton import Cell, Notebook, is_automatic, role_of
from grading.judging.items import ItemResult

__all__ = ["put_message", "put_verdict"]

Output = dict[str, Any]


def put_verdict(notebook: Notebook, items: list[ItemResult], reason: str | None = None) -> None:
    """Give each automatic cell its item's points and message; zero and ``reason`` where nothing was judged."""
    by_id = {item.id: item for item in items}
    for cell in notebook["cells"]:
        if not is_automatic(cell):
            continue
        role = role_of(cell)
        item = by_id.get(role["grade_id"])
        points = _within(item.points if item else 0.0, float(role["points"]))
        message = item.message if item else reason or "Nothing was handed in for this item."
        cell["outputs"] = [_message(message), _number(points)]
        cell["execution_count"] = None


def put_message(cell: Cell, message: str) -> None:
    """Add a sentence of the grader's own behind what the cell printed."""
    cell["outputs"] = [*cell["outputs"], _message(message)]


def _within(points: float, maximum: float) -> float:
    return min(max(points, 0.0), maximum) if math.isfinite(points) else 0.0


def _message(text: str) -> Output:
    # nbconvert's cleaning of HTML knows no paragraphs and line breaks: it would show their tags as text.
    shown = "".join(f"<div><strong>{html.escape(line)}</strong></div>" for line in text.split("\n"))
    data = {"text/html": shown, "text/plain": text}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _number(points: float) -> Output:
    return {
        "output_type": "execute_result",
        "data": {"text/plain": repr(float(points))},
        "execution_count": None,
        "metadata": {},
    }
