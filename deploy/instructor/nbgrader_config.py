"""The instructor's course: the checkout's ``grading`` folder, with its trust boundary, on the hub's exchange."""

import os
import sys
from pathlib import Path

checkout = Path(os.environ.get("DLCASES_CHECKOUT", Path.home() / "deep-learning-cases"))
sys.path.insert(0, str(checkout))

from grading.course_config import configure  # noqa: E402 - found by the path above

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by traitlets
configure(c)
c.CourseDirectory.root = str(checkout / "grading")
c.Exchange.root = os.environ.get("DLCASES_EXCHANGE", "/srv/nbgrader/exchange")
