"""How often does a comparison cry wolf?  Two equal models, simulated, with processes that differ by a known amount.

    python -m benchmarks.false_alarm [--trials N] [--seed S]

Every trial draws 3 rounds of 100 timings for each of two models that are exactly as fast.  A timing is the product of
what its process happened to get (log-normal, standard deviation 0, 1, 2 or 5 %) and its own noise (log-normal 5 %, one
call in 50 one and a half to three times as long).  Then two methods with a nominal 5 % look at the same timings: the
library's t interval over per-round log ratios, and a bootstrap of the pooled timings as most scripts do it.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from deep_learning_cases.ground import files
from deep_learning_cases.measuring import stats

RESULT = Path(__file__).resolve().parent / "results" / "false_alarm.json"
NOISE_PERCENT = (0, 1, 2, 5)
ROUNDS, SAMPLES = 3, 100
CONFIDENCE = 0.95
LIMIT = 0.07
RESAMPLES = 400

Array = NDArray[np.float64]


def main(argv: list[str] | None = None) -> int:
    """Print the table, write the JSON; 1 if the library's rate is above the limit anywhere."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_alarm", description="false alarms at nominal 5 %")
    parser.add_argument("--trials", type=int, default=10_000, help="for the t interval (10000)")
    parser.add_argument("--bootstrap-trials", type=int, default=1000, help="for the slower bootstrap (1000)")
    parser.add_argument("--seed", type=int, default=1729)
    arguments = parser.parse_args(argv)
    rows = [
        row(percent, arguments.trials, arguments.bootstrap_trials, np.random.default_rng([arguments.seed, percent]))
        for percent in NOISE_PERCENT
    ]
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(
        RESULT,
        {
            "nominal": round(1 - CONFIDENCE, 6), "limit": LIMIT, "rounds": ROUNDS, "samples_per_round": SAMPLES,
            "seed": arguments.seed, "resamples": RESAMPLES, "rows": rows,
        },
    )  # fmt: skip
    print(f"False alarms at nominal 5 %, {ROUNDS} rounds of {SAMPLES} timings (exact 95 % intervals)")
    print("processes differ by   per-round t (ours)     pooled bootstrap")
    for line in rows:
        print(
            f"{line['process_sd_percent']:>17} %   {_shown(line['per_round_t'])}   {_shown(line['pooled_bootstrap'])}"
        )
    worst = max(line["per_round_t"]["rate"] for line in rows)
    kept = worst <= LIMIT
    print(f"largest rate of ours: {100 * worst:.1f} %, limit {100 * LIMIT:.0f} %: {'kept' if kept else 'BROKEN'}")
    print(f"written to {RESULT}")
    return 0 if kept else 1


def row(percent: int, trials: int, bootstrap_trials: int, random: np.random.Generator) -> dict[str, Any]:
    """Both rates for one amount of noise between processes; the bootstrap looks at the first of the same trials."""
    alarms = {"per_round_t": 0, "pooled_bootstrap": 0}
    for trial in tqdm(range(max(trials, bootstrap_trials)), desc=f"{percent} %", disable=None, leave=False):
        a, b = draw(percent / 100, random), draw(percent / 100, random)
        if trial < trials:
            alarms["per_round_t"] += stats.compare(a.tolist(), b.tolist(), CONFIDENCE)["verdict"] != "inconclusive"
        if trial < bootstrap_trials:
            alarms["pooled_bootstrap"] += pooled_bootstrap_alarm(a.ravel(), b.ravel(), random)
    return {
        "process_sd_percent": percent,
        "per_round_t": _rate(alarms["per_round_t"], trials),
        "pooled_bootstrap": _rate(alarms["pooled_bootstrap"], bootstrap_trials),
    }


def draw(process_sd: float, random: np.random.Generator) -> Array:
    """Timings of one model in microseconds, shape (ROUNDS, SAMPLES); each round is a process of its own."""
    process = random.normal(0, process_sd, (ROUNDS, 1))
    own = random.normal(0, 0.05, (ROUNDS, SAMPLES))
    slow = np.where(random.random((ROUNDS, SAMPLES)) < 0.02, random.uniform(1.5, 3, (ROUNDS, SAMPLES)), 1)
    return 12 * np.exp(process + own) * slow


def pooled_bootstrap_alarm(a: Array, b: Array, random: np.random.Generator) -> bool:
    """Percentile bootstrap of the ratio of medians over all timings at once: does its interval miss 1?"""
    n = len(a)
    medians = [np.median(x[random.integers(0, n, (RESAMPLES, n))], axis=1) for x in (a, b)]
    low, high = np.quantile(medians[0] / medians[1], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return bool(low > 1 or high < 1)


def _rate(alarms: int, trials: int) -> dict[str, Any]:
    low, high = stats.proportion_interval(alarms, trials)
    return {"alarms": alarms, "trials": trials, "rate": alarms / trials, "low": low, "high": high}


def _shown(rate: dict[str, Any]) -> str:
    return f"{100 * rate['rate']:5.1f} % ({100 * rate['low']:.1f} to {100 * rate['high']:.1f})".ljust(22)


if __name__ == "__main__":
    sys.exit(main())
