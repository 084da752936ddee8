"""The wall around a submission, by kind of isolation.

``bubblewrap``: own namespaces, an allow-list of read-only folders, a changed user, a system-call filter.
``landlock``: for root where namespaces are refused; an allow-list of paths, the same filter, another user each time.
``none``: resource limits alone; only when somebody asks for it by name.
"""

import sys

from grading.sandbox.limits import Limits
from grading.sandbox.wall.bubblewrap import bubblewrap_plan
from grading.sandbox.wall.filters import compiled_filter
from grading.sandbox.wall.places import tidy
from grading.sandbox.wall.plan import IsolationUnavailable, Plan
from grading.sandbox.wall.scratch import landlock_plan, unprotected_plan

__all__ = ["KINDS", "make_plan"]

KINDS = ("bubblewrap", "landlock", "none")


def make_plan(kind: str, limits: Limits, control_fd: int, control_group: bool) -> Plan:
    """The plan of one kind; IsolationUnavailable where a part that it needs is missing."""
    filter_program = b"" if kind == "none" else _filter(own_mounts=kind == "bubblewrap")
    builder = {"bubblewrap": bubblewrap_plan, "landlock": landlock_plan, "none": unprotected_plan}[kind]
    plan = builder(limits, control_fd, filter_program)
    plan.kind = kind
    plan.config |= {
        "kind": kind,
        "limits": limits.to_dict(),
        "control_group": control_group,
        "prefix": tidy(sys.prefix),
        "executable": tidy(sys.executable),
    }
    return plan


def _filter(own_mounts: bool) -> bytes:
    try:
        return compiled_filter(own_mounts)
    except (ImportError, OSError, RuntimeError) as error:
        raise IsolationUnavailable(
            f"the system-call filter cannot be built ({error}): expected libseccomp and pyseccomp; "
            "install them (apt-get install libseccomp2; pip install pyseccomp)"
        ) from error
