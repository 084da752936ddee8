"""The stages as nbgrader preprocessors: an Execute that puts in what a worker executed, and display without danger."""

import copy
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor

from grading.course.skeleton import is_automatic, role_of
from grading.submission.pictures import clean_attachments
from grading.submission.sanitise import clean_outputs, inert_markdown

__all__ = ["HideTests", "MakeInert", "PutExecuted"]

Both = tuple[NotebookNode, dict[str, Any]]


class PutExecuted(NbGraderPreprocessor):
    """Replaces Execute and all that guards it: the notebook becomes the one a worker rebuilt, ran and judged.

    Nothing of the submitted notebook passes through the recorder.  Without a worker's result it fails, so that a
    configuration that is only half in place can never grade.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Both:  # noqa: ARG002
        """The executed notebook in the place of ``nb``; RuntimeError where there is none."""
        executed = resources.get("grading", {}).get("notebook")
        if executed is None:
            raise RuntimeError(
                "no sandboxed run belongs to this notebook: grade with grading/nbgrader_config.py in force"
            )
        return nbformat.from_dict(copy.deepcopy(executed)), resources


class MakeInert(NbGraderPreprocessor):
    """After scoring: the student's Markdown, and any output, can do nothing in the page that shows it."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict[str, Any], cell_index: int) -> Both:  # noqa: ARG002
        """One cell, its outputs and the student's Markdown cleaned."""
        role = role_of(cell)
        if cell.cell_type == "code":
            cell.outputs = [NotebookNode(output) for output in clean_outputs(cell.outputs)]
            for output in cell.outputs:
                if "data" in output:
                    output.data, output.metadata = NotebookNode(output.data), NotebookNode()
        elif cell.cell_type == "markdown" and (role.get("solution") or not _provided(cell)):
            cell.source = inert_markdown(cell.source)
            pictures = clean_attachments(cell.pop("attachments", None))
            if pictures:
                cell.attachments = nbformat.from_dict(pictures)
        return cell, resources


class HideTests(ClearHiddenTests):
    """Feedback shows students no more of a test cell than they were given, and its points once, in the heading."""

    enforce_metadata = False

    def preprocess_cell(self, cell: NotebookNode, resources: dict[str, Any], cell_index: int) -> Both:  # noqa: ARG002
        """One cell, without hidden tests, mark schemes and the number beside the points."""
        for begin, end in (("BEGIN HIDDEN TESTS", "END HIDDEN TESTS"), ("BEGIN MARK SCHEME", "END MARK SCHEME")):
            cell.source = _without(cell.source, begin, end)
        if is_automatic(cell):
            # The number that nbgrader reads the points from; the gradebook has them by now.
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
        return cell, resources


def _provided(cell: NotebookNode) -> bool:
    """Rebuilding gives the student's own cells names of this form and no metadata; all else is the instructor's."""
    return not str(cell.get("id", "")).startswith("own-")


def _without(source: str, begin: str, end: str) -> str:
    kept, inside = [], False
    for line in source.split("\n"):
        if begin in line:
            inside = True
        elif inside and end in line:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)
