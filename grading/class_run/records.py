"""What passes between recorder, worker and disk: plain JSON, so that it may cross a process or a machine."""

from typing import Any, NotRequired, TypedDict

from grading.course.skeleton import Notebook
from grading.judging.flags import FlagRecord
from grading.judging.items import ItemRecord
from grading.submission.rebuild import Note
from grading.submission.stage import LeftOut

__all__ = ["Answer", "Job", "NotebookResult", "Result", "Settings", "SpoolEntry"]


class Settings(TypedDict):
    """How a worker's sandbox is to be."""

    limits: dict[str, Any]
    isolation: str
    cold: bool


class Job(TypedDict):
    """One staged submission, see :mod:`grading.submission.stage`.

    ``work_folder`` has the files that a notebook finds beside it (the staged folder if absent), ``inputs`` is the
    fingerprint of the hidden ones, ``only`` names the notebooks to grade if not all.  For a worker elsewhere the bytes
    of both folders come along.
    """

    assignment: str
    student: str
    folder: str
    work_folder: NotRequired[str]
    skeletons: dict[str, Notebook]
    only: NotRequired[list[str] | None]
    seed: str
    inputs: NotRequired[str]
    left_out: NotRequired[list[LeftOut]]
    digest: NotRequired[str]
    settings: NotRequired[Settings]
    files: NotRequired[dict[str, bytes]]
    work_files: NotRequired[dict[str, bytes]]


class NotebookResult(TypedDict):
    """One notebook, rebuilt, run and judged; ``status`` is graded, missing or not_a_notebook.

    ``stopped`` is None or {"why", "cell", "message"}; the notebook itself is left out once it has been recorded.
    """

    status: str
    notes: list[Note]
    items: list[ItemRecord]
    scores: dict[str, float]
    stopped: dict[str, Any] | None
    seconds: float
    notebook: NotRequired[Notebook]
    message: NotRequired[str]


class Result(TypedDict):
    """All that is ever recorded of a submission; ``others`` are notebooks of which an earlier run is known."""

    schema: str
    assignment: str
    student: str
    digest: str
    inputs: str
    status: str
    notebooks: dict[str, NotebookResult]
    left_out: list[LeftOut]
    flags: list[FlagRecord]
    isolation: dict[str, Any]
    seconds: float
    not_copied: NotRequired[list[str]]
    others: NotRequired[dict[str, NotebookResult]]


class Answer(TypedDict, total=False):
    """A worker's: one of these. ``error`` is of this submission, ``fatal`` would meet every one."""

    result: Result
    error: str
    fatal: str


class SpoolEntry(TypedDict):
    """What is known on disk of one submission: a result, or the error in its place."""

    run: str
    state: str
    result: NotRequired[Result]
    error: NotRequired[str]
