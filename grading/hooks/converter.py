"""nbgrader's autograde and feedback converters with the stages of the trust boundary in place of its own.

``nbgrader autograde``, formgrader's button and ``python -m grading autograde`` all end in :class:`SafeAutograde`: what
differs is only who asked.  Skipping, ``--force``, timestamps, late penalties, missing notebooks, manual scores and
permissions follow nbgrader.
"""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbformat.v4 import new_notebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, GetGrades, IgnorePattern, LimitOutput, SaveAutoGrades
from traitlets import Any as AnyTrait
from traitlets import Bool, Dict, Enum, Integer, List, Unicode, default

from deep_learning_cases.errors import DeepLearningCasesError, InputError
from deep_learning_cases.ground.command_line import printable
from grading.class_run.chosen_names import chosen, step_folders
from grading.class_run.machine_faults import raise_if_of_all, sentence
from grading.class_run.record import RECORD, Recorder
from grading.class_run.whole_class import Options, grade_class
from grading.hooks.display_filters import BoundedHTML
from grading.hooks.feedback_page import ReadableFeedback, display_config
from grading.hooks.preprocessors import HideTests, MakeInert, PutExecuted
from grading.submission.handed_in import handed_in_at

__all__ = ["SafeAutograde", "SafeGenerateFeedback", "install"]


class SafeAutograde(Autograde):
    """Autograde whose students' code runs only in sandboxed workers, and whose points are decided outside them."""

    sanitize_preprocessors: List[Any] = List([]).tag(config=True)
    autograde_preprocessors = List(
        [
            PutExecuted,
            IgnorePattern,
            ClearMetadataPreprocessor,
            LimitOutput,
            SaveAutoGrades,
            AssignLatePenalties,
            MakeInert,
        ]
    ).tag(config=True)

    jobs = Integer(0, help="Local worker processes; 0 for as many as there are usable cores.").tag(config=True)
    scheduler = Unicode("", help="Address of a Dask scheduler to run on instead of local processes.").tag(config=True)
    isolation = Enum(["auto", "bubblewrap", "landlock", "none"], "auto", help="The wall to run behind.").tag(
        config=True
    )
    cold = Bool(False, help="A fresh kernel for every notebook instead of a forked one.").tag(config=True)
    limits = Dict(help="Limits of a submission that differ from the defaults, for example seconds_per_cell.").tag(
        config=True
    )
    fixtures_seed_file = Unicode("", help="The course's own seed of hidden fixtures.").tag(config=True)
    resume = Bool(False, help="Continue the last run of this assignment.")

    backend = AnyTrait(None)
    """Where to run, if not where the options say (tests put one here)."""

    summary = AnyTrait(None)
    """After :meth:`start`: the :class:`grading.class_run.whole_class.Summary` of the run."""

    def options(self) -> Options:
        """What the command line or the configuration asked for."""
        return Options(
            jobs=self.jobs,
            scheduler=self.scheduler,
            isolation=self.isolation,
            cold=self.cold,
            limits=dict(self.limits),
            seed_file=self.fixtures_seed_file,
            resume=self.resume,
        )

    def start(self) -> None:
        """As nbgrader's; an error of ours ends in the one that nbgrader's callers expect."""
        try:
            super().start()
        except DeepLearningCasesError as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from error

    def init_notebooks(self) -> None:
        """Submissions are found by their folders: one without any notebook must be graded, too."""
        self.assignments: dict[str, list[str]] = {}
        self.notebooks: list[str] = []

    def convert_notebooks(self) -> None:
        """Grade the class; NbGraderException where a submission was not graded."""
        stages = [*self.sanitize_preprocessors, *self.autograde_preprocessors]
        if stages[:1] != [PutExecuted] or SaveAutoGrades not in stages:
            raise InputError(
                "the configured preprocessors do not begin with grading's PutExecuted and hold SaveAutoGrades: "
                "expected both, or students' code could run here; leave Autograde.*_preprocessors as they are"
            )
        self.summary = grade_class(self._recorder(), self.options(), self.backend)
        if self.summary.failed:
            lines = [f"{student}: {error}" for student, error in self.summary.failed.items()]
            for line in lines:
                self.log.error("%s", printable(line))
            raise NbGraderException(f"{len(lines)} of {self.summary.graded + len(lines)} submissions were not graded")

    def _recorder(self) -> Recorder:
        assignment = self.coursedir.assignment_id
        kept = frozenset(self.exclude_overwriting.get(assignment, []))
        return Recorder(self.coursedir, self.config, self.force, self.create_student, kept, self._score, self._hooks)

    def _score(self, resources: dict[str, Any]) -> str:
        self.exporter._preprocessors = []
        for stage in [*self.sanitize_preprocessors, *self.autograde_preprocessors]:
            self.exporter.register_preprocessor(stage)
        text, _ = self.exporter.from_notebook_node(new_notebook(), resources=resources)
        return str(text)

    @contextlib.contextmanager
    def _hooks(self, student: str) -> Iterator[None]:
        self.run_pre_convert_hook()
        yield
        self.set_permissions(self.coursedir.assignment_id, student)
        self.run_post_convert_hook()


