"""A full disk or a locked gradebook is no submission's fault: it stops the run, and what came back is kept."""

import errno

from deep_learning_cases.errors import DeepLearningCasesError

__all__ = ["database_fault", "machine_fault", "raise_if_of_all", "sentence"]

_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}


def machine_fault(error: BaseException | None) -> OSError | None:
    """The system's complaint behind ``error`` if every submission would meet it; None for any other failure."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FAULTS:
            return error
        error = error.__cause__
    return None


def database_fault(error: BaseException) -> Exception | None:
    """The gradebook's own trouble behind ``error``: locked, full, damaged; None for any other failure.

    nbgrader raises its InvalidEntry in the place of what the database said, which is then only the context.
    """
    from sqlalchemy.exc import DatabaseError, OperationalError

    behind, seen = [error], set()
    while behind:
        one = behind.pop()
        if isinstance(one, OperationalError) or type(one) is DatabaseError:
            return one
        seen.add(id(one))
        behind += [next_ for next_ in (one.__cause__, one.__context__) if next_ is not None and id(next_) not in seen]
    return None


def raise_if_of_all(error: Exception) -> None:
    """Raise what every submission would meet: the machine's fault as it came, or the gradebook's own in its place."""
    if machine_fault(error):
        raise error
    if not isinstance(error, DeepLearningCasesError) and (fault := database_fault(error)) is not None:
        raise fault from None


def sentence(error: Exception, done: str) -> str:
    """What became of one submission, in one line: an error of ours says it itself; of any other, whose fault it is."""
    said = " ".join(str(error).split())
    if isinstance(error, DeepLearningCasesError):
        return said
    named = f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__
    return f"could not be {done} ({named}): the grader did not expect this of a submission; grade it by hand"
