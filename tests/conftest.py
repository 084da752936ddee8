"""What is made once for the whole run, which tests are slow, and which file of tests starts first."""

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

# No test asserts a speed: on a busy machine an example may take as long as it needs.
hypothesis.settings.register_profile("without-deadline", deadline=None)
hypothesis.settings.load_profile("without-deadline")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts its background jobs with Ctrl-C ignored, and so would everything that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Whatever takes seconds to set up, however short the test is that looks at it.
EXPENSIVE = {
    "real_evidence", "built_once", "built_course", "built_small", "real", "made_up", "measured", "finished",
    "graded_once", "cluster",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with an expensive fixture is slow; the files that take longest start first, or one would be left over."""
    for item in items:
        if not EXPENSIVE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}

    def turn(item: pytest.Item) -> int:
        if item.get_closest_marker("classroom"):
            return 0
        return 1 if item.path.parent.name == "whole" else 2 if item.path in slow_files else 3

    items.sort(key=turn)  # stable: within a file, and among files of a kind, the order stays


def pytest_collection_finish() -> None:
    _keep_out_of_collections()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is not None and nextitem.path != item.path:
        _keep_out_of_collections()


def _keep_out_of_collections() -> None:
    """Each timed series begins with a whole garbage collection, which need not look at all that files have imported."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core; one more where slow tests run, which mostly wait for sandboxes, servers and clusters."""
    return (os.cpu_count() or 1) + ("not slow" not in config.option.markexpr)


@pytest.fixture(scope="session")
def real_evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete evidence folder, from data to report.  Read it; never write into it."""

    def run(folder: Path) -> None:
        from deep_learning_cases import cli

        assert cli.main(["run", str(folder), "--json"]) == 0

    return _made_once(tmp_path_factory, "real-evidence", run)


@pytest.fixture(scope="session")
def built_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole course built from our masters: source, release, gradebook, and labs beside them.  Only to be read."""

    def build_it(course: Path) -> None:
        from grading.course import build

        build.build(course, course / "labs")

    return _made_once(tmp_path_factory, "built-course", build_it)


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that ``make`` fills, once in the whole run: the workers of pytest-xdist share it."""
    # Every worker has its own base below one shared parent; the first one there builds.
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, finished = shared / name, shared / f"{name}.finished"
    with _only_one(shared / f"{name}.lock"):
        if not finished.exists():
            make(folder)
            finished.touch()
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
