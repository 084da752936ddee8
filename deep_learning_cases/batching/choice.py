"""Dynamic batching in front of one server: simulate a policy, and choose one for a declared rate and objective.

The model: requests arrive one by one and wait in one queue; a server takes a batch of them, oldest first, and all of a
batch are answered when it ends.  :class:`Policy` says exactly when a batch starts; how Triton, TensorFlow Serving and
Ray Serve differ is told in ``docs/batching.md``.  Textbook checks of the results: for batches of one the mean wait is
rate E[S^2] / (2 (1 - load)) (Pollaczek 1930, Khinchine 1932), for constant service the distribution of the wait is
Erlang's (1909), and for any policy the mean number in the system is the rate times the mean time in it (Little 1961).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep_learning_cases.batching.arrivals import Arrivals, Floats, Poisson, arrival_times_s
from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.batching.service_times import (
    Measured,
    ServiceTime,
)
from deep_learning_cases.batching.simulation import Result, load, simulate
from deep_learning_cases.batching.summary import warm_up_requests
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import positive, settle, whole
from deep_learning_cases.measuring.distributions import t_quantile

__all__ = ["Choice", "Objective", "Reading", "choose_policy", "default_candidates"]


@dataclass(frozen=True)
class Objective:
    """``percent`` of all requests offered are answered within ``limit_s`` of their arrival (nearest rank).

    A refused request is never answered, so it counts as infinitely late: a policy cannot meet the objective by turning
    away whom it would serve late.
    """

    limit_s: float
    percent: int = 95

    def __post_init__(self) -> None:
        limit_s = positive(self.limit_s, "limit of the objective (seconds)")
        settle(self, limit_s=limit_s, percent=whole(self.percent, "percent of the objective", 1, 99))

    def __str__(self) -> str:
        return f"p{self.percent} of the time in the system at most {1e3 * self.limit_s:g} ms"

    def reached_s(self, result: Result) -> float:
        """The percentile that a run reached after its warm-up, infinite where refusals reach that far."""
        times = np.where(result.accepted, result.time_in_system_s, np.inf)[warm_up_requests(len(result.accepted)) :]
        rank = -(-self.percent * len(times) // 100) - 1
        return float(np.partition(times, rank)[rank])


@dataclass(frozen=True)
class Reading:
    """How one candidate did over several seeds; seconds.

    ``reached_s`` is the mean over the seeds of the objective's percentile, ``low_s`` to ``high_s`` its 95 % interval
    (Student's t over the seeds).  ``verdict``: "meets" when the whole interval is within the limit, "misses" when it is
    wholly above, "unsure" in between.  ``cost`` is the share of the server's time the policy takes (its utilisation).
    """

    policy: Policy
    load: float
    verdict: str
    reached_s: float
    low_s: float
    high_s: float
    seeds_met: int
    cost: float
    mean_batch: float
    mean_wait_s: float
    refused: float

    @property
    def rank(self) -> tuple[float, int, float]:
        """Cheapest first; what differs by less than a thousandth costs the same, and then simpler is better."""
        return round(self.cost, 3), self.policy.max_batch, self.policy.max_wait_s


@dataclass(frozen=True)
class Choice:
    """The policy chosen (None: no candidate surely meets the objective), the closest one, why, and every reading."""

    rate_per_s: float
    objective: Objective
    chosen: Reading | None
    closest: Reading
    reason: str
    readings: tuple[Reading, ...]
    seeds: int
    requests: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; what is infinite (a queue that grows for ever) becomes None."""
        return {
            "rate_per_s": self.rate_per_s,
            "objective": {"percent": self.objective.percent, "limit_s": self.objective.limit_s},
            "chosen": None if self.chosen is None else _row(self.chosen),
            "closest": _row(self.closest),
            "reason": self.reason,
            "seeds": self.seeds,
            "requests_per_seed": self.requests,
            "confidence": 0.95,
            "candidates": [_row(reading) for reading in self.readings],
        }


def _row(reading: Reading) -> dict[str, Any]:
    names = [name for name in Reading.__dataclass_fields__ if name != "policy"]
    values = {name: getattr(reading, name) for name in names}
    finite = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in values.items()}
    policy = reading.policy
    return {
        "max_batch": policy.max_batch,
        "max_wait_s": policy.max_wait_s,
        "queue_bound": policy.queue_bound,
        **finite,
    }


def default_candidates(largest: int, limit_s: float, queue_bound: int | None = None) -> list[Policy]:
    """Batches of 1, 2, 4, ... and ``largest``; each greedy, and waiting for an eighth and a quarter of the limit."""
    largest, limit_s = whole(largest, "largest batch", 1, 1 << 20), positive(limit_s, "limit (seconds)")
    sizes = sorted({1 << k for k in range(largest.bit_length())} | {largest})
    waits = (0.0, limit_s / 8, limit_s / 4)
    bounds = {size: None if queue_bound is None else max(queue_bound, size) for size in sizes}
    return [Policy(size, wait, bounds[size]) for size in sizes for wait in (waits if size > 1 else waits[:1])]


