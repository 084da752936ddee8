"""Where a student's server finds the exchange."""

import os

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by traitlets
c.CourseDirectory.course_id = "deep-learning-cases"
c.Exchange.root = os.environ.get("DLCASES_EXCHANGE", "/srv/nbgrader/exchange")
