"""What a grading run knows on disk: its plan, and one whole file a submission, so that any kill can be continued.

``COURSE/.results/ASSIGNMENT/`` holds ``run.json`` (which students this run is to grade), ``students/STUDENT.json`` (a
result, first whole with its notebooks, then, once recorded, without) and ``lock``.  Each file is replaced in one step.
"""

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.files import write_bytes
from grading.class_run.records import Result, SpoolEntry

__all__ = ["FAILED", "PENDING", "RECORDED", "Spool", "slim"]

PENDING, RECORDED, FAILED = "pending", "recorded", "failed"


class Spool:
    """The results of one assignment; :meth:`locked` goes around a run. FileError where it cannot be written."""

    def __init__(self, course: Path, assignment: str) -> None:
        self.folder = course / ".results" / assignment
        self._students = self.folder / "students"
        self.run = ""

    @contextlib.contextmanager
    def locked(self) -> Iterator["Spool"]:
        """One run at a time: two recorders would overwrite each other's grades."""
        try:
            self._students.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FileError(
                f"cannot write {self.folder} ({error.strerror}): expected a course folder of yours; "
                "change its permissions or copy the course elsewhere and name it with --course"
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"another grading run of {self.folder.name!r} is going on: expected one at a time; "
                    "wait for it or stop it"
                ) from error
            yield self
        finally:
            os.close(handle)

    def begin(self, students: list[str], options: dict[str, bool]) -> None:
        """Write the plan of a new run; what earlier runs left is kept until each student's new result replaces it."""
        self.run = uuid.uuid4().hex
        self._write(self.folder / "run.json", {"run": self.run, "students": students, "options": options})

    def resume(self) -> list[str] | None:
        """The students of the last run in its order, whose results so far count; None if there was none."""
        plan = self._read(self.folder / "run.json")
        if plan is None or not isinstance(plan.get("students"), list):
            return None
        self.run = str(plan.get("run", ""))
        return [str(student) for student in plan["students"]]

    def put(self, student: str, result: Result) -> None:
        """A worker's result as it came, not yet recorded."""
        self._write(self._path(student), {"run": self.run, "state": PENDING, "result": result})

    def recorded(self, student: str, result: Result) -> None:
        """The grades are in the gradebook: keep all but the notebooks, which are in ``autograded/`` by now."""
        self._write(self._path(student), {"run": self.run, "state": RECORDED, "result": slim(result)})

    def failed(self, student: str, error: str) -> None:
        """There is no result, and why."""
        self._write(self._path(student), {"run": self.run, "state": FAILED, "error": error})

    def get(self, student: str) -> SpoolEntry | None:
        """What is known; None if there is nothing, or nothing whole."""
        return cast(SpoolEntry | None, self._read(self._path(student)))

    def state(self, student: str) -> str | None:
        """pending, recorded or failed, without keeping the result in memory."""
        entry = self.get(student)
        return None if entry is None else str(entry.get("state"))

    def of_this_run(self, student: str) -> SpoolEntry | None:
        """As :meth:`get`, for results of the run that is being continued."""
        entry = self.get(student)
        return entry if entry is not None and entry.get("run") == self.run else None

    def students(self) -> list[str]:
        """Everybody with a result, sorted."""
        return sorted(path.name.removesuffix(".json") for path in self._students.glob("*.json"))

    def scratch(self) -> Path:
        """An empty folder for staged submissions; what a killed run left in it is removed."""
        folder = self.folder / "scratch"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _path(self, student: str) -> Path:
        return self._students / f"{student}.json"

    @staticmethod
    def _write(path: Path, value: Any) -> None:
        # A folder's name need not be text; it comes back from this as it was.
        write_bytes(path, json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass"))

    @staticmethod
    def _read(path: Path) -> dict[str, Any] | None:
        try:
            value = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


def slim(result: Result) -> Result:
    """A result without its notebooks, and with what is known of those that were not graded this time."""
    notebooks: dict[str, Any] = {
        name: {key: value for key, value in notebook.items() if key != "notebook"}
        for name, notebook in result["notebooks"].items()
    }
    notebooks |= result.get("others", {})
    return cast(Result, {key: value for key, value in result.items() if key != "others"} | {"notebooks": notebooks})
