"""The batching simulator beside SimPy: the same arrivals, the same policy, the answers compared, the time of each.

    python -m benchmarks.batching [--rounds N] [--requests N] [--simpy-requests N] [--large N]

SimPy is needed for this benchmark only: pip install simpy.  It is written in two ways: as its guide models customers,
with a process for every request that waits for its answer, and as lean as it can be, with one process that brings
requests and one that serves them.  Times are processor time of this process (everything here is one thread), so that
other work on the machine counts less; sides alternate in going first, and the median of the rounds counts.  Ours is
timed end to end (random arrivals, the run, the exact summary); SimPy gets its arrivals as a list and only appends each
wait to a list.  The waits of all three are compared request by request.

Then a fresh process sums up a run of a hundred million requests, for its peak memory, and 200 seeds show how well the
standard error of the mean wait covers.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tqdm import tqdm

from deep_learning_cases.batching import (
    Constant,
    Exponential,
    Linear,
    Poisson,
    Policy,
    ServiceTime,
    arrival_times_s,
    load,
    simulate,
    summarise,
)
from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.ground import files, machine

RESULT = Path(__file__).resolve().parent / "results" / "batching.json"
SLOW_FACTOR, LEAST_PER_SECOND = 20.0, 1_000_000.0

LINEAR = Linear(0.0018, 0.0002)
CASES: dict[str, tuple[float, ServiceTime, Policy]] = {
    "one by one, constant": (400.0, Constant(0.002), Policy(1)),
    "greedy, light": (100.0, LINEAR, Policy(32)),
    "greedy, middle": (1000.0, LINEAR, Policy(32)),
    "greedy, heavy": (3000.0, LINEAR, Policy(32)),
    "greedy of 4": (900.0, LINEAR, Policy(4)),
    "timed, light": (100.0, LINEAR, Policy(32, 0.002)),
    "timed, middle": (1000.0, LINEAR, Policy(32, 0.005)),
    "timed, heavy": (3000.0, LINEAR, Policy(32, 0.005)),
    "bounded, overload": (5000.0, LINEAR, Policy(32, 0.005, 64)),
    "bounded, light": (100.0, LINEAR, Policy(32, 0.0, 64)),
}

LARGE = """
import sys, time
from deep_learning_cases import machine
from deep_learning_cases.batching import Linear, Poisson, Policy, summarise
before = machine.peak_rss()[0]
started = time.perf_counter()
summary = summarise(Poisson(1000.0), Linear(0.0018, 0.0002), Policy(32, 0.005), int(sys.argv[1]))
seconds = time.perf_counter() - started
print(seconds, before, machine.peak_rss()[0], summary.mean_time_in_system_s, summary.standard_error_s)
"""


def main(argv: list[str] | None = None) -> int:
    """Print the tables, write the JSON; 1 if greedy or timed policies miss a target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batching", description="the simulator beside SimPy")
    parser.add_argument("--rounds", type=int, default=5, help="(5)")
    parser.add_argument("--requests", type=int, default=1_000_000, help="per run of ours (1,000,000)")
    parser.add_argument("--simpy-requests", type=int, default=50_000, help="per run of SimPy (50,000)")
    parser.add_argument("--large", type=int, default=100_000_000, help="requests of the large run, 0 for none (1e8)")
    arguments = parser.parse_args(argv)
    try:
        import simpy
    except ImportError:
        print("benchmarks.batching: SimPy is not installed; install it with: pip install simpy", file=sys.stderr)
        return 3
    result: dict[str, Any] = {
        "environment": machine.environment(),
        "simpy": simpy.__version__,
        "rounds": arguments.rounds,
        "requests": {"ours": arguments.requests, "simpy": arguments.simpy_requests},
        "cases": compare(arguments.rounds, arguments.requests, arguments.simpy_requests),
        "large": large(arguments.large) if arguments.large else None,
        "coverage": coverage(200),
    }
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    return report(result)


