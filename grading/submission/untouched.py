"""Whether anything in a notebook is the student's own: evidence beside an untouched notebook earns nothing.

Evidence is a folder that can be copied from a neighbour.  Whoever wrote no answer has not done the work that it shows,
and a notebook that was never saved should say so instead of giving half of the points.
"""

from grading.course.skeleton import Cell, Notebook, role_of

__all__ = ["UNTOUCHED", "is_untouched"]

UNTOUCHED = (
    "No answer in this notebook has been written, so the evidence beside it earns nothing here. Was the notebook saved "
    "before it was handed in?"
)


def is_untouched(skeleton: Notebook, notebook: Notebook) -> bool:
    """True if a rebuilt notebook asks for answers and holds none: comments and empty lines are no answer."""
    asked = {cell["id"]: cell for cell in skeleton["cells"] if role_of(cell).get("solution")}
    known = {cell["id"] for cell in skeleton["cells"]}
    for cell in notebook["cells"]:
        if cell["id"] in asked and _meaning(cell) != _meaning(asked[cell["id"]]):
            return False
        if cell["id"] not in known and cell["cell_type"] == "code" and _meaning(cell):
            return False
    return bool(asked)


def _meaning(cell: Cell) -> str:
    """What a cell says, apart from its layout; not parsed, because hostile source can bring a parser down."""
    lines = cell["source"].split("\n")
    if cell["cell_type"] == "code":
        lines = [line for line in lines if not line.lstrip().startswith("#")]
    return " ".join(" ".join(lines).split())