class SafeGenerateFeedback(GenerateFeedback):
    """Feedback without hidden tests, the instructor's record, or anything a browser would run."""

    failed: dict[str, str]
    """After :meth:`start`: whose pages could not be made, and why."""

    preprocessors = List([GetGrades, HideTests, MakeInert, CSSHTMLHeaderPreprocessor]).tag(config=True)

    def __init__(self, coursedir: Any = None, **kwargs: Any) -> None:
        super().__init__(coursedir=coursedir, **kwargs)
        self.update_config(display_config())

    @default("exporter_class")
    def _exporter_class_default(self) -> type[ReadableFeedback]:
        return ReadableFeedback

    def init_notebooks(self) -> None:
        """As nbgrader's, for names that hold the characters of a pattern as well."""
        self.assignments: dict[str, list[str]] = {}
        self.notebooks: list[str] = []
        self._students: dict[str, str] = {}
        for student, folder in step_folders(self.coursedir, self._input_directory).items():
            self._students[str(folder)] = student
            names = chosen(self.coursedir.notebook_id, (path.stem for path in folder.glob("*.ipynb")))
            if names:
                self.assignments[str(folder)] = [str(folder / f"{name}.ipynb") for name in names]
        self.failed = {}
        if not self.assignments:
            student, assignment = self.coursedir.student_id, self.coursedir.assignment_id
            raise NbGraderException(
                f"nothing autograded of {assignment!r} by {student!r}: expected notebooks; autograde first"
            )

    def convert_notebooks(self) -> None:
        """Page by page. A submission whose pages cannot be made loses its pages, and nobody else any."""
        for folder, notebooks in sorted(self.assignments.items()):
            self.notebooks = sorted(notebooks)
            student = self._students[folder]
            try:
                self._convert(student)
            except Exception as error:
                raise_if_of_all(error)
                self.failed[student] = sentence(error, "shown")
                self.log.error("%s", printable(f"{student}: {self.failed[student]}"))
                if self.coursedir.notebook_id == "*":
                    shutil.rmtree(self._format_dest(self.coursedir.assignment_id, student), ignore_errors=True)
        if self.failed:
            raise NbGraderException(f"no feedback for {len(self.failed)} of {len(self.assignments)} submissions")

    def _convert(self, student: str) -> None:
        assignment = self.coursedir.assignment_id
        if not self.init_destination(assignment, student):
            return
        self.run_pre_convert_hook()
        self.init_assignment(assignment, student)
        for notebook in self.notebooks:
            self.convert_single_notebook(notebook)
        self.set_permissions(assignment, student)
        self.run_post_convert_hook()

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy what lies beside the notebooks. nbgrader would not know what to leave out below a name like ``[ab]``."""
        source = Path(self._format_source(assignment_id, student_id))
        target = Path(self._format_dest(assignment_id, student_id))
        ignored = [*self.coursedir.ignore, "*.ipynb", RECORD]
        left_out = shutil.ignore_patterns(*ignored)
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=left_out, copy_function=_replace)


def _replace(source: str, target: str) -> None:
    """What is there already may be read-only."""
    Path(target).unlink(missing_ok=True)
    shutil.copyfile(source, target)


def _submitted_at(api: Any, assignment: str, student: str) -> Any:
    return handed_in_at(Path(api.coursedir.format_path(api.coursedir.submitted_directory, student, assignment)))


def install() -> None:
    """Make nbgrader's command line and formgrader use the converters above; harmless when done twice."""
    import nbgrader.apps.api
    import nbgrader.apps.autogradeapp
    import nbgrader.apps.generatefeedbackapp
    import nbgrader.converters

    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp, nbgrader.converters):
        module.Autograde = SafeAutograde
    for module in (nbgrader.apps.api, nbgrader.apps.generatefeedbackapp, nbgrader.converters):
        module.GenerateFeedback = SafeGenerateFeedback
    # nbgrader's own readers of these files raise for one that is no date, which takes the whole list of a class down.
    CourseDirectory.get_existing_timestamp = lambda _self, folder: handed_in_at(Path(folder))
    nbgrader.apps.api.NbGraderAPI.get_submitted_timestamp = _submitted_at
    formgrader = sys.modules.get("nbgrader.server_extensions.formgrader.formgrader")
    if formgrader is not None:  # in a server, where it asks for this configuration before it makes its exporter
        vars(formgrader)["HTMLExporter"] = BoundedHTML
