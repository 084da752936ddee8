"""What a worker process does with a job, and the sandbox it keeps open from one job to the next."""

import atexit
import contextlib
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError
from grading.class_run.machine_faults import machine_fault
from grading.quick_imports import leave_out_format_checker, without_collecting

__all__ = ["warm", "work"]

_slot = threading.local()


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Grade one submission: {"result"}, or {"error"} of this submission, or {"fatal"} that every one would meet.

    ``job`` is :func:`grading.class_run.one_submission.grade_submission`'s, with "settings" {"limits", "isolation",
    "cold"} and, for a worker elsewhere, "files" and "work_files" {name: bytes} in place of the folders.
    """
    from grading.class_run.one_submission import grade_submission
    from grading.sandbox.wall.plan import IsolationUnavailable

    try:
        with _folders(job) as located:
            return {"result": grade_submission(located, _box(job["settings"]))}
    except IsolationUnavailable as error:
        return {"fatal": str(error)}
    except ImportError as error:
        return {"fatal": f"a worker lacks a package ({error}): expected the grading extra; pip install -e '.[grading]'"}
    except (OSError, DeepLearningCasesError) as error:
        fault = machine_fault(error)
        if fault is not None:
            return {"fatal": _no_room(fault)}
        if isinstance(error, DeepLearningCasesError):
            return {"error": str(error)}
        raise


def _no_room(fault: OSError) -> str:
    return (
        f"a worker cannot write {fault.filename or tempfile.gettempdir()} ({fault.strerror}): expected room for "
        "temporary files; make room or name another folder by TMPDIR, and add --resume"
    )


def warm(settings: dict[str, Any]) -> dict[str, Any]:
    """Import what grading needs and boot the sandbox, before the first job is there. Trouble is left to that job."""
    with without_collecting():
        leave_out_format_checker()
        import nbclient  # noqa: F401 - the sandbox's outputs are made by it

        import grading.class_run.one_submission
        import grading.exercises.latency_stats.judge
        import grading.exercises.latency_stats.questions  # noqa: F401

    with contextlib.suppress(Exception):
        _box(settings)
    return {"result": {}}


@contextlib.contextmanager
def _folders(job: dict[str, Any]) -> Any:
    if "files" not in job:
        yield job
        return
    from grading.submission.stage import unpack

    with tempfile.TemporaryDirectory(prefix="submission-") as scratch:
        folders = {"folder": str(Path(scratch, "submitted")), "work_folder": str(Path(scratch, "beside"))}
        unpack(job["files"], folders["folder"])
        unpack(job["work_files"], folders["work_folder"])
        for folder in folders.values():
            Path(folder).mkdir(exist_ok=True)
        yield {key: value for key, value in job.items() if key not in ("files", "work_files")} | folders


def _box(settings: dict[str, Any]) -> Any:
    """This thread's sandbox for these settings: booted once, kept for the next submission."""
    from grading.sandbox.box import open_box
    from grading.sandbox.limits import Limits

    key = json.dumps(settings, sort_keys=True)
    if getattr(_slot, "key", None) != key:
        close()
        # The recorder says once, for all workers, that the wall is a weaker one.
        limits = Limits.from_dict(settings["limits"])
        box = open_box(limits, settings["isolation"], cold=settings["cold"], say=False)
        _slot.box, _slot.key = box.__enter__(), key
        atexit.register(close)
    return _slot.box


def close() -> None:
    """Shut this thread's sandbox, if it has one."""
    box, _slot.box, _slot.key = getattr(_slot, "box", None), None, None
    if box is not None:
        with contextlib.suppress(Exception):
            box.__exit__(None, None, None)
