"""A grading run whose disk becomes full at a chosen moment; started by ``test_faults_of_a_run.py`` behind ``unshare``.

    unshare --map-root-user --mount python full_disk.py COURSE DISK MOMENT

DISK is an empty folder, on which a small file system is mounted that nobody else sees.  Prints as JSON the message, the
grades then, and what ``--resume`` makes of it once there is room again.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError
from grading.class_run import record, spool, whole_class
from grading.hooks.converter import SafeAutograde
from tests.grading.classroom import FakeBackend, grade, grades

PLACES = {
    "staging": (whole_class._Run, "_stage"),
    "spooling": (spool.Spool, "put"),
    "recording": (record.Recorder, "record"),
    "the second notebook": (record.Recorder, "_record_notebook"),
    "committing": (SafeAutograde, "run_post_convert_hook"),
    "noting": (spool.Spool, "recorded"),
}
COUNTS = {"the second notebook": 4}


def main(template: Path, disk: Path, moment: str) -> dict[str, Any]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    course = disk / "course"
    shutil.copytree(template, course)
    before = grades(course)
    holder, name = PLACES[moment]
    original, left = getattr(holder, name), [COUNTS.get(moment, 2)]

    def filling(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            _fill(disk / "full")
        return original(*args, **named)

    setattr(holder, name, filling)
    message = ""
    try:
        summary = grade(course, force=True)
        message = f"no error, failed: {summary.failed}"
    except DeepLearningCasesError as error:
        message = str(error)
    finally:
        setattr(holder, name, original)
    then = grades(course)
    (disk / "full").unlink()
    backend = FakeBackend()
    summary = grade(course, backend, resume=True)
    found = {"message": message, "before": before, "then": then, "after": grades(course), "failed": summary.failed}
    return found | {"again": backend.graded}


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream:
        size = 1 << 20
        while size:
            try:
                while stream.write(b"x" * size):
                    pass
            except OSError:
                size //= 2


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))
