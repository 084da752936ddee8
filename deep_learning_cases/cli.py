"""``dlcases``: from the words of a call to its exit code, whatever happens in between.

Every command prints a few lines for a person, or one JSON value with ``--json``.  Exit codes: 0 done, 1 the evidence or
a file is not as it should be, 2 the call itself is wrong, 3 an optional package is missing, 130 stopped by Ctrl-C.

This is what the console script imports, and nobody looks after Ctrl-C before :func:`main` does.  So next to nothing is
imported at the top: not even ``signal``, which needs ``enum``, for the built-in module below it does as well.
"""

import _signal  # type: ignore[import-not-found]  # typeshed knows the module around it alone
import os
import sys

from deep_learning_cases.errors import INTERRUPTED, DeepLearningCasesError, MissingDependencyError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

STOPPED = "stopped by Ctrl-C: every file is either the old one or a whole new one"


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; returns its exit code and never lets bad input become a traceback.

    Without ``argv`` it is this process's command, and the process is about to end when it returns.
    """
    interrupts = _Interrupts()
    try:
        _open_standard_streams()
        return _run(sys.argv[1:] if argv is None else argv, interrupts)
    finally:
        interrupts.leave(last=argv is None)


def _run(words: "Sequence[str]", interrupts: "_Interrupts") -> int:
    try:
        from deep_learning_cases.commands import table

        interrupts.raise_from_now_on()
        try:
            code = table.run(words)
        finally:
            sys.stdout.flush()  # also what --help prints, which ends in a SystemExit: from here on Ctrl-C just ends all
        interrupts.raising = False
        return code
    except KeyboardInterrupt:
        interrupts.raising = False
        return _fail(STOPPED, INTERRUPTED)
    except Exception as error:
        interrupts.raising = False
        # NumPy and PyTorch turn a Ctrl-C while they are being imported into an ImportError of their own.
        return _fail(STOPPED, INTERRUPTED) if interrupts.seen else _explain(error)


class _Interrupts:
    """What Ctrl-C does meanwhile: it is noted, and raised as KeyboardInterrupt while a command runs.

    Not before: raised inside an import, it can get lost in a callback of the import system, which prints a traceback.
    Not after: whoever presses twice is told once.
    """

    def __init__(self) -> None:
        self.seen, self.raising = 0, False
        self._before = _signal.getsignal(_signal.SIGINT)
        try:
            self._taken = callable(self._before)  # it is not when Ctrl-C is ignored, as behind nohup
            if self._taken:
                _signal.signal(_signal.SIGINT, self)
        except ValueError:  # only the main thread is ever interrupted
            self._taken = False

    def __call__(self, _number: int, _frame: object) -> None:
        self.seen += 1
        if self.raising:
            raise KeyboardInterrupt

    def raise_from_now_on(self) -> None:
        self.raising = True
        if self.seen:
            raise KeyboardInterrupt

    def leave(self, last: bool) -> None:
        """As before; or, where only Python's own end is left, the system's way: the process just ends."""
        self.raising = False
        if self._taken:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL if last else self._before)


def _explain(error: Exception) -> int:
    """One line on standard error for every failure that input or system can cause; raises what is a defect of ours."""
    if isinstance(error, DeepLearningCasesError):
        return _fail(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        # The reader of our output went away (as `head` does); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, OSError):
        place = error.filename or "the system"
        return _fail(f"{place}: {error.strerror or error}; check the path, rights and space", 1)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.split(".")[0] != __package__:
        package = {"sklearn": "scikit-learn"}.get(top := error.name.split(".")[0], top)
        needed = f"{package} is not installed: this command needs it; install it with: pip install {package}"
        return _fail(needed, MissingDependencyError.exit_code)
    if isinstance(error, MemoryError):
        return _fail("not enough memory for this command: expected about 1 GB free; close other programs", 1)
    raise error


def _open_standard_streams() -> None:
    """Give a stream that the caller closed (``>&-``) to the null device.

    Otherwise the next file that is opened gets its number, and with it whatever a library prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open until the process ends


def _fail(message: str, code: int) -> int:
    print(f"dlcases: {one_line(message, 2000)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
