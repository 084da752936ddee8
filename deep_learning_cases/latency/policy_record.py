"""``policy.json``: a declared load, a batching policy, and what a simulation fed by measured times predicts for it.

:func:`collect` computes what can be computed, :func:`write` saves the whole, and :func:`check` recomputes it from
``latency.json`` beside it.  The check finds stale and wrong numbers; whether the declared load will ever come, and
whether the times were measured, no file can tell.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deep_learning_cases import batching
from deep_learning_cases.errors import DeepLearningCasesError, EvidenceError, InputError
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.ground.handed_in import Finding, read_regular
from deep_learning_cases.latency import case
from deep_learning_cases.latency import record as latency_record

__all__ = ["AREAS", "BATCHES", "LATENCY", "LEAST_TRIALS", "POLICY", "check", "collect", "service_times", "write"]

LATENCY, POLICY = "latency.json", "policy.json"
SCHEMA = "deep-learning-cases/policy/1"
AREAS = ("latency_record", "policy_prediction", "policy_claims")

BATCHES = (1, 8, 32, 128)
LEAST_WARMUPS, LEAST_TRIALS, MOST_TRIALS = 8, 299, 5000
"""299: fewer, and not even the slowest call is an upper bound of p99 (0.99 ** 299 < 0.05 <= 0.99 ** 298)."""
LEAST_SENTENCES, LEAST_WORDS = 4, 4

SEEDS, REQUESTS = 8, 20_000
"""Of one prediction: runs, and requests in each."""
CHECK_SEED = 52_000
"""First of the seeds that the check uses, so that it repeats the experiment and not the random numbers."""
SLACK = 0.02
"""Relative, on top of both intervals: two honest simulations may differ by this much and mean the same."""
MOST_WIDER = 10
"""Widths of intervals from eight seeds differ by chance, and more so where a few slow samples decide."""

MAX_LATENCY_BYTES, MAX_POLICY_BYTES = 4 * 1024 * 1024, 64 * 1024

_REDO = {
    "latency_record": "measure again with the plan that the notebook asks for",
    "policy_prediction": "run the cell that writes policy.json again, with the latency.json that is there now",
    "policy_claims": "say what the prediction supports, and what it leaves open",
}

Json = dict[str, Any]


def service_times(record: Mapping[str, Any], boundary: str = "model") -> batching.Measured:
    """The measured service times of a latency record: of the model alone, or of one of the record's boundaries.

    Raises EvidenceError for a boundary that has no results in the record.
    """
    rows = record["results"] if boundary == "model" else _part(record, boundary).get("results")
    if not rows:
        raise EvidenceError(f"{LATENCY} has no times for the boundary {boundary!r}: expected {_boundaries(record)}")
    return batching.Measured(
        {int(batch): [sample / 1e3 for sample in row["samples_ms"]] for batch, row in rows.items()}
    )


def collect(
    folder: str | Path,
    declared: Mapping[str, Any],
    policy: batching.Policy,
    boundary: str = "model",
    *,
    seeds: int = SEEDS,
    requests: int = REQUESTS,
    seed: int = 0,
) -> Json:
    """Everything of the record but ``verdict`` and ``not_covered``, which are for a person to say.

    Args:
        folder: holds ``latency.json``.
        declared: ``rate_per_s``, ``slo_p95_ms`` (limit for p95 of the time in the system) and ``because``.
        policy: the policy chosen.
        boundary: whose service times, see :func:`service_times`.
        seeds, requests, seed: runs of the simulation, requests in each, and the first seed.

    Raises InputError for what makes no sense, FileError and EvidenceError for a missing or damaged ``latency.json``.
    """
    missing = [name for name in ("rate_per_s", "slo_p95_ms", "because") if not declared.get(name)]
    if missing:
        raise InputError(f"declared has no {missing[0]}: expected rate_per_s, slo_p95_ms and because; fill it in")
    path = Path(folder) / LATENCY
    record = case.load_latency_case(path)
    times = service_times(record, boundary)
    return {
        "schema": SCHEMA,
        "declared": {
            "rate_per_s": float(declared["rate_per_s"]),
            "arrivals": "Poisson",
            "slo_p95_ms": float(declared["slo_p95_ms"]),
            "because": str(declared["because"]),
        },
        "policy": {
            "max_batch": policy.max_batch,
            "max_wait_ms": 1e3 * policy.max_wait_s,
            "queue_bound": policy.queue_bound,
        },
        "service_times": {"file": LATENCY, "sha256": files.sha256_file(path), "boundary": boundary},
        "predicted": _predict(times, declared, policy, seeds, requests, seed),
    }


def write(folder: str | Path, record: Json) -> Path:
    """Save ``policy.json``, whole or not at all; EvidenceError for the first thing its schema does not allow."""
    schemas.validate(record, "policy", POLICY)
    path = Path(folder) / POLICY
    files.write_json(path, record)
    return path


def check(folder: str | Path) -> list[Finding]:
    """What in ``latency.json`` and ``policy.json`` is missing, damaged, or does not follow; never raises for it."""
    folder = Path(folder)
    content, latency, problem = _latency(folder)
    found = [_finding("latency_record", LATENCY, "", problem)] if latency is None else _incomplete(latency)
    policy, problems = _policy(folder)
    if policy is None:
        areas = AREAS[1:]
        return found + [_finding(area, POLICY, pointer, words) for area in areas for pointer, words in problems]
    return found + _prediction(policy, content, latency) + _claims(policy)


def _predict(
    times: batching.Measured, declared: Mapping[str, Any], policy: batching.Policy, seeds: int, requests: int, seed: int
) -> Json:
    objective = batching.Objective(float(declared["slo_p95_ms"]) / 1e3, 95)
    reading = batching.choose_policy(
        float(declared["rate_per_s"]), objective, times, [policy], requests=requests, seeds=seeds, seed=seed
    ).closest
    return {
        "p95_ms": _ms(reading.reached_s),
        "low_ms": _ms(max(0.0, reading.low_s)),  # Student's t knows nothing of times being positive
        "high_ms": _ms(reading.high_s),
        "confidence": 0.95,
        "seeds": seeds,
        "requests_per_seed": requests,
    }


def _ms(seconds: float) -> float | None:
    return 1e3 * seconds if math.isfinite(seconds) else None


def _latency(folder: Path) -> tuple[bytes | None, Json | None, str]:
    content, problem = read_regular(folder / LATENCY, MAX_LATENCY_BYTES)
    if content is None:
        return None, None, problem
    try:
        value = files.parse_json(content, LATENCY)
        schemas.validate(value, "latency", LATENCY)
        record = latency_record.from_json(value)
        latency_record.check(record, LATENCY)
    except DeepLearningCasesError as error:
        return content, None, str(error)
    return content, record, ""


def _incomplete(record: Json) -> list[Finding]:
    """What the lab asked for and the record does not hold."""
    found = []
    for batch in BATCHES:
        row, pointer = record["results"].get(batch), f"/results/{batch}"
        if row is None:
            found.append((pointer, "is missing: expected batches 1, 8, 32 and 128"))
        elif not LEAST_TRIALS <= row["trials"] <= MOST_TRIALS:
            found.append((f"{pointer}/trials", f"{row['trials']} trials: expected {LEAST_TRIALS} to {MOST_TRIALS}"))
        elif row["warmups"] < LEAST_WARMUPS:
            found.append((f"{pointer}/warmups", f"{row['warmups']} warm-ups: expected at least {LEAST_WARMUPS}"))
    if not any(part.get("results") for part in record.get("boundaries", {}).values()):
        found.append(("/boundaries", "is missing: expected the same network with preprocessing inside the timer"))
    if "cold" not in record:
        found.append(("/cold", "is missing: expected cold starts, reported apart from warm calls"))
    return [_finding("latency_record", LATENCY, pointer, words) for pointer, words in found]


def _policy(folder: Path) -> tuple[Json | None, list[tuple[str, str]]]:
    content, problem = read_regular(folder / POLICY, MAX_POLICY_BYTES)
    if content is None:
        return None, [("", problem)]
    try:
        value = files.parse_json(content, POLICY)
    except DeepLearningCasesError as error:
        return None, [("", str(error))]
    problems = schemas.violations(value, "policy")
    return (None, problems[:3]) if problems else (value, [])


def _prediction(policy: Json, content: bytes | None, latency: Json | None) -> list[Finding]:
    def one(pointer: str, words: str) -> list[Finding]:
        return [_finding("policy_prediction", POLICY, pointer, words)]

    if content is None or latency is None:
        return one("/service_times", f"cannot be recomputed: {LATENCY} is missing or damaged")
    if files.sha256_bytes(content) != policy["service_times"]["sha256"]:
        return one("/service_times/sha256", f"is not that of {LATENCY} here: expected the file it was predicted from")
    chosen = policy["policy"]
    try:
        times = service_times(latency, policy["service_times"]["boundary"])
        _bounded(times)
        rule = batching.Policy(chosen["max_batch"], chosen["max_wait_ms"] / 1e3, chosen["queue_bound"])
        again = _predict(times, policy["declared"], rule, SEEDS, REQUESTS, CHECK_SEED)
    except DeepLearningCasesError as error:
        return one("/policy", str(error))
    words = _disagreement(policy["predicted"], again)
    return one("/predicted", words) if words else []


def _bounded(times: batching.Measured) -> None:
    if max(map(len, times.samples_s.values())) > MOST_TRIALS:
        raise EvidenceError(f"{LATENCY} has more than {MOST_TRIALS} samples of one batch size: expected fewer")


def _disagreement(stated: Json, again: Json) -> str:
    """Why two predictions do not mean the same, empty if they do."""
    if (stated["p95_ms"] is None) != (again["p95_ms"] is None):
        return (
            "p95_ms and the simulation disagree on whether there is a finite p95: expected null where the queue grows"
            " for ever or refusals reach that far, and only there"
        )
    if stated["p95_ms"] is None:
        return "" if stated["high_ms"] is None else "high_ms is a number and p95_ms is null: expected null for both"
    if stated["low_ms"] is None or stated["high_ms"] is None or again["high_ms"] is None:
        return "low_ms or high_ms is null: expected an interval around p95_ms"
    if not stated["low_ms"] <= stated["p95_ms"] <= stated["high_ms"]:
        return "p95_ms is not between low_ms and high_ms"
    width, usual = stated["high_ms"] - stated["low_ms"], again["high_ms"] - again["low_ms"]
    slack = SLACK * again["p95_ms"]
    if abs(stated["p95_ms"] - again["p95_ms"]) > width + usual + slack:
        return (
            f"p95_ms is {stated['p95_ms']:.4g}, and the same simulation with other seeds gives {again['p95_ms']:.4g}:"
            " expected agreement within both intervals"
        )
    if not _narrowest(stated, usual) - slack <= width <= MOST_WIDER * usual + slack:
        return f"the interval is {width:.3g} ms wide, and the check's own {usual:.3g}: expected what several seeds give"
    return ""


def _narrowest(stated: Json, usual: float) -> float:
    """How narrow an interval may be: more requests make it narrower, as the root of their number."""
    fewer = SEEDS * REQUESTS / (stated["seeds"] * stated["requests_per_seed"])
    return usual * math.sqrt(min(1.0, fewer)) / MOST_WIDER


def _claims(policy: Json) -> list[Finding]:
    found = []
    stated, limit_ms = policy["predicted"], policy["declared"]["slo_p95_ms"]
    low, high = (math.inf if stated[key] is None else stated[key] for key in ("low_ms", "high_ms"))
    verdict = "meets" if high <= limit_ms else "misses" if low > limit_ms else "unsure"
    if policy["verdict"] != verdict:
        ask = "on which side of the limit does the whole interval lie?"
        found.append(("/verdict", f"is {policy['verdict']!r}, which the interval and the limit do not give: {ask}"))
    if len(policy["declared"]["because"].split()) < LEAST_WORDS:
        found.append(("/declared/because", "says too little: expected where the rate and the limit come from"))
    sentences = {" ".join(one.lower().split()) for one in policy["not_covered"] if len(one.split()) >= LEAST_WORDS}
    if len(sentences) < LEAST_SENTENCES:
        words = f"holds {len(sentences)} different sentence(s): expected at least {LEAST_SENTENCES}"
        found.append(("/not_covered", words))
    return [_finding("policy_claims", POLICY, pointer, words) for pointer, words in found]


def _part(record: Mapping[str, Any], boundary: str) -> Json:
    part: Json = record.get("boundaries", {}).get(boundary, {})
    return part


def _boundaries(record: Mapping[str, Any]) -> str:
    measured = [name for name, part in record.get("boundaries", {}).items() if part.get("results")]
    return "one of " + ", ".join(["model", *measured])


def _finding(area: str, file: str, pointer: str, message: str) -> Finding:
    return Finding(area, file, pointer, message, _REDO[area])
