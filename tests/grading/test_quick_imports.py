"""What takes long to import and is of no use stays out of every process that grades."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from grading.quick_imports import without_collecting

CHECKOUT = Path(__file__).resolve().parents[2]
STARTS = {
    "a worker": "from grading.sandbox.outputs import Outputs; Outputs(1, 1024, 'cut')",
    "the recorder": "from grading.class_run.quiet import quiet_nbgrader; quiet_nbgrader(); import nbformat",
}


def test_a_worker_is_ready_before_its_first_job_and_does_not_tidy_up_for_nobody() -> None:
    code = "from grading.class_run.worker import warm; warm({})\nimport gc, sys\n"
    code += (
        "print('nbclient' in sys.modules, 'grading.class_run.one_submission' in sys.modules, 'lark' in sys.modules)\n"
    )
    code += "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "True", "False", "True", "True"], done.stderr


def test_where_nothing_is_imported_nothing_is_kept() -> None:
    """A program that grades again and again must not keep what it made in between."""
    before = gc.get_freeze_count()
    with without_collecting():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == before


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_no_process_imports_the_checker_of_links(start: str) -> None:
    code = f"{start}\nimport sys; print(sys.modules['jsonschema'].__name__, 'lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["jsonschema", "False"], done.stderr


def test_an_old_notebook_is_read_without_what_takes_long_to_import() -> None:
    content = b'{"worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1"}]}]}'
    code = f"from grading.submission.rebuild import parse_notebook\nfound = parse_notebook({content!r}, 'old.ipynb')\n"
    code += "import sys; print(found['cells'][0]['source'], {'nbformat', 'jsonschema', 'lark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[0] == "x = 1 set()", done.stderr
