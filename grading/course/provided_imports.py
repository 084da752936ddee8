"""What the provided cells of a notebook import before a solution cell, for a solution that is run alone."""

import ast
import json
from pathlib import Path

from deep_learning_cases.errors import FileError
from grading.course.places import LABS
from grading.course.skeleton import NAMESPACE, Cell, role_of

__all__ = ["imports_before"]

# The labs hold the masters' provided cells as they are (`build --check`), and are read without jupytext's second.


def imports_before(cell: str, labs: Path = LABS) -> str:
    """The import statements of the locked cells above solution ``cell``, of those that a graded run runs.

    Raises FileError if no notebook of ``labs`` has this cell, or one cannot be read.
    """
    for path in sorted(labs.glob("*/*.ipynb")):
        cells = _cells(path)
        names = [role_of(each).get("grade_id") for each in cells]
        if cell in names:
            return "\n".join(line for each in cells[: names.index(cell)] if _provided(each) for line in _imports(each))
    raise FileError(
        f"no notebook in {labs} has a cell {cell!r}: expected the labs as the masters give them; "
        "run `python -m grading build`"
    )


def _cells(path: Path) -> list[Cell]:
    try:
        cells: list[Cell] = json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"cannot read {path} ({type(error).__name__}): expected a notebook of the course; "
            "run `python -m grading build`"
        ) from error
    return cells


def _provided(cell: Cell) -> bool:
    measures = cell["metadata"].get(NAMESPACE, {}).get("measures")
    return bool(cell["cell_type"] == "code" and role_of(cell).get("locked") and not measures)


def _imports(cell: Cell) -> list[str]:
    statements = ast.parse("".join(cell["source"])).body
    return [ast.unparse(each) for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
