"""What a worker process does with a job, and the sandbox it keeps open from one job to the next."""

import atexit
import contextlib
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from deep_learning_cases.errors import DeepLearningCasesError
from grading.class_run.machine_faults import machine_fault
from grading.class_run.records import Answer, Job, Settings
from grading.quick_imports import leave_out_format_checker, without_collecting

__all__ = ["warm", "work"]

_slot = threading.local()


def work(job: Job) -> Answer:
    """Grade one submission."""
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


def warm(settings: Settings) -> None:
    """Import what grading needs and boot the sandbox, before the first job is there. Trouble is left to that job."""
    with without_collecting():
        leave_out_format_checker()
        import nbclient  # noqa: F401 - the sandbox's outputs are made by it

        import grading.class_run.one_submission
        import grading.exercises.latency_stats.judge
        import grading.exercises.latency_stats.questions  # noqa: F401

    with contextlib.suppress(Exception):
        _box(settings)


@contextlib.contextmanager
def _folders(job: Job) -> Iterator[Job]:
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
        located = {key: value for key, value in job.items() if key not in ("files", "work_files")} | folders
        yield cast(Job, located)


def _box(settings: Settings) -> Any:
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
