"""A verdict for each claim about a quantized version: true, false or inconclusive, with its evidence.  Pure functions.

No verdict says more than "on this machine": another processor, runtime or thread count may turn each of them round.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["CLAIMS", "LOSS_LIMIT_PP", "claims_of"]

LOSS_LIMIT_PP = 1.0
"""As accurate: the whole interval of the loss lies within one percentage point, as the release lab's gate has it."""

FAST_BATCHES = (1, 32)
CLAIMS = ("smaller", *(f"faster at batch {batch}" for batch in FAST_BATCHES), "as accurate")


def claims_of(
    configs: Mapping[str, Mapping[str, Any]], speed: Mapping[str, Any]
) -> dict[str, dict[str, dict[str, Any]]]:
    """``{config: {claim: {verdict, text, evidence}}}`` for every version that has a baseline."""
    result = {}
    for name, facts in configs.items():
        baseline = facts["baseline"]
        if baseline is None or baseline not in configs:
            continue
        claims = {"smaller": _smaller(facts, configs[baseline], baseline)}
        for batch in FAST_BATCHES:
            claims[f"faster at batch {batch}"] = _faster(speed.get(name, {}), batch, baseline)
        claims["as accurate"] = _as_accurate(facts["loss"], baseline)
        result[name] = claims
    return result


def _smaller(facts: Mapping[str, Any], before: Mapping[str, Any], baseline: str) -> dict[str, Any]:
    what = "state_dict_bytes" if facts["size"]["state_dict_bytes"] is not None else "file_bytes"
    mine, theirs = facts["size"][what], before["size"][what]
    evidence = {"what": what, "bytes": mine, "baseline": baseline, "baseline_bytes": theirs, "ratio": mine / theirs}
    text = f"{mine:,} bytes against {theirs:,} ({mine / theirs:.2f} of them), as made on this machine"
    return _claim("true" if mine < theirs else "false", text, evidence)


def _faster(rows: Mapping[str, Any], batch: int, baseline: str) -> dict[str, Any]:
    """True or false where every thread count agrees; inconclusive where one does not tell or they differ."""
    found = {threads: by_batch[str(batch)] for threads, by_batch in rows.items() if str(batch) in by_batch}
    evidence = {
        threads: {key: row[key] for key in ("verdict", "ratio", "low", "high", "rounds")}
        for threads, row in found.items()
    }
    if not found:
        return _claim("inconclusive", f"batch {batch} was not measured on this machine", evidence)
    verdicts = {row["verdict"] for row in found.values()}
    verdict = {frozenset({"faster"}): "true", frozenset({"slower"}): "false"}.get(frozenset(verdicts), "inconclusive")
    parts = "; ".join(
        f"{threads} thread{'s' if threads != '1' else ''}: {_ratio(row)}" for threads, row in found.items()
    )
    return _claim(verdict, f"time against {baseline} on this machine, {parts}", evidence)


def _ratio(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return f"x{row['ratio']:.2f}, one round, {row['verdict']}"
    return f"x{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}), {row['verdict']}"


def _as_accurate(loss: Mapping[str, Any] | None, baseline: str) -> dict[str, Any]:
    if loss is None:
        return _claim("inconclusive", "the predictions were not compared on this machine", {})
    low, high = loss["interval_pp"]["low"], loss["interval_pp"]["high"]
    verdict = "true" if high <= LOSS_LIMIT_PP else "false" if low > LOSS_LIMIT_PP else "inconclusive"
    worst = loss["worst_class"]
    text = (
        f"{loss['loss_pp']:+.2f} points lost against {baseline} on this machine, 95 % interval {low:+.2f} to"
        f" {high:+.2f}, limit {LOSS_LIMIT_PP:g}; {_worst(worst)}"
    )
    evidence = {
        "loss_pp": loss["loss_pp"], "low": low, "high": high, "limit_pp": LOSS_LIMIT_PP,
        "lost": loss["lost"], "gained": loss["gained"], "worst_class": dict(worst),
    }  # fmt: skip
    return _claim(verdict, text, evidence)


def _worst(worst: Mapping[str, Any]) -> str:
    if worst["change_pp"] >= 0:
        return "no class lost"
    return f"class {worst['name']} lost most, {-worst['change_pp']:.1f}"


def _claim(verdict: str, text: str, evidence: dict[str, Any]) -> dict[str, Any]:
    return {"verdict": verdict, "text": text, "evidence": evidence}
