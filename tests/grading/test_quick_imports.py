"""What takes long to import and is of no use stays out of every process that grades."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
STARTS = {
    "a worker": "from grading.sandbox.outputs import Outputs; Outputs(1, 1024, 'cut')",
    "the recorder": "from grading.autograde import quiet_nbgrader; quiet_nbgrader(); import nbformat",
    "an old notebook": "from grading.rebuild import _upgraded\ntry: _upgraded({}, 'a')\nexcept Exception: pass",
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_no_process_imports_the_checker_of_links(start: str) -> None:
    code = f"{start}\nimport sys; print(sys.modules['jsonschema'].__name__, 'lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["jsonschema", "False"], done.stderr
