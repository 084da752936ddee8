"""``release.json``: counted from the files of an evidence folder, decided, written down; and everything in it checked.

:func:`check` recomputes everything and says where the files do not hang together.  It cannot tell whether the times
were really measured, and no message here says so.
"""

import copy
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import EvidenceError
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.ground.expectation import Rule
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.checking.benchmark import benchmark_findings
from deep_learning_cases.release.checking.regression import regression_findings, weights_findings
from deep_learning_cases.release.checking.release import counted_tree, release_findings, settled
from deep_learning_cases.release.checking.seal import report_findings
from deep_learning_cases.release.checking.target import target_findings
from deep_learning_cases.release.evidence import Evidence
from deep_learning_cases.release.gate import LIMITS, decide

__all__ = ["CLAIMS", "check", "collect", "make", "write"]

CLAIMS: dict[str, Any] = {
    "target_benchmark_required": True,
    "universally_faster": False,
    "not_claimed": [
        "latency on the real device",
        "memory of the whole process on the real device",
        "power drawn on the real device",
        "a hard real-time bound: p95 is a share of the calls seen, not a deadline that is always met",
        "the authenticity of the times: hashes and sums do not prove that they were measured",
    ],
}
"""What the evidence of one machine supports, and what it leaves open."""


def check(folder: str | Path | Evidence) -> list[Finding]:
    """Everything in an evidence folder that does not follow from its files, each place by itself.

    Hashes and sizes are taken again, both models run again, the summary and the decision computed again.  An empty list
    means that the files hang together and the numbers follow from the raw samples; it does not mean that anybody
    measured them.  Fields that no other file fixes are listed in ``FREE`` of :mod:`release.checking.judge`.

    ``folder`` is a path, or a reading of one: then that reading is judged, whatever lies in the folder now.  Damage of
    any kind is a finding, not an exception; FileError only if ``folder`` is not a folder.
    """
    evidence = Evidence.open(folder)
    return [
        *benchmark_findings(evidence),
        *regression_findings(evidence),
        *release_findings(evidence),
        *weights_findings(evidence),
        *report_findings(evidence),
        *target_findings(evidence),
    ]


def collect(folder: str | Path | Evidence) -> dict[str, Any]:
    """Every part of ``release.json`` that is counted from the files; decision and claims are left to the author.

    FileError or EvidenceError, with what to redo, where a file is missing, stale or damaged.
    """
    evidence = Evidence.open(folder)
    # The summary is left out: latency is counted from the raw samples here, whatever the stated summary says.
    blocking = [one for one in benchmark_findings(evidence) if one.area != "benchmark_summary"]
    blocking += regression_findings(evidence)
    if blocking:
        more = f" (and {len(blocking) - 1} more reasons)" if len(blocking) > 1 else ""
        raise EvidenceError(f"{evidence.folder} cannot be judged: {blocking[0]}{more}")
    tree = settled(counted_tree(evidence, LIMITS))
    return {key: value for key, value in tree.items() if not isinstance(value, Rule)}


def make(folder: str | Path | Evidence) -> dict[str, Any]:
    """The whole ``release.json``: what :func:`collect` counts, the decision of :func:`decide`, and :data:`CLAIMS`."""
    evidence = Evidence.open(folder)
    record = collect(evidence)
    interval = evidence.documents[artefacts.REGRESSION].value["loss_interval_pp"]
    verdict = decide(
        {"model_bytes": record["model_bytes"], "loss_pp": record["accuracy"]["loss_pp"], "loss_interval_pp": interval}
    )
    return record | {"decision": verdict.decision} | copy.deepcopy(CLAIMS)


def write(folder: str | Path, record: dict[str, Any]) -> Path:
    """Write ``release.json`` whole; EvidenceError if it breaks the schema, FileError if it cannot be written."""
    path = Path(folder) / artefacts.RELEASE
    schemas.validate(record, "release", artefacts.RELEASE)
    files.write_json(path, record)
    return path
