"""Students' code behind a wall: ``open_box`` starts one, ``Box.run`` runs a submission and asks its function.

The wall is bubblewrap with a libseccomp filter (Landlock where namespaces are refused); speed comes from a fork server
inside it.  Whatever comes out is bounded JSON, checked before it is used.
"""

from grading.sandbox.box import Box, ComputeFailed, open_box
from grading.sandbox.limits import Limits
from grading.sandbox.submission import CONTAINERS, Call, Cell, Run
from grading.sandbox.wall import IsolationUnavailable

__all__ = ["CONTAINERS", "Box", "Call", "Cell", "ComputeFailed", "IsolationUnavailable", "Limits", "Run", "open_box"]
