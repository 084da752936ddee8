"""nbgrader's configuration of this course.

With it in force (this folder is the course root, or the file lies in ``~/.jupyter``), ``nbgrader autograde`` and
formgrader's button grade in the sandbox, exactly as ``python -m grading autograde`` does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grading.course_config import configure

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by traitlets
configure(c)

# Limits of one submission that differ from those of grading/sandbox/limits.py go into the dict SafeAutograde.limits,
# as "seconds_per_cell": 60.
# Points off for late work: AssignLatePenalties.plugin_class, for example "grading.late.TenPercentADay".
