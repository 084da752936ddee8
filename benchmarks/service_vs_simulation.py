"""The real service against the simulation that is fed with its measured service times, at three rates.

    python -m benchmarks.service_vs_simulation [--seconds S] [--seed K]

The service runs a slow model (a batch of 8 in about 30 ms) with batches of at most 8 and a longest wait of 5 ms.  A
closed loop finds its capacity; then Poisson arrivals come at 30, 60 and 85 % of it.  The simulation gets the very same
arrival times and draws service times, per batch size: from closed loops of 1 to 8 clients ("calm"), from the batches of
that very run ("same run"), and from those with the machine as slow at each moment as it was then ("same moments").
"""

import argparse
import bisect
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import _deep_model
from deep_learning_cases import batching, load
from deep_learning_cases.ground import files, machine
from deep_learning_cases.serving import process
from deep_learning_cases.serving.load import report, starts
from deep_learning_cases.serving.load.send import Fate

RESULT = Path(__file__).resolve().parent / "results" / "service_vs_simulation.json"
SHARES = (0.3, 0.6, 0.85)
CALM_S = 2.0
PERCENTS = (50, 95, 99)

Row = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Print the tables, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_vs_simulation", description="three rates")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each rate (20)")
    parser.add_argument("--seed", type=int, default=1729)
    arguments = parser.parse_args(argv)
    with files.scratch_folder() as folder:
        layers = _deep_model.build(folder / "deep.onnx")
        result = measure(folder / "deep.onnx", arguments.seconds, arguments.seed) | {"layers": layers}
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    print("\n".join(lines(result)))
    print(f"written to {RESULT}")
    return 0


def measure(model: Path, seconds: float, seed: int) -> Row:
    """Everything measured, then everything simulated."""
    bodies = load.make_bodies(seed=seed)
    policy = _deep_model.POLICY
    calm: dict[int, list[float]] = {}
    runs: list[tuple[float, Any, list[Fate]]] = []
    with process.serving(_deep_model.settings(model)) as served:
        for clients in range(1, policy.max_batch + 1):
            _add_runs(calm, load.send(served.url, bodies, concurrency=clients, seconds=min(CALM_S, seconds)))
        closed = load.send(served.url, bodies, concurrency=2 * policy.max_batch, seconds=min(5.0, seconds))
        capacity = report.summary(closed)["answered_per_s"]
        for share in SHARES:
            starts_s = starts.intended_starts_s("poisson", share * capacity, seconds, seed)
            runs.append((share, starts_s, load.send(served.url, bodies, starts_s=starts_s)))
    rows = []
    for share, starts_s, fates in runs:
        own: dict[int, list[float]] = {}
        _add_runs(own, fates)
        moments = _moments(fates, own)
        all_sizes = calm | own  # a size that a low rate never fills is taken from the calm loops
        rows.append(
            {
                "share": share,
                "rate_per_s": share * capacity,
                "real": _real(fates),
                "simulated": {
                    "calm": _simulated(starts_s, batching.Measured(calm), seed),
                    "same run": _simulated(starts_s, batching.Measured(all_sizes), seed),
                    "same moments": _at_its_moment(starts_s, all_sizes, moments),
                },
                "load": report.summary(fates),
                "run_autocorrelation": _autocorrelation([moment.slowness for moment in moments]),
                "mean_run_ms": {size: 1e3 * float(np.mean(times)) for size, times in sorted(own.items())},
            }
        )
    return {
        "policy": str(policy),
        "capacity_per_s": capacity,
        "calm_mean_run_ms": {size: 1e3 * float(np.mean(times)) for size, times in sorted(calm.items())},
        "rates": rows,
        "environment": machine.environment(),
    }


def _add_runs(runs: dict[int, list[float]], fates: Sequence[Fate]) -> None:
    """Seconds by batch size; a batch counts once for each of its requests, which leaves its distribution as it is."""
    for fate in fates:
        if fate.batch_size is not None:
            runs.setdefault(fate.batch_size, []).append(fate.server_ms["run"] / 1e3)


class Moment(NamedTuple):
    """One real batch: from when to when it ran, and how slow the machine was: run time over the mean of its size."""

    begun_s: float
    ended_s: float
    slowness: float


