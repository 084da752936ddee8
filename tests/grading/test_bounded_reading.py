"""Whatever is handed in, the grader's own reading of it ends soon and takes little memory."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("worst_inputs.py")
SECONDS = 90.0
"""For the worst input of one place, on a slow and busy machine; what was not bounded took minutes."""
MEGABYTES = 900


def test_the_worst_inputs_of_every_place_are_read_in_bounded_time_and_memory() -> None:
    """One process for all, whose memory is limited; what hangs is ended by an alarm and is the one that is missing."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2]), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(SCRIPT)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=400, check=False, preexec_fn=limited
    )
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {read[-1:]}: {done.stderr[-2000:]}"
    assert read[-1]["place"] == "end"
    assert [one for one in read if one["seconds"] > SECONDS] == []
    assert max(one["megabytes"] for one in read) < MEGABYTES
