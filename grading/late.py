"""A late penalty that leaves late work worth handing in.

Switched on in a course's ``nbgrader_config.py``:

c.AssignLatePenalties.plugin_class = "grading.late.TenPercentADay"
"""

from nbgrader.plugins import LateSubmissionPlugin

__all__ = ["TenPercentADay"]

SECONDS_A_DAY = 24 * 60 * 60


class TenPercentADay(LateSubmissionPlugin):
    """A tenth of the earned points for every day begun after the due date, never more than half of them."""

    def late_submission_penalty(
        self,
        student_id: str,  # noqa: ARG002
        score: float,
        total_seconds_late: float,
    ) -> float | None:
        """The penalty in points, rounded to hundredths; ``score`` is that of the notebook."""
        if total_seconds_late <= 0:
            return None
        days = -(-int(total_seconds_late) // SECONDS_A_DAY)
        return round(score * min(0.1 * max(days, 1), 0.5), 2)
