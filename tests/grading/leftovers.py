"""What tests leave in the folder for temporary files: on a grader's machine nobody empties it."""

import tempfile
from pathlib import Path

OF_OTHERS = ("torchinductor_", "dask-scratch-space", "pymp-", "matplotlib-")
"""Kept between runs on purpose by the packages that make them."""


class Leftovers:
    """Which test each new name was first seen after; :meth:`lines` tells of those that are still there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: set[Path] = set()
        self._new: dict[Path, str] = {}
        self._test = ""

    def before(self, test: str) -> None:
        """What is there now is not this test's."""
        self._test = test
        self._known |= self._listing()

    def after(self) -> None:
        """What came since :meth:`before` is the test's."""
        for path in self._listing() - self._known:
            self._new[path] = self._test
            self._known.add(path)

    def lines(self) -> list[str]:
        """One line for each name that is still there."""
        return [f"{path} is left, first seen after {test}" for path, test in self._new.items() if path.exists()]

    def _listing(self) -> set[Path]:
        folder = self._folder or Path(tempfile.gettempdir())
        return {path for path in folder.iterdir() if not path.name.startswith(OF_OTHERS)}