def compare(rounds: int, requests: int, simpy_requests: int) -> list[dict[str, Any]]:
    """Requests per second of all sides, by case; the answers on the same arrivals must be equal."""
    seconds: dict[tuple[str, str], list[float]] = {}
    runs = [(name, number) for number in range(rounds) for name in CASES]
    for name, number in tqdm(runs, desc="rounds", unit="case", disable=None, file=sys.stderr, leave=False):
        rate, service, policy = CASES[name]
        times = arrival_times_s(Poisson(rate), simpy_requests, number).tolist()
        sides: dict[str, Callable[[], Any]] = {
            "ours": partial(summarise, Poisson(rate), service, policy, requests, number),
            "simpy": partial(simpy_guide, times, service, policy),
            "simpy_lean": partial(simpy_lean, times, service, policy),
        }
        expected = simulate(times, service, policy).wait_s
        for side in sorted(sides, reverse=number % 2 == 1):
            started = time.process_time()
            answer = sides[side]()
            seconds.setdefault((name, side), []).append(time.process_time() - started)
            if side != "ours":
                check_equal(expected, answer, name)
    return [row(name, seconds, requests, simpy_requests) for name in CASES]


def check_equal(ours: Floats, theirs: list[float], name: str) -> None:
    """Every wait of every request that was let in, to a nanosecond."""
    served = ours[~np.isnan(ours)]
    if len(served) != len(theirs) or np.abs(served - theirs).max() > 1e-9:
        raise SystemExit(f"benchmarks.batching: {name}: the two simulators disagree; expected equal waits")


def row(name: str, seconds: dict[tuple[str, str], list[float]], requests: int, simpy_requests: int) -> dict[str, Any]:
    rate, service, policy = CASES[name]
    ours = requests / median(seconds[name, "ours"])
    simpy, lean = (simpy_requests / median(seconds[name, side]) for side in ("simpy", "simpy_lean"))
    return {
        "case": name,
        "rate_per_s": rate,
        "policy": str(policy),
        "load": load(rate, service, policy),
        "ours_per_s": ours,
        "simpy_per_s": simpy,
        "simpy_lean_per_s": lean,
        "times": ours / simpy,
        "times_lean": ours / lean,
        "cpu_seconds": {side: seconds[name, side] for side in ("ours", "simpy", "simpy_lean")},
    }


def simpy_guide(times: list[float], service: ServiceTime, policy: Policy) -> list[float]:
    """As SimPy's guide models customers: every request a process that waits for its answer, the queue a ``Store``."""
    import simpy

    env = simpy.Environment()
    store = simpy.Store(env)
    waits: list[float] = []

    def request(arrived: float) -> Generator[Any, Any, None]:
        answer = env.event()
        yield store.put((arrived, answer))
        waits.append((yield answer))

    def bring() -> Generator[Any, Any, None]:
        for arrived in times:
            yield env.timeout(arrived - env.now)
            if policy.queue_bound is None or len(store.items) < policy.queue_bound:
                env.process(request(env.now))

    def serve() -> Generator[Any, Any, None]:
        while True:
            taken = [(yield store.get())]
            while len(taken) < policy.max_batch:
                if store.items:
                    taken.append((yield store.get()))
                    continue
                left = taken[0][0] + policy.max_wait_s - env.now
                if left <= 0:
                    break
                following = store.get()
                done = yield following | env.timeout(left)
                if following not in done:
                    following.cancel()
                    break
                taken.append(done[following])
            begun = env.now
            yield env.timeout(service.mean_s(len(taken)))
            for arrived, answer in taken:
                answer.succeed(begun - arrived)

    env.process(bring())
    env.process(serve())
    env.run()
    return waits


def simpy_lean(times: list[float], service: ServiceTime, policy: Policy) -> list[float]:
    """As lean as SimPy allows: one process brings requests into a list, one serves them."""
    import simpy

    env = simpy.Environment()
    queue: list[float] = []
    waits: list[float] = []
    woken, busy = env.event(), False

    def bring() -> Generator[Any, Any, None]:
        nonlocal woken
        for arrived in times:
            yield env.timeout(arrived - env.now)
            if policy.queue_bound is not None and len(queue) >= policy.queue_bound:
                continue
            queue.append(env.now)
            if not busy and (len(queue) == 1 or len(queue) == policy.max_batch):
                woken.succeed()
                woken = env.event()

    def serve() -> Generator[Any, Any, None]:
        nonlocal busy
        while True:
            while not queue:
                yield woken
            if len(queue) < policy.max_batch and queue[0] + policy.max_wait_s > env.now:
                yield woken | env.timeout(queue[0] + policy.max_wait_s - env.now)
            taken = queue[: policy.max_batch]
            del queue[: policy.max_batch]
            waits.extend(env.now - arrived for arrived in taken)
            busy = True
            yield env.timeout(service.mean_s(len(taken)))
            busy = False

    env.process(bring())
    env.process(serve())
    env.run()
    return waits


