"""A load in a few numbers: what was answered, how late, how fast; and whether the generator itself kept up.

Percentiles are nearest rank with an interval that takes into account that requests wait behind each other
(:mod:`~deep_learning_cases.serving.load.interval`).  They are about the answered requests (status 200); how many were
not answered stands beside them, since a service that refuses whom it would serve late has fine percentiles.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from deep_learning_cases.ground import machine, schemas
from deep_learning_cases.serving.load.interval import Latencies
from deep_learning_cases.serving.load.send import Fate
from deep_learning_cases.serving.predictor import PARTS

__all__ = ["SCHEMA", "check", "lines", "record", "summary"]

SCHEMA = "deep-learning-cases/load/1"

LATE_S = 0.005
LATE_SHARE = 0.01
RATE_SHARE = 0.98

CHECKED = 2000
"""Entries of each column that are held against the schema, at 20 us each; the others were made in the same way."""

_PERCENTS = (50, 95, 99)


def summary(fates: Sequence[Fate], interrupted: bool = False) -> dict[str, Any]:
    """What the table shows, as JSON values.

    ``latency_ms`` counts from the intended start (from sending where there is none), ``latency_from_send_ms`` from
    sending: in an open loop that keeps up they agree, in a closed loop with a rate their difference is what the loop
    omits.  ``kept_up`` is None without intended starts; otherwise it is False, with a ``warning``, where more than
    1 % of the requests were sent more than 5 ms late, or fewer than 98 % of the intended rate were sent.
    ``interrupted``: the load was ended before its time, and these are the requests that were sent until then.
    """
    answered = [fate for fate in fates if fate.status == "200"]
    counts = Counter(fate.status for fate in fates)
    result: dict[str, Any] = {
        "interrupted": interrupted,
        "requests": len(fates),
        "answered": len(answered),
        "status": {status: counts[status] for status in sorted(counts)},
        "seconds": max((fate.done_s for fate in fates), default=0.0),
        "intended_rate_per_s": _rate([fate.intended_s for fate in fates if fate.intended_s is not None]),
        "achieved_rate_per_s": _rate(sorted(fate.sent_s for fate in fates)),
        "answered_per_s": len(answered) / max((fate.done_s for fate in fates), default=math.inf),
        "latency_ms": _spread([1e3 * (fate.done_s - _start_s(fate)) for fate in answered]),
        "latency_from_send_ms": _spread([1e3 * (fate.done_s - fate.sent_s) for fate in answered]),
        "server_ms": {part: _spread([fate.server_ms[part] for fate in answered]) for part in PARTS},
        "mean_batch": _mean([fate.batch_size for fate in answered if fate.batch_size is not None]),
    }
    return result | _lateness(fates, result["intended_rate_per_s"], result["achieved_rate_per_s"])


def record(fates: Sequence[Fate], settings: dict[str, Any], interrupted: bool = False) -> dict[str, Any]:
    """Everything, to be kept: settings, machine, summary, and for each request a value in every column.

    What each key means stands in ``schemas/load-1.json``.

    ``results`` has the model's times by batch size as the service measured them, in the form that
    ``dlcases batching --from`` reads; a batch counts once for each of its requests.
    """
    runs: dict[str, list[float]] = {}
    for fate in sorted((f for f in fates if f.batch_size is not None), key=lambda f: f.batch_size or 0):
        if fate.server_ms["run"] > 0:
            runs.setdefault(str(fate.batch_size), []).append(fate.server_ms["run"])
    return {
        "schema": SCHEMA,
        "created_at": machine.utc_now(),
        "settings": settings,
        "environment": machine.environment(),
        "summary": summary(fates, interrupted),
        "requests": {
            "intended_s": [fate.intended_s for fate in fates],
            "sent_s": [fate.sent_s for fate in fates],
            "done_s": [fate.done_s for fate in fates],
            "status": [fate.status for fate in fates],
            "batch_size": [fate.batch_size for fate in fates],
            **{f"{part}_ms": [fate.server_ms.get(part) for fate in fates] for part in PARTS},
        },
        "results": {size: {"samples_ms": samples} for size, samples in runs.items()},
    }


def check(whole: dict[str, Any], file: str) -> None:
    """EvidenceError that names ``file`` unless a :func:`record` follows its schema."""
    start = {name: column[:CHECKED] for name, column in whole["requests"].items()}
    runs = {size: {"samples_ms": row["samples_ms"][:CHECKED]} for size, row in whole["results"].items()}
    schemas.validate(whole | {"requests": start, "results": runs}, "load", file)


def lines(result: dict[str, Any]) -> list[str]:
    """A :func:`summary` for a person."""
    wanted = result["intended_rate_per_s"]
    asked = "closed loop, no intended rate" if wanted is None else f"intended {wanted:.1f} requests/s"
    statuses = ", ".join(f"{status}: {count}" for status, count in result["status"].items())
    sent = "unknown" if result["achieved_rate_per_s"] is None else f"{result['achieved_rate_per_s']:.1f}"
    head = f"{result['requests']} requests in {result['seconds']:.2f} s; {asked}"
    table = [
        f"{head}, sent {sent}, answered {result['answered_per_s']:.1f} per second; {statuses}",
        f"{'milliseconds (answered requests)':<34}{'p50':>10}{'p95':>10}{'p99':>10}{'max':>10}   95 % interval of p95",
    ]
    rows = [
        ("from the intended start" if wanted is not None else "from sending", result["latency_ms"]),
        *([("from sending", result["latency_from_send_ms"])] if wanted is not None else []),
        *((f"  in the service: {part}", spread) for part, spread in result["server_ms"].items()),
        *([("sent late by", result["lateness_ms"])] if wanted is not None else []),
    ]
    table += [f"{title:<34}{_columns(spread)}" for title, spread in rows if spread is not None]
    if result["mean_batch"] is not None:
        table.append(f"mean batch {result['mean_batch']:.2f} (as a request sees it)")
    return [*table, *([f"warning: {result['warning']}"] if result["warning"] else [])]


def _columns(spread: dict[str, Any]) -> str:
    row = spread["p95"]
    interval = row["reason"] if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}"
    return "".join(f"{spread[f'p{p}']['value']:>10.3f}" for p in _PERCENTS) + f"{spread['max']:>10.3f}   {interval}"


def _lateness(fates: Sequence[Fate], wanted: float | None, achieved: float | None) -> dict[str, Any]:
    late_s = [fate.sent_s - fate.intended_s for fate in fates if fate.intended_s is not None]
    if not late_s:
        return {"lateness_ms": None, "kept_up": None, "warning": None}
    late = sum(one > LATE_S for one in late_s)
    slow = wanted is not None and achieved is not None and achieved < RATE_SHARE * wanted
    warning = None
    if late > LATE_SHARE * len(late_s) or slow:
        warning = (
            f"the generator could not keep up: {late} of {len(late_s)} requests were sent more than {1e3 * LATE_S:g} ms"
            f" late, the latest by {1e3 * max(late_s):.1f} ms; latencies count from the intended start all the same,"
            " but the arrivals were not as asked: use a lower rate or a machine with less to do"
        )
    return {
        "lateness_ms": _spread([1e3 * max(0.0, one) for one in late_s]),
        "kept_up": warning is None,
        "warning": warning,
    }


def _start_s(fate: Fate) -> float:
    return fate.sent_s if fate.intended_s is None else fate.intended_s


def _spread(samples: Sequence[float]) -> dict[str, Any] | None:
    """Percentiles by nearest rank with their intervals, and the extremes; None without samples.

    ``samples`` are in the order of the requests' starts: how they hang together decides how wide the intervals are.
    """
    if not samples:
        return None
    times = Latencies(np.asarray(samples, dtype=np.float64))
    low, high = float(times.ordered[0]), float(times.ordered[-1])
    result: dict[str, Any] = {"n": len(samples), "mean": _mean(samples), "min": low, "max": high}
    for percent in _PERCENTS:
        result[f"p{percent}"] = {"value": times.percentile(percent), **times.interval(percent)._asdict()}
    return result


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _rate(times_s: Sequence[float]) -> float | None:
    """Starts per second between the first and the last; None where that says nothing."""
    span_s = times_s[-1] - times_s[0] if len(times_s) > 1 else 0.0
    return (len(times_s) - 1) / span_s if span_s > 0 else None
