"""An instructor's server: formgrader, once its autograde button is known to lead into the sandbox."""

import os
import sys
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by traitlets

checkout = Path(os.environ.get("DLCASES_CHECKOUT", Path.home() / "deep-learning-cases"))
sys.path.insert(0, str(checkout))
try:
    # Without this, the button would run students' code in this very process, as the instructor.
    from grading.hooks.converter import install

    install()
    safe = True
except ImportError as error:
    print(f"formgrader stays off: {checkout} does not hold the grader ({error}); clone it there", file=sys.stderr)
    safe = False

c.ServerApp.jpserver_extensions = {
    "jupyter_lsp": False,
    "nbgrader.server_extensions.assignment_list": False,
    "nbgrader.server_extensions.course_list": False,
    "nbgrader.server_extensions.formgrader": safe,
    "nbgrader.server_extensions.validate_assignment": True,
}
# Formgrader's tab in JupyterLab is a frame of the same server; the hub's own rule, "none", would leave it blank.
c.ServerApp.tornado_settings = {"headers": {"Content-Security-Policy": "frame-ancestors 'self'"}}
