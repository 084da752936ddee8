"""nbgrader without its log of every step."""

import logging
import warnings
from typing import Any

from grading.quick_imports import leave_out_format_checker

__all__ = ["quiet_nbgrader"]


def quiet_nbgrader() -> None:
    """nbgrader logs each step of each submission; what concerns a reader is printed by us, once."""
    leave_out_format_checker()
    import traitlets.log

    logger: Any = traitlets.log.get_logger()
    logger.handlers = [logging.NullHandler()]
    logger.propagate = False
    # nbgrader's gradebook logs the traceback of every error that it raises as well.
    logging.getLogger("tornado.application").addFilter(_is_no_rollback)
    # SQLAlchemy 2.1 remarks on how nbgrader adds a submission; the rows are right.
    warnings.filterwarnings("ignore", message="Object of type <Submitted", module="nbgrader")


def _is_no_rollback(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Rolling back session")
