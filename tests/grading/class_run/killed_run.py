"""A grading run that kills itself, outright, at a chosen moment; started as a process by ``test_resume.py``.

    python killed_run.py COURSE MOMENT [COUNT]

Moments: ``never``, ``staged``, ``spooled``, ``recording`` (between two notebooks of one submission), ``committed`` (the
grades are in the file, the run does not know yet), ``recorded``.  COUNT is at which submission.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from grading.class_run import record, spool, whole_class
from tests.grading.classroom import grade

PLACES = {
    "staged": (whole_class._Run, "_stage"),
    "spooled": (spool.Spool, "put"),
    "recording": (record.Recorder, "_record_notebook"),
    "committed": (record.Recorder, "record"),
    "recorded": (spool.Spool, "recorded"),
}


def main(course: str, moment: str, count: int) -> None:
    if moment in PLACES:
        holder, name = PLACES[moment]
        original, left = getattr(holder, name), [count]

        def killing(*args: Any, **named: Any) -> Any:
            value = original(*args, **named)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        setattr(holder, name, killing)
    grade(Path(course), force=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