def choose_policy(
    rate_per_s: float,
    objective: Objective,
    measured: ServiceTime,
    candidates: Sequence[Policy] | None = None,
    *,
    arrivals: Callable[[float], Arrivals] = Poisson,
    requests: int = 40_000,
    seeds: int = 8,
    seed: int = 0,
    progress: Callable[[Sequence[Policy]], Iterable[Policy]] = iter,
) -> Choice:
    """The cheapest candidate that surely meets the objective at this rate, or none with the closest one and why.

    Cheapest is the one that takes the least of the server's time, since that is what is paid for and what is left for
    more load.  Every candidate sees the same arrivals, ``seeds`` runs (seed, seed + 1, ...) of ``requests`` requests.
    A queue that must grow for ever (load of 1 or more, no bound) is not simulated: it misses any objective.  Without
    ``candidates`` a :class:`Measured` service time is tried with :func:`default_candidates`.
    """
    rate_per_s = positive(rate_per_s, "rate (requests per second)")
    seeds, requests, seed = whole(seeds, "seeds", 2, 1000), whole(requests, "requests", 1000), whole(seed, "seed", 0)
    if candidates is None:
        if not isinstance(measured, Measured):
            raise InputError("no candidates: expected a list of policies to choose from")
        candidates = default_candidates(measured.largest, objective.limit_s)
    if not candidates:
        raise InputError("the list of candidates is empty: expected at least one policy")
    times = [arrival_times_s(arrivals(rate_per_s), requests, seed + k) for k in range(seeds)]
    readings = tuple(
        _read(policy, load(rate_per_s, measured, policy), objective, measured, times, seed)
        for policy in progress(candidates)
    )
    meeting = [reading for reading in readings if reading.verdict == "meets"]
    chosen = min(meeting, key=lambda reading: reading.rank, default=None)
    closest = chosen or min(readings, key=lambda reading: (reading.high_s, reading.reached_s, reading.load))
    return Choice(
        rate_per_s, objective, chosen, closest, _reason(chosen, closest, objective), readings, seeds, requests
    )


def _read(
    policy: Policy,
    offered: float,
    objective: Objective,
    measured: ServiceTime,
    times: Sequence[Floats],
    seed: int,
) -> Reading:
    if offered >= 1 and policy.queue_bound is None:
        nothing = math.nan
        return Reading(policy, offered, "misses", math.inf, math.inf, math.inf, 0, 1.0, nothing, math.inf, 0.0)
    runs = [simulate(arrivals, measured, policy, seed + k) for k, arrivals in enumerate(times)]
    reached = [objective.reached_s(run) for run in runs]
    summaries = [run.summary() for run in runs]
    mean, half = math.fsum(reached) / len(reached), math.inf
    if math.isfinite(mean):
        half = t_quantile(0.975, len(reached) - 1) * float(np.std(reached, ddof=1)) / math.sqrt(len(reached))
    low, high = (mean - half, mean + half) if math.isfinite(half) else (min(reached), math.inf)
    verdict = "meets" if high <= objective.limit_s else "misses" if low > objective.limit_s else "unsure"
    return Reading(
        policy=policy,
        load=offered,
        verdict=verdict,
        reached_s=mean,
        low_s=low,
        high_s=high,
        seeds_met=sum(value <= objective.limit_s for value in reached),
        cost=_mean([summary.utilisation for summary in summaries]),
        mean_batch=_mean([summary.mean_batch for summary in summaries]),
        mean_wait_s=_mean([summary.mean_wait_s for summary in summaries]),
        refused=sum(summary.refused for summary in summaries) / sum(summary.offered for summary in summaries),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _reason(chosen: Reading | None, closest: Reading, objective: Objective) -> str:
    limit, name = f"{1e3 * objective.limit_s:g} ms", f"p{objective.percent}"
    interval = f"{1e3 * closest.low_s:.3g} to {1e3 * closest.high_s:.3g} ms"
    if chosen is not None:
        return (
            f"{chosen.policy}: {name} {1e3 * chosen.reached_s:.3g} ms ({interval}) is within {limit}, "
            f"for {100 * chosen.cost:.1f} % of the server's time"
        )
    if closest.load >= 1 and closest.policy.queue_bound is None:
        return f"every queue grows for ever: the lowest load is {closest.load:.2f}, expected below 1"
    if not math.isfinite(closest.high_s):
        return f"closest is {closest.policy}: it refuses {100 * closest.refused:.2g} % of the requests"
    if closest.verdict == "unsure":
        return f"closest is {closest.policy}: its {name} is {interval}, which {limit} lies in; more requests may tell"
    return f"closest is {closest.policy}: its {name} is {1e3 * closest.reached_s:.3g} ms ({interval}), above {limit}"
