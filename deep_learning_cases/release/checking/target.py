"""``target_benchmark.json``: the same protocol, models and data on another machine, beside the local record.

It is accepted only for the files of this folder, and no number of it enters the local statistics.
"""

from typing import Any

from deep_learning_cases.ground.expectation import TEXT, TIME, look
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.checking.benchmark import benchmark_tree, shared_processes
from deep_learning_cases.release.checking.judge import finding, judge
from deep_learning_cases.release.evidence import Evidence
from deep_learning_cases.target_kit import SCHEMA

__all__ = ["accepted", "target_findings"]

AREA = "target_benchmark"


def target_findings(evidence: Evidence) -> list[Finding]:
    """What speaks against the target's record; nothing if there is none, as it is made later and elsewhere."""
    if evidence.absent.get(artefacts.TARGET) == "is missing":
        return []
    value = evidence.documents[artefacts.TARGET].value
    inner = look(value, "benchmark")
    tree = {"schema": SCHEMA, "created_at": TIME, "device": TEXT, "benchmark": benchmark_tree(evidence, inner)}
    found = judge(evidence, artefacts.TARGET, "target_benchmark", tree, lambda _pointer: AREA, (AREA,))
    found += [
        finding(AREA, artefacts.TARGET, f"/benchmark{pointer}", message) for pointer, message in shared_processes(inner)
    ]
    runs = look(inner, "runs")
    if runs and runs == look(evidence.documents[artefacts.BENCHMARK].value, "runs"):
        message = f"holds the very timings of {artefacts.BENCHMARK}: expected a measurement on another machine"
        found.append(finding(AREA, artefacts.TARGET, "/benchmark/runs", message))
    return found


def accepted(evidence: Evidence) -> dict[str, Any] | None:
    """The target's record if there is one and nothing speaks against it."""
    if artefacts.TARGET not in evidence.contents or target_findings(evidence):
        return None
    value: dict[str, Any] = evidence.documents[artefacts.TARGET].value
    return value