def _moments(fates: Sequence[Fate], runs_s: dict[int, list[float]]) -> list[Moment]:
    """Every batch in order.

    The requests of one batch report the very same time, and so become one.  It counts as ended when its first answer
    was read, the few milliseconds of the way back included.
    """
    ended: dict[tuple[int, float], float] = {}
    for fate in fates:
        if fate.batch_size is not None:
            batch = (fate.batch_size, fate.server_ms["run"])
            ended[batch] = min(ended.get(batch, fate.done_s), fate.done_s)
    return sorted(
        Moment(done_s - run_ms / 1e3, done_s, run_ms / 1e3 / float(np.mean(runs_s[size])))
        for (size, run_ms), done_s in ended.items()
    )


def _autocorrelation(slowness: list[float]) -> float:
    """Of neighbouring batches: 0 for the independent draws of a simulation, near 1 where slow ones come together."""
    return float(np.corrcoef(slowness[:-1], slowness[1:])[0, 1]) if len(slowness) > 2 else 0.0


def _at_its_moment(starts_s: Any, runs_s: dict[int, list[float]], moments: list[Moment]) -> Row:
    """Simulated with the mean time of each batch's size, on a machine as slow at each moment as the real one was.

    A batch has ended when enough work is done: 1 / slowness of it per second while a real batch ran, 1 per second in
    between.  So a stall stays where it was and as long as it was, whatever batch it meets.  (With the slowness of the
    real batch of the same number stalls wander, and with that of the real batch at its begin they multiply: a stall of
    a second in a small batch becomes several in a large one, and each batch that begins in it pays it anew.  Either
    makes a long queue longer still: both were up to 2.5 times too slow in some run.)
    """
    measured = batching.Measured(runs_s)
    begins_s = [moment.begun_s for moment in moments]

    def took_s(size: int, start_s: float) -> float:
        left_s, now_s = measured.mean_s(size), start_s
        place = max(0, bisect.bisect_right(begins_s, now_s) - 1)
        for begun_s, ended_s, slowness in moments[place:]:
            idle_s = max(0.0, begun_s - now_s)
            if idle_s >= left_s:
                break
            left_s, now_s = left_s - idle_s, now_s + idle_s
            slow_s = max(0.0, ended_s - now_s)
            if slow_s >= left_s * slowness:
                return now_s + left_s * slowness - start_s
            left_s, now_s = left_s - slow_s / slowness, now_s + slow_s
        return now_s + left_s - start_s

    return _row(*_serve(list(starts_s), took_s))


def _serve(arrivals_s: list[float], took_s: Callable[[int, float], float]) -> tuple[Any, Any, Any, int]:
    """The policy's rule as :mod:`~deep_learning_cases.batching.queueing` has it, with times that depend on the moment.

    Returns the waits, the times in the system and the batch sizes of those served, and how many were refused.
    """
    largest, longest_s, bound = (getattr(_deep_model.POLICY, key) for key in ("max_batch", "max_wait_s", "queue_bound"))
    waits_s, totals_s, sizes = [], [], []
    queue: list[float] = []
    free_s, refused = float("-inf"), 0
    coming = deque(arrivals_s)
    while coming or queue:
        while coming and coming[0] <= free_s:  # while the server was busy
            arrival_s = coming.popleft()
            if len(queue) < bound:
                queue.append(arrival_s)
            else:
                refused += 1
        if not queue:
            if not coming:
                break
            queue.append(coming.popleft())
        due_s = max(free_s, queue[0] + longest_s)
        while len(queue) < largest and coming and coming[0] <= due_s:
            queue.append(coming.popleft())
        start_s = due_s if len(queue) < largest else max(free_s, queue[largest - 1])
        batch, queue = queue[:largest], queue[largest:]
        free_s = start_s + took_s(len(batch), start_s)
        waits_s += [start_s - arrival_s for arrival_s in batch]
        totals_s += [free_s - arrival_s for arrival_s in batch]
        sizes += [len(batch)] * len(batch)
    return np.array(waits_s), np.array(totals_s), np.array(sizes), refused


