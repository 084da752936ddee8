"""One family of named failures.

Every message is one line for the reader: what was wrong, with the value; what was expected; what to do.
The command line prints that line and exits with ``exit_code``; a traceback means a defect of ours.
"""

__all__ = [
    "INTERRUPTED",
    "DeepLearningCasesError",
    "EvidenceError",
    "FileError",
    "InputError",
    "MeasurementError",
    "MissingDependencyError",
    "ModelError",
    "one_line",
]


INTERRUPTED = 130
"""Exit code after Ctrl-C: the shell's own convention, 128 + SIGINT."""


class DeepLearningCasesError(Exception):
    """Base of every failure this library raises on purpose."""

    exit_code = 1


class InputError(DeepLearningCasesError, ValueError):
    """An argument is not usable: wrong type, range, shape or name."""

    exit_code = 2


class FileError(DeepLearningCasesError):
    """A file or folder cannot be read or written (missing, no permission, full disk)."""


class EvidenceError(DeepLearningCasesError):
    """A file of the evidence folder is damaged: not JSON, too large, not the expected structure."""


class ModelError(DeepLearningCasesError):
    """A model file cannot be used: not a model, external data, wrong input or output shape."""


class MeasurementError(DeepLearningCasesError):
    """A measurement was started and cannot be trusted: a process died, hung, or a file changed meanwhile."""


class MissingDependencyError(DeepLearningCasesError, ImportError):
    """An optional package is needed for what was asked and is not installed."""

    exit_code = 3


def one_line(error: BaseException | str, limit: int = 160) -> str:
    """The text of an error, on one line and cut to ``limit`` characters, without what a terminal would act upon."""
    text = " ".join(str(error).split()) or type(error).__name__
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= limit else f"{printable[: limit - 3]}..."
