"""nbgrader's exchange, for feedback of students whose names hold the characters of a pattern."""

import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from grading.class_run.chosen_names import step_folders

__all__ = ["ReleaseFeedbackByName"]


class ReleaseFeedbackByName(ExchangeReleaseFeedback):
    """The exchange takes every name for a pattern; one that is a student's is that student's alone."""

    def init_src(self) -> None:
        """Where the pages are: nbgrader's answer, with a student's own name for what it is."""
        super().init_src()
        student, step = self.coursedir.student_id, self.coursedir.feedback_directory
        if student and student != "*" and student in step_folders(self.coursedir, step):
            path = self.coursedir.format_path(step, student, self.coursedir.assignment_id)
            self.src_path = glob.escape(str(Path(path)))
