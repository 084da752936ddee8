"""Where the checkout, this course, its masters and the students' notebooks lie."""

from pathlib import Path

__all__ = ["CHECKOUT", "COURSE", "LABS", "MASTERS"]

COURSE = Path(__file__).resolve().parents[1]
CHECKOUT = COURSE.parent
MASTERS = COURSE / "masters"
LABS = CHECKOUT / "labs"
