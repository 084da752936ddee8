"""A quantization.json whose times are made up, with claims that follow from it: for tests of what judges it."""

import itertools
import json
from pathlib import Path
from typing import Any

from deep_learning_cases.quantizing.comparison.trial import Job

SCOPES = {
    "smaller": ("the saved numbers of this network", "the memory of a whole process", False),
    "faster at batch 1": ("this machine with one thread", "another processor or thread count", True),
    "faster at batch 32": ("full batches on this machine", "requests that come one by one", True),
    "as accurate": ("these 500 digits of one source", "handwriting from somewhere else", False),
}
FACTORS = {("1", 1): 2.0, ("32", 1): 0.7}
"""Time of int8 over its baseline's; at batch 8 the same."""

_pids = itertools.count(1001)


def _answer(job: Job, _timeout_s: float) -> dict[str, Any]:
    int8 = job["config"] not in ("fp32", "onnx_fp32")
    samples = {}
    for size in map(str, job["batch_sizes"]):
        factor = FACTORS.get((size, int8), 1.0) * (1 + 0.002 * (job["seed"] % 3))
        samples[size] = [10.0 * int(size) * factor + 0.01 * (index % 7) for index in range(job["iterations"])]
    return {
        "pid": next(_pids),
        "pinned_cpus": None,
        "backend_ran": job["backend"],
        "cold_start_us": 5000.0,
        "samples_us": samples,
        "warmups_us": {str(size): [99.0] * job["warmups"] for size in job["batch_sizes"]},
        "rss_before_bytes": 200_000_000,
        "rss_max_bytes": 210_000_000,
        "tracemalloc_peak_bytes": 2000,
        "peak_rss_bytes": 220_000_000,
        "peak_rss_source": "VmHWM",
    }


def make(folder: Path) -> Path:
    """Train for one epoch, quantize, and write ``folder`` with record, models and the claims about ``static``."""
    from deep_learning_cases import comparison
    from deep_learning_cases.quantizing import subjects
    from deep_learning_cases.quantizing.comparison import claims_record

    plan = comparison.Plan(iterations=100, rounds=3, threads=1)
    subject = subjects.load("digits", epochs=1, qat_epochs=1)
    comparison.compare(subject, folder, plan, progress=False, launch=_answer)
    claims_record.write(folder, "static", claims(folder, "static"))
    return folder


def claims(folder: Path, config: str) -> dict[str, Any]:
    """What follows from the record about one version, with a scope each."""
    from deep_learning_cases.quantizing.comparison import claims_record

    found = claims_record.expected(json.loads((folder / "quantization.json").read_text()), config, 1)
    for name, (holds_for, not_for, again) in SCOPES.items():
        found[name]["scope"] = {"holds_for": holds_for, "not_for": not_for, "measure_again_elsewhere": again}
    return found
