"""A full disk is no submission's fault: it stops the run, and what came back is kept for ``--resume``."""

import errno

__all__ = ["machine_fault"]

_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}


def machine_fault(error: BaseException | None) -> OSError | None:
    """The system's complaint behind ``error`` if every submission would meet it; None for any other failure."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FAULTS:
            return error
        error = error.__cause__
    return None