def large(requests: int) -> dict[str, Any]:
    """Time and peak memory of one streamed summary in a process of its own."""
    command = [sys.executable, "-c", LARGE, str(requests)]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    seconds, before, after, mean, error = (float(word) for word in words)
    return {
        "requests": requests,
        "seconds": seconds,
        "per_s": requests / seconds,
        "peak_rss_bytes_before": int(before),
        "peak_rss_bytes": int(after),
        "mean_time_in_system_s": mean,
        "standard_error_s": error,
    }


def coverage(seeds: int) -> list[dict[str, Any]]:
    """Known mean waits: z-scores over seeds, by length of the run."""
    known = [
        ("M/M/1, load 0.5", 0.5, Exponential(1.0), Policy(1), 1.0, 50_000),
        ("M/M/1, load 0.8", 0.8, Exponential(1.0), Policy(1), 4.0, 20_000),
        ("M/M/1, load 0.8", 0.8, Exponential(1.0), Policy(1), 4.0, 200_000),
        ("M/M/1, load 0.95", 0.95, Exponential(1.0), Policy(1), 19.0, 200_000),
        ("M/D/1, load 0.8", 0.8, Constant(1.0), Policy(1), 2.0, 100_000),
        ("greedy of 4, load 0.8", 3.2, Constant(1.0), Policy(4), 0.8795362, 100_000),
    ]
    rows = []
    for name, rate, service, policy, truth, requests in tqdm(known, desc="coverage", disable=None, file=sys.stderr):
        found = [summarise(Poisson(rate), service, policy, requests, seed) for seed in range(seeds)]
        z = np.array([(summary.mean_wait_s - truth) / summary.standard_error_s for summary in found])
        plain = np.array([np.sqrt(summary.counted / (summary.independent or np.nan)) for summary in found])
        rows.append(
            {
                "case": name,
                "requests": requests,
                "seeds": seeds,
                "sd_of_z": float(z.std()),
                "within_1.96": float(np.mean(np.abs(z) < 1.96)),
                "within_3": float(np.mean(np.abs(z) < 3)),
                "plain_sd_of_z": float((z * plain).std()),
            }
        )
    return rows


def report(result: dict[str, Any]) -> int:
    print(f"{'requests/s':<22}{'load':>6}{'ours':>12}{'SimPy':>10}{'times':>7}{'SimPy lean':>12}{'times':>7}")
    missed = []
    for case in result["cases"]:
        print(
            f"{case['case']:<22}{case['load']:>6.2f}{case['ours_per_s']:>12,.0f}{case['simpy_per_s']:>10,.0f}"
            f"{case['times']:>7.0f}{case['simpy_lean_per_s']:>12,.0f}{case['times_lean']:>7.0f}"
        )
        promised = not case["case"].startswith("bounded")
        if promised and (case["times"] < SLOW_FACTOR or case["ours_per_s"] < LEAST_PER_SECOND):
            missed.append(case["case"])
    if result["large"]:
        run = result["large"]
        print(
            f"\n{run['requests']:,} requests streamed: {run['seconds']:.1f} s, {run['per_s']:,.0f}/s, peak memory "
            f"{run['peak_rss_bytes'] / 1e6:.0f} MB ({run['peak_rss_bytes_before'] / 1e6:.0f} MB before)"
        )
    print(f"\n{'standard error':<24}{'requests':>10}{'sd of z':>9}{'in 1.96':>9}{'in 3':>7}{'s/sqrt(n)':>11}")
    for case in result["coverage"]:
        print(
            f"{case['case']:<24}{case['requests']:>10,}{case['sd_of_z']:>9.2f}{case['within_1.96']:>9.3f}"
            f"{case['within_3']:>7.3f}{case['plain_sd_of_z']:>11.1f}"
        )
    print(f"\nwrote {RESULT}")
    for name in missed:
        print(f"missed: {name}: expected {LEAST_PER_SECOND:,.0f} requests/s and {SLOW_FACTOR:g} times SimPy")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
