"""The configuration of a course, in one place: ``nbgrader_config.py`` of any course folder calls ``configure``."""

from pathlib import Path
from typing import Any

__all__ = ["COURSE_ID", "IGNORED", "configure", "course_config", "course_directory"]

COURSE_ID = "deep-learning-cases"

IGNORED = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".grading.json"]
"""nbgrader's own list, and the instructor's record of a submission, which must not be copied to feedback."""


def configure(config: Any) -> None:
    """Set the trust boundary for nbgrader's commands and formgrader; ``config`` is traitlets' ``get_config()``."""
    from grading.hooks.converter import install
    from grading.hooks.feedback_page import display_config
    from grading.hooks.handing_out import ReleaseFeedbackByName

    install()
    config.ExchangeFactory.release_feedback = ReleaseFeedbackByName
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.ignore = IGNORED
    config.Exporter.optimistic_validation = True
    config.merge(display_config())


def course_config(root: Path) -> Any:
    """nbgrader's configuration for the course at ``root``: with what its own ``nbgrader_config.py`` changes."""
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    config = Config()
    configure(config)
    config.Exchange.merge(_exchange_of_this_machine())
    if (root / "nbgrader_config.py").is_file():
        config.merge(PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config())
    config.CourseDirectory.root = str(root)
    return config


def course_directory(root: Path, **chosen: str) -> tuple[Any, Any]:
    """nbgrader's CourseDirectory at ``root`` and its configuration; ``chosen``: its assignment_id, student_id, ..."""
    from nbgrader.coursedir import CourseDirectory

    config = course_config(root)
    config.CourseDirectory.update(chosen)
    return CourseDirectory(config=config), config


def _exchange_of_this_machine() -> Any:
    """Where the exchange is, as nbgrader itself would find it: from ``nbgrader_config.py`` in Jupyter's folders."""
    from jupyter_core.paths import jupyter_config_path
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    exchange = Config()
    for folder in reversed(jupyter_config_path()):
        if Path(folder, "nbgrader_config.py").is_file():
            exchange.merge(PyFileConfigLoader("nbgrader_config.py", path=folder).load_config().Exchange)
    return exchange