def _real(fates: Sequence[Fate]) -> Row:
    """Milliseconds; a simulation knows ``wait`` and ``in_queue`` (wait and run), and nothing of the rest."""
    answered = [fate for fate in fates if fate.status == "200"]

    def part(*names: str) -> Any:
        return np.array([sum(fate.server_ms[name] for name in names) for fate in answered])

    total = part("total")
    client = np.array([1e3 * (fate.done_s - fate.intended_s) for fate in answered if fate.intended_s is not None])
    late = np.array([1e3 * (fate.sent_s - fate.intended_s) for fate in answered if fate.intended_s is not None])
    return {
        "requests": len(fates),
        "refused_or_lost": len(fates) - len(answered),
        "mean_batch": float(len(answered) / np.sum(1 / np.array([fate.batch_size for fate in answered]))),
        "wait_ms": _percentiles(part("wait")),
        "in_queue_ms": _percentiles(part("wait", "run")),
        "client_ms": _percentiles(client),
        "outside_ms": {
            "sent late": _percentiles(late),
            "decode and preprocess": _percentiles(part("decode", "preprocess")),
            "from the model back to the event loop": _percentiles(total - part("decode", "preprocess", "wait", "run")),
            "HTTP, both event loops, client": _percentiles(client - late - total),
        },
    }


def _simulated(starts_s: Any, service_time: batching.ServiceTime, seed: int) -> Row:
    result = batching.simulate(starts_s, service_time, _deep_model.POLICY, seed)
    served = result.accepted
    return _row(result.wait_s[served], result.time_in_system_s[served], result.batch_size[served], result.refused)


def _row(waits_s: Any, totals_s: Any, sizes: Any, refused: int) -> Row:
    return {
        "refused": refused,
        "mean_batch": float(len(sizes) / np.sum(1 / sizes)),
        "wait_ms": _percentiles(1e3 * waits_s),
        "in_queue_ms": _percentiles(1e3 * totals_s),
    }


def _percentiles(values: Any) -> dict[str, float]:
    """Mean and nearest-rank percentiles."""
    ordered = np.sort(values)
    ranks = {f"p{percent}": float(ordered[-(-percent * len(ordered) // 100) - 1]) for percent in PERCENTS}
    return {"mean": float(ordered.mean()), **ranks}


def lines(result: Row) -> list[str]:
    tail = f"{'p50':>8}{'p95':>8}{'p99':>8}"
    table = [
        f"{result['policy']}; capacity {result['capacity_per_s']:.0f}/s in a closed loop; milliseconds, nearest rank",
        f"{'load':>5}{'rate/s':>8}  {'':<29}{'batch':>7}{'wait mean':>11}{tail}{'wait+run mean':>15}{tail}",
    ]
    for row in result["rates"]:
        head = f"{100 * row['share']:>4.0f}%{row['rate_per_s']:>8.1f}  "
        table.append(f"{head}{'real service':<29}{_columns(row['real'])}")
        for name, simulated in row["simulated"].items():
            table.append(f"{'':>15}{'simulated, ' + name:<29}{_columns(simulated)}")
        table.append(f"{'':>15}{'client, intended start':<29}{'':>7}{'':>35}{_four(row['real']['client_ms'], 15)}")
    table += ["", f"{'what the simulation does not know':<46}{'mean':>8}{tail}"]
    for row in result["rates"]:
        for name, values in row["real"]["outside_ms"].items():
            table.append(f"{100 * row['share']:>4.0f}% {name:<40}{_four(values, 8)}")
    sizes = range(1, _deep_model.POLICY.max_batch + 1)
    table += ["", f"{'mean run ms by batch size':<26}" + "".join(f"{size:>7}" for size in sizes)]
    for name, runs in (
        ("calm", result["calm_mean_run_ms"]),
        *((f"at {100 * row['share']:.0f} %", row["mean_run_ms"]) for row in result["rates"]),
    ):
        cells = [f"{runs[size]:.1f}" if size in runs else "-" for size in sizes]
        table.append(f"{name:<26}" + "".join(f"{cell:>7}" for cell in cells))
    neighbours = ", ".join(f"{row['run_autocorrelation']:.2f} at {100 * row['share']:.0f} %" for row in result["rates"])
    return [*table, f"correlation of the run times of neighbouring batches: {neighbours}; in independent draws 0"]


def _columns(row: Row) -> str:
    return f"{row['mean_batch']:>7.2f}{_four(row['wait_ms'], 11)}{_four(row['in_queue_ms'], 15)}"


def _four(values: dict[str, float], first: int) -> str:
    return f"{values['mean']:>{first}.2f}" + "".join(f"{values[f'p{percent}']:>8.2f}" for percent in PERCENTS)


if __name__ == "__main__":
    sys.exit(main())
