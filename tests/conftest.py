"""One real evidence folder for the whole run: built, measured and judged once, then copied by whoever changes it."""

import os
import shutil
import signal
from pathlib import Path

import hypothesis
import pytest

# No test asserts a speed: on a busy machine an example may take as long as it needs.
hypothesis.settings.register_profile("without-deadline", deadline=None)
hypothesis.settings.load_profile("without-deadline")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts its background jobs with Ctrl-C ignored, and so would everything that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete evidence folder, from data to report.  Read it; never write into it."""
    # Under pytest-xdist every worker has its own base below one shared parent; the first one there builds.
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "real-evidence"
    with _only_one(shared / "real-evidence.lock"):
        if not (folder / "report.html").exists():
            from deep_learning_cases import cli

            assert cli.main(["run", str(folder), "--json"]) == 0
    return folder


@pytest.fixture
def evidence(real_evidence: Path, tmp_path: Path) -> Path:
    """A copy of the real evidence folder that a test may damage."""
    folder = tmp_path / "evidence"
    shutil.copytree(real_evidence, folder)
    return folder


class _only_one:
    """Hold a lock file, so that two test workers do not build the same folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        import fcntl

        self._stream = self._path.open("w")
        fcntl.flock(self._stream, fcntl.LOCK_EX)

    def __exit__(self, *_error: object) -> None:
        self._stream.close()
