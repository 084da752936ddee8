"""Stage 6: results into nbgrader's gradebook and ``autograded/``, one submission at a time, each whole or not."""

import errno
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.files import write_bytes
from grading.class_run.beside import files_beside, put
from grading.class_run.chosen_names import chosen, step_folders
from grading.class_run.gradebook import transaction
from grading.class_run.machine_faults import machine_fault
from grading.class_run.records import NotebookResult, Result
from grading.class_run.spool import slim
from grading.course.skeleton import Notebook, load_skeletons
from grading.submission.handed_in import TIMESTAMP, handed_in_at, written
from grading.submission.sanitise import is_active_file

__all__ = ["RECORD", "Recorder"]

RECORD = ".grading.json"
"""The instructor's record of a submission, beside its autograded notebooks; never copied to feedback."""


@dataclass(eq=False)
class Recorder:
    """The one writer of a course's gradebook."""

    coursedir: Any
    config: Any
    """nbgrader's, of the course and for all its parts."""
    force: bool
    create_student: bool
    kept: frozenset[str]
    """Names of the instructor's files that do not replace what a student has under the same name."""
    score: Callable[[dict[str, Any]], str]
    """An executed notebook, in nbconvert's resources, through nbgrader's preprocessors into the gradebook; its text."""
    hooks: Callable[[str], AbstractContextManager[None]]
    """What nbgrader does before and after a student's notebooks."""

    def __post_init__(self) -> None:
        self.assignment: str = self.coursedir.assignment_id
        self.course = Path(self.coursedir.root)
        self.url: str = self.coursedir.db_url

    # --- what there is to grade -------------------------------------------------------------------------------------

    @cached_property
    def skeletons(self) -> dict[str, Notebook]:
        """The assignment's notebooks; InputError where there is no such assignment, in the sources or the gradebook."""
        found = load_skeletons(self.source_folder(), self.config)
        with self.gradebook() as gradebook:
            from nbgrader.api import MissingEntry

            try:
                known = {notebook.name for notebook in gradebook.find_assignment(self.assignment).notebooks}
            except MissingEntry as error:
                raise InputError(
                    f"no assignment {self.assignment!r} in the gradebook: expected it after generate_assignment; "
                    "run `python -m grading build` or `nbgrader generate_assignment`"
                ) from error
        missing = sorted(known - set(found))
        if missing:
            raise InputError(
                f"the gradebook knows the notebook {missing[0]!r} and {self.source_folder()} does not have it: "
                "expected both alike; build the course again"
            )
        return {name: skeleton for name, skeleton in found.items() if name in known}

    @cached_property
    def only(self) -> list[str] | None:
        """Names of the notebooks to grade when nbgrader's ``--notebook`` chose some; None for all."""
        pattern = self.coursedir.notebook_id
        return None if pattern == "*" else chosen(pattern, self.skeletons)

    def students(self) -> list[str]:
        """Everybody with a submission folder that ``--student`` and the exclusions leave, sorted."""
        excluded = {name.strip() for name in self.coursedir.student_id_exclude.split(",") if name.strip()}
        return [n for n in step_folders(self.coursedir, self.coursedir.submitted_directory) if n not in excluded]

    def needs_grading(self, student: str) -> bool:
        """nbgrader's rule: no autograded folder yet, ``--force``, or a submission that is newer."""
        autograded = self.autograded_folder(student)
        missing = any(not (autograded / f"{name}.ipynb").exists() for name in self.only or [])
        return self.force or missing or self.is_newer(student)

    def is_newer(self, student: str) -> bool:
        """Whether the student handed in again since what is autograded, or nothing is."""
        autograded = self.autograded_folder(student)
        new, old = handed_in_at(self.submitted_folder(student)), handed_in_at(autograded)
        return not autograded.exists() or (new is not None and old is not None and new > old)

    def source_folder(self) -> Path:
        """The instructor's notebooks and files."""
        return self._folder(self.coursedir.source_directory, ".")

    def submitted_folder(self, student: str) -> Path:
        """What the student handed in."""
        return self._folder(self.coursedir.submitted_directory, student)

    def autograded_folder(self, student: str) -> Path:
        """What is recorded of the student."""
        return self._folder(self.coursedir.autograded_directory, student)

    def _folder(self, step: str, student: str) -> Path:
        return Path(self.coursedir.format_path(step, student, self.assignment))

    def gradebook(self) -> Any:
        """nbgrader's Gradebook; inside :func:`grading.class_run.gradebook.shared` always the same connection."""
        from nbgrader.api import Gradebook

        return Gradebook(self.url, self.coursedir.course_id)

    # --- what is written --------------------------------------------------------------------------------------------

    def record(self, student: str, result: Result, staged: Path) -> None:
        """Write one submission's files, then its grades in one transaction.

        ``staged`` is the submission as :mod:`grading.submission.stage` copied it.  Scores of people and their
        comments stay.
        """
        target = self.autograded_folder(student)
        whole = self.only is None
        try:
            with transaction(self.url):
                if whole:
                    _remove(target)
                target.mkdir(parents=True, exist_ok=True)
                result["not_copied"] = self._copy_files(staged, target)
                self._register(student, staged)
                with self.hooks(student):
                    for name, notebook in result["notebooks"].items():
                        self._record_notebook(student, name, notebook, target)
                    write_bytes(target / RECORD, json.dumps(slim(result), indent=1).encode())
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM) and machine_fault(error) is None:
                raise
            raise FileError(
                f"cannot write {error.filename or target} ({error.strerror}): expected a course folder of yours with "
                "free space; correct that and add --resume"
            ) from error

    def void(self, student: str, error: str) -> None:
        """No result: no score of an earlier run may stand. What a person gave stays, and is marked for that person."""
        from nbgrader.api import MissingEntry

        with transaction(self.url):
            gradebook = self.gradebook()
            try:
                submission = gradebook.find_submission(self.assignment, student)
            except MissingEntry:
                _remove(self.autograded_folder(student))
                return
            self.coursedir.log.debug("%s: no result (%s)", student, error)
            for notebook in submission.notebooks:
                notebook.late_submission_penalty = None
                for grade in notebook.grades:
                    grade.auto_score = None
                    grade.needs_manual_grade = True
            gradebook.db.commit()
        # Last: a gradebook that cannot be written must not leave scores without their notebooks.
        _remove(self.autograded_folder(student))

    def _register(self, student: str, staged: Path) -> None:
        """The student and the submission in the gradebook, as nbgrader's ``init_assignment`` has them."""
        from nbgrader.api import MissingEntry

        gradebook = self.gradebook()
        if self.create_student:
            gradebook.update_or_create_student(student)
        else:
            try:
                gradebook.find_student(student)
            except MissingEntry as error:
                raise InputError(
                    f"no student {student!r} in the gradebook: expected one that is enrolled; add them in formgrader"
                ) from error
        timestamp = handed_in_at(staged)
        given = {} if timestamp is None else {"timestamp": timestamp}
        gradebook.update_or_create_submission(self.assignment, student, **given)

    def _record_notebook(self, student: str, name: str, notebook: NotebookResult, target: Path) -> None:
        path = target / f"{name}.ipynb"
        if notebook["status"] == "missing":
            path.unlink(missing_ok=True)
            self._zero(student, name)
            return
        resources = {
            "unique_key": name,
            "output_files_dir": f"{name}_files",
            "nbgrader": {"student": student, "assignment": self.assignment, "notebook": name, "db_url": self.url},
            "grading": {"notebook": notebook["notebook"]},
        }
        text = self.score(resources)
        if notebook["status"] == "not_a_notebook":
            self._zero(student, name)
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")

    def _zero(self, student: str, name: str) -> None:
        """Nothing was handed in that could be graded, by a machine or by a person: zero, as nbgrader has it."""
        gradebook = self.gradebook()
        notebook = gradebook.find_submission_notebook(name, self.assignment, student)
        notebook.late_submission_penalty = None
        for grade in notebook.grades:
            grade.auto_score = 0
            grade.needs_manual_grade = grade.manual_score is not None
        gradebook.db.commit()

    def _copy_files(self, staged: Path, target: Path) -> list[str]:
        """The submission's other files, then the instructor's own over them; what a browser would run stays behind."""
        not_copied = []
        for name, path in files_beside(staged, self.source_folder(), self.kept).items():
            if name == TIMESTAMP:
                # Formgrader cannot show a course in which one such file is no date.
                if (moment := handed_in_at(staged)) is not None:
                    (target / name).write_text(written(moment), encoding="utf-8")
            elif is_active_file(name) and path.is_relative_to(staged):
                not_copied.append(name)
            else:
                put(path, target / name)
        return not_copied


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
