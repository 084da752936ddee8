"""The release lab: prepare, compare, measure, judge and report whether a smaller model may ship.

This is also what users type: ``from deep_learning_cases import release``.
"""

from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.release.checking.release import TOPICS
from deep_learning_cases.release.evidence import AREAS, OTHER_AREAS
from deep_learning_cases.release.gate import LIMITS, Reason, Verdict, decide
from deep_learning_cases.release.record import CLAIMS, check, collect, make, write

__all__ = [
    "AREAS", "CLAIMS", "LIMITS", "OTHER_AREAS", "TOPICS",
    "Finding", "Reason", "Verdict",
    "check", "collect", "decide", "make", "write",
]  # fmt: skip
