"""How often does a 95 % interval hold what it is for?

    python -m benchmarks.coverage [PART ...] [--seeds N]

Part ``load``: the intervals that ``dlcases load`` prints.  A simulated service with the policy batch 8, wait 5 ms gets
Poisson requests for 10 s, many times over; the intervals of the median and of p95 are held against the percentiles of
one run of four million requests.  Beside them the order-statistic interval for independent samples looks at the same
latencies.  Two services: one that answers 2,350 requests a second, so that 10 s hold much, and one that answers 250,
also with runs of 100 s.  The times of a batch vary by 10 %.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from deep_learning_cases import batching
from deep_learning_cases.ground import files
from deep_learning_cases.measuring import stats
from deep_learning_cases.serving.load.interval import Latencies

RESULTS = Path(__file__).resolve().parent / "results"

LOADS = (0.3, 0.6, 0.8, 0.9)
POLICY = batching.Policy(8, 0.005)
CASES = {"fast": (0.0018, 0.0002, 10.0), "slow": (0.012, 0.0025, 10.0), "slow, longer": (0.012, 0.0025, 100.0)}
"""Seconds of a batch, of each request in it, and of a run."""
VARIATION = 0.1
LONG_RUN = 4_000_000
PERCENTS = (50, 95)
MOST_WRONG = 0.09
"""Of all runs of a case: 5 %, and three standard deviations of what 300 runs show."""


def main(argv: list[str] | None = None) -> int:
    """Print each part's table, write its JSON; 1 if a part is not as promised."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description="coverage of 95 % intervals")
    parser.add_argument("parts", metavar="PART", nargs="*", choices=[*PARTS, []], help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--seeds", type=int, default=300, help="runs of each case (300)")
    arguments = parser.parse_args(argv)
    RESULTS.mkdir(exist_ok=True)
    kept = [PARTS[name](arguments.seeds) for name in arguments.parts or PARTS]
    return 0 if all(kept) else 1


def load(seeds: int) -> bool:
    """Table, JSON; whether no case has more wrong intervals than its nominal share."""
    rows = [
        row
        for name, (base_s, per_request_s, seconds) in CASES.items()
        for share in LOADS
        for row in _case(name, _service(base_s, per_request_s), share, seconds, seeds)
    ]
    path = RESULTS / "coverage_load.json"
    files.write_json(path, {"policy": str(POLICY), "nominal": 0.95, "seeds": seeds, "rows": rows})
    print(f"{POLICY}; {seeds} runs of each case: 95 % intervals that hold the long-run percentile")
    print(f"{'service':<13}{'load':>5}{'':>5}{'requests':>9}{'long run':>11}{'as if independent':>19}"
          f"{'printed':>9}{'of them right':>15}{'wrong, of all runs':>20}")  # fmt: skip
    for row in rows:
        right = f"{100 * row['right'] / row['printed']:.1f} %" if row["printed"] else "-"
        print(f"{row['service']:<13}{row['load']:>5}{'p' + str(row['percent']):>5}{row['requests']:>9}"
              f"{row['long_run_ms']:>8.2f} ms{100 * row['independent_right'] / seeds:>17.1f} %{row['printed']:>9}"
              f"{right:>15}{100 * row['wrong'] / seeds:>18.1f} %")  # fmt: skip
    worst = max(row["wrong"] / seeds for row in rows)
    kept = worst <= MOST_WRONG
    print(
        f"most wrong: {100 * worst:.1f} % of a case's runs, at most {100 * MOST_WRONG:g} %: {'kept' if kept else 'NO'}"
    )
    print(f"written to {path}")
    return bool(kept)


def _service(base_s: float, per_request_s: float) -> batching.Measured:
    noise = np.exp(np.random.default_rng(1).normal(0, VARIATION, (POLICY.max_batch, 4000)))
    return batching.Measured(
        {size: (base_s + per_request_s * size) * noise[size - 1] for size in range(1, POLICY.max_batch + 1)}
    )


def _case(name: str, service: batching.Measured, share: float, seconds: float, seeds: int) -> list[dict[str, Any]]:
    """One service at one load: a row for each percentile."""
    rate = share * POLICY.max_batch / service.mean_s(POLICY.max_batch)
    endless = batching.summarise(batching.Poisson(rate), service, POLICY, LONG_RUN, seed=10**6)
    rows = [
        {
            "service": name, "load": share, "percent": percent, "seconds": seconds, "requests": round(rate * seconds),
            "long_run_ms": 1e3 * getattr(endless, f"time_in_system_p{percent}_s"),
            "printed": 0, "right": 0, "wrong": 0, "independent_right": 0,
        }
        for percent in PERCENTS
    ]  # fmt: skip
    for seed in tqdm(range(seeds), desc=f"{name}, load {share}", disable=None, leave=False):
        times_s = batching.arrival_times_s(batching.Poisson(rate), round(rate * seconds * 1.3) + 50, seed)
        result = batching.simulate(times_s[times_s < seconds], service, POLICY, seed)
        values = 1e3 * result.time_in_system_s
        latencies = Latencies(values)
        for row in rows:
            alone = stats.percentile_interval(values.tolist(), row["percent"] / 100)
            row["independent_right"] += _holds(alone.low, alone.high, row["long_run_ms"])
            found = latencies.interval(row["percent"])
            if found.low is not None:
                right = _holds(found.low, found.high, row["long_run_ms"])
                row["printed"] += 1
                row["right" if right else "wrong"] += 1
    return rows


def _holds(low: float | None, high: float | None, value: float) -> bool:
    return low is not None and high is not None and low <= value <= high


PARTS: dict[str, Callable[[int], bool]] = {"load": load}

if __name__ == "__main__":
    sys.exit(main())
