"""A whole class: which submissions, in which workers, recorded as results come, and continued after any kill."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError, FileError, InputError
from deep_learning_cases.ground.command_line import say
from grading.class_run.beside import files_beside, in_the_way, put_link
from grading.class_run.gradebook import shared
from grading.class_run.machine_faults import machine_fault, raise_if_of_all, sentence
from grading.class_run.pool import Backend, DaskBackend, LocalBackend, Outcome, run_all
from grading.class_run.record import Recorder
from grading.class_run.records import Job, Result, Settings
from grading.class_run.spool import FAILED, PENDING, RECORDED, Spool, slim
from grading.judging.flags import FlagRecord
from grading.judging.seed import course_seed, own_seed
from grading.sandbox.box import weaker
from grading.submission.handed_in import TIMESTAMP, has_unreadable_time
from grading.submission.stage import LeftOut, Staged, stage

__all__ = ["Options", "Summary", "grade_class"]

UNKNOWN_TIME: FlagRecord = {
    "id": "time-unknown",
    "reason": f"{TIMESTAMP} holds no date and time, so nobody knows whether this was late; no penalty was taken",
    "where": TIMESTAMP,
}
"""The flag of a submission whose time cannot be read."""


@dataclass(frozen=True)
class Options:
    """How to run. ``jobs`` 0 means the usable cores; ``limits`` holds those that differ from the defaults."""

    jobs: int = 0
    scheduler: str = ""
    isolation: str = "auto"
    cold: bool = False
    limits: dict[str, float] = field(default_factory=dict)
    seed_file: str = ""
    resume: bool = False


@dataclass
class Summary:
    """What a run did: how many were graded, whose grading failed and why, how many were up to date.

    ``other_inputs`` is how many of the chosen had been graded with other hidden inputs.
    """

    graded: int = 0
    skipped: int = 0
    other_inputs: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def grade_class(recorder: Recorder, options: Options, backend: Backend | None = None) -> Summary:
    """Grade every submission that needs it, in ``backend`` if one is given, and close that.

    Raises one-line errors for what would stop all of them.
    """
    spool = Spool(recorder.course, recorder.assignment)
    _check_name(recorder)
    with spool.locked(), shared(recorder.url):
        run = _Run(recorder, options, spool)
        todo, skipped = run.plan()
        summary = Summary(skipped=skipped, other_inputs=sum(_or_else(False, run.has_other_inputs, s) for s in todo))
        if backend is None and todo:
            backend = _backend(options, len(todo))
        try:
            for outcome in _with_progress(run.outcomes(backend, todo), len(todo)):
                error = run.finish(outcome)
                if error is None:
                    summary.graded += 1
                else:
                    summary.failed[outcome.key] = error
        except (OSError, DeepLearningCasesError) as error:
            fault = machine_fault(error)
            if fault is None:
                raise
            raise FileError(
                f"cannot write {fault.filename or recorder.course} ({fault.strerror}): expected room for the results; "
                "nothing that was recorded is lost; correct that and add --resume"
            ) from error
        finally:
            if backend is not None:
                backend.close()
            shutil.rmtree(run.scratch, ignore_errors=True)
    return summary


class _Run:
    def __init__(self, recorder: Recorder, options: Options, spool: Spool) -> None:
        from grading.exercises.latency_stats.questions import fingerprint
        from grading.sandbox.limits import Limits

        try:
            limits = Limits.from_dict(options.limits).to_dict()
        except ValueError as error:
            raise InputError(str(error)) from error
        self.recorder, self.options, self.spool = recorder, options, spool
        self.skeletons = recorder.skeletons
        self.scratch = spool.scratch()
        self.settings: Settings = {"limits": limits, "isolation": options.isolation, "cold": options.cold}
        own = recorder.course / "fixtures.seed"
        self.seed = course_seed(options.seed_file or (own if own.is_file() else None))
        self.inputs = fingerprint(self.seed)
        self.only = recorder.only
        self.said = False

    def plan(self) -> tuple[list[str], int]:
        """(students to grade, how many are up to date). A run that is resumed keeps what it has already recorded."""
        present = self.recorder.students()
        if not present:
            pattern = self.recorder.coursedir.student_id
            who = "" if pattern == "*" else f" by {pattern!r}"
            raise InputError(
                f"no submission of {self.recorder.assignment!r}{who} in {self.recorder.course}: expected folders "
                f"{self.recorder.coursedir.submitted_directory}/STUDENT/{self.recorder.assignment}; collect them first"
            )
        planned = self.spool.resume() if self.options.resume else None
        if planned is None:
            todo = [s for s in present if _or_else(True, self._needs_grading, s)]
            self.spool.begin(todo, {"force": bool(self.recorder.force)})
            return todo, len(present) - len(todo)
        new = [s for s in present if s not in set(planned) and _or_else(True, self._needs_grading, s)]
        todo = [s for s in planned if s in set(present) and not _or_else(False, self._recorded, s)] + new
        return todo, len(present) - len(todo)

    def _needs_grading(self, student: str) -> bool:
        return self.recorder.needs_grading(student) or self._unfinished(student) or self.has_other_inputs(student)

    def has_other_inputs(self, student: str) -> bool:
        """Whether the grades there are of other hidden inputs. Records that do not say so are taken as they are."""
        result = self._known(student)
        return result is not None and result.get("inputs", self.inputs) != self.inputs

    def _known(self, student: str) -> Result | None:
        entry = self.spool.get(student)
        return entry.get("result") if entry else None

    def _unfinished(self, student: str) -> bool:
        return self.spool.state(student) in (PENDING, FAILED)

    def _recorded(self, student: str) -> bool:
        entry = self.spool.of_this_run(student)
        return (
            entry is not None
            and entry["state"] == RECORDED
            and not (self.recorder.is_newer(student) or self.has_other_inputs(student))
        )

    def outcomes(self, backend: Backend | None, todo: list[str]) -> Iterator[Outcome]:
        """Results of an interrupted run first, from disk; the others as workers bring them."""
        rest = []
        for student in todo:
            result = self._spooled(student) if self.options.resume else None
            if result is None:
                rest.append(student)
            else:
                yield Outcome(student, result)
        if backend is not None and rest:
            yield from run_all(backend, rest, lambda s: self._job(s, backend.ships_files), _seconds)

    def _spooled(self, student: str) -> Result | None:
        """A result that arrived before the kill, if it is of the very files and hidden inputs that are there now."""
        entry = self.spool.of_this_run(student)
        if entry is None or entry.get("state") != PENDING:
            return None
        try:
            staged = self._stage(student)
        except Exception as error:
            raise_if_of_all(error)
            return None
        result = entry["result"]
        same = result.get("digest") == staged.digest and result.get("inputs") == self.inputs
        return result if same else None

    def finish(self, outcome: Outcome) -> str | None:
        """Spool and record one outcome; the error, in one line, if it has to be voided instead."""
        student = outcome.key
        try:
            if outcome.result is not None:
                self._say_once(outcome.result.get("isolation") or {})
            error = outcome.error if outcome.result is None else self._record(student, outcome.result)
            if outcome.result is not None and error is None:
                return None
            return self._void(student, error or "no result")
        finally:
            shutil.rmtree(self.scratch / student, ignore_errors=True)
            shutil.rmtree(self._beside(student), ignore_errors=True)

    def _record(self, student: str, result: Result) -> str | None:
        """Whatever recording this one raises, but for what all would meet, is the error of this one alone."""
        try:
            self._keep_others(student, result)
            if has_unreadable_time(self.scratch / student) and UNKNOWN_TIME not in result["flags"]:
                result["flags"] = [*result["flags"], UNKNOWN_TIME]
            self.spool.put(student, result)
            self.recorder.record(student, result, self.scratch / student)
            self.spool.recorded(student, result)
        except Exception as problem:
            raise_if_of_all(problem)
            return sentence(problem, "recorded")
        return None

    def _void(self, student: str, error: str) -> str:
        try:
            self.recorder.void(student, error)
        except Exception as problem:
            raise_if_of_all(problem)
            error += f"; an earlier score could not be taken back ({type(problem).__name__}), look at it"
        self.spool.failed(student, error)
        return error

    def _say_once(self, isolation: dict[str, Any]) -> None:
        if isolation.get("not_possible") and not self.said:
            self.said = True
            say(weaker(isolation), error=True)

    def _keep_others(self, student: str, result: Result) -> None:
        """When only some notebooks are graded, what is known of the others stays known."""
        before = self._known(student)
        if self.only is not None and before is not None:
            result["others"] = {n: v for n, v in slim(before)["notebooks"].items() if n not in result["notebooks"]}
            if result["others"]:
                # One notebook more with the new inputs leaves the submission as a whole with the old ones.
                result["inputs"] = before.get("inputs", self.inputs)

    def _job(self, student: str, ship: bool) -> Job:
        staged = self._stage(student)
        left_out = [*staged.left_out, *self._put_beside(student, Path(staged.folder))]
        job: Job = {
            "assignment": self.recorder.assignment,
            "student": student,
            "folder": staged.folder,
            "work_folder": str(self._beside(student)),
            "skeletons": self.skeletons,
            "only": self.only,
            "seed": own_seed(self.seed, student),
            "inputs": self.inputs,
            "left_out": left_out,
            "digest": staged.digest,
            "settings": self.settings,
        }
        if ship:
            job["files"], job["work_files"] = _contents(Path(staged.folder)), _contents(self._beside(student))
        return job

    def _stage(self, student: str) -> Staged:
        if not student.isprintable():
            raise InputError(
                f"the name {student!r} has characters that nbgrader cannot read back from a path: expected letters, "
                "digits and signs; rename the folder in submitted/"
            )
        folder = self.scratch / student
        shutil.rmtree(folder, ignore_errors=True)
        return stage(self.recorder.submitted_folder(student), folder)

    def _beside(self, student: str) -> Path:
        return self.scratch / f".beside.{student}"

    def _put_beside(self, student: str, staged: Path) -> list[LeftOut]:
        """Fill the folder that a notebook finds around itself; returns what could not be put there."""
        beside, source = self._beside(student), self.recorder.source_folder()
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name, path in files_beside(staged, source, self.recorder.kept).items():
            put_link(path, beside / name)
        return in_the_way(staged, source, self.recorder.kept)


def _or_else(otherwise: bool, question: Callable[[str], bool], student: str) -> bool:
    """The answer about one student; where finding it raises what only this one meets, ``otherwise``."""
    try:
        return question(student)
    except Exception as error:
        raise_if_of_all(error)
        return otherwise


def _contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _seconds(job: Job) -> float:
    """The longest a submission may keep a worker: its own limits for each notebook, and the evidence."""
    limits = job["settings"]["limits"]
    return (len(job["skeletons"]) + 1) * float(limits["seconds_total"] + limits.get("seconds_all_calls", 0.0) + 30)


def _backend(options: Options, submissions: int) -> Backend:
    if options.scheduler:
        return DaskBackend(options.scheduler)
    from deep_learning_cases.ground.machine import usable_cores

    return LocalBackend(max(1, min(options.jobs or usable_cores(), submissions)))


def _with_progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    from tqdm import tqdm

    # disable=None: a bar with the time left on a terminal, nothing elsewhere.
    return iter(tqdm(outcomes, total=total, unit="submission", disable=None, file=sys.stderr))


def _check_name(recorder: Recorder) -> None:
    name = recorder.assignment
    if not name or "/" in name or name in (".", ".."):
        raise InputError(f"{name!r} is no assignment: expected a name such as release; see COURSE/source")
