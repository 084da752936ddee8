"""Our notebooks as tests look at them: their cells, a run of them as a student would, and what a person gets to see."""

import html
import os
import re
import shutil
from pathlib import Path
from typing import Any

from grading.course.places import CHECKOUT

__all__ = ["errors", "execute", "role", "said", "solution_lines", "source_of", "text_alternatives"]

_PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/png;base64,iVBORw0KGgo')


def source_of(cell: dict[str, Any]) -> str:
    """A cell's source."""
    return "".join(cell["source"])


def role(cell: dict[str, Any]) -> dict[str, Any]:
    """What the cell is to nbgrader; empty for prose."""
    return cell["metadata"].get("nbgrader", {})


def solution_lines(cell: dict[str, Any]) -> set[str]:
    """The lines of the reference answer in this cell that are long enough to tell something."""
    if not role(cell).get("solution"):
        return set()
    source = source_of(cell)
    if cell["cell_type"] == "code":
        source = "\n".join(re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, flags=re.DOTALL))
    return {line.strip() for line in source.splitlines() if len(line.strip()) > 6}


def execute(notebooks: Path, name: str, folder: Path, extra: str = "") -> dict[str, list[Any]]:
    """Run one notebook in ``folder``, past errors, then the cell ``extra``; {cell id: outputs}."""
    import nbformat
    from nbclient import NotebookClient

    shutil.copy(notebooks / f"{name}.ipynb", folder)
    notebook = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    if extra:
        notebook.cells.append(nbformat.v4.new_code_cell(extra, id="extra"))
    client = NotebookClient(
        notebook, timeout=400, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    backend = "module://matplotlib_inline.backend_inline"
    client.execute(env={**os.environ, "PYTHONPATH": str(CHECKOUT), "MPLBACKEND": backend})
    return {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def errors(outputs: list[Any], *, stderr: bool = True) -> list[str]:
    """What went wrong in a cell, and what was said on stderr, where progress bars are not expected."""
    failed = [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]
    return failed + [one.text for one in outputs if stderr and one.output_type == "stream" and one.name == "stderr"]


def said(outputs: list[Any]) -> str:
    """What a cell printed."""
    return "".join(one.text for one in outputs if one.output_type == "stream")


def text_alternatives(outputs: list[Any]) -> list[str]:
    """The text of every picture among these outputs; a picture without one is a failure."""
    found: list[str] = []
    for output in outputs:
        data = output.get("data", {})
        assert "image/png" not in data, "JupyterLab shows a bare PNG without any alternative text"
        found += [html.unescape(words) for words in _PICTURE.findall(data.get("text/html", ""))]
    return found
