"""The real service against the simulation that is fed with its measured service times, at three rates.

    python -m benchmarks.service_vs_simulation [--seconds S] [--seed K]

The service runs a slow model (a batch of 8 in about 30 ms) with batches of at most 8 and a longest wait of 5 ms.  A
closed loop finds its capacity; then Poisson arrivals come at 30, 60 and 85 % of it.  The simulation gets the very same
arrival times and draws service times, per batch size: from closed loops of 1 to 8 clients ("calm"), from the batches of
that very run ("same run"), and from those in the order in which they came, slow ones together ("in order").
"""

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _deep_model
from deep_learning_cases import batching, files, load, load_report, load_starts, machine, service_process
from deep_learning_cases.load import Fate

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
    with service_process.serving(_deep_model.settings(model)) as served:
        for clients in range(1, policy.max_batch + 1):
            _add_runs(calm, load.send(served.url, bodies, concurrency=clients, seconds=min(CALM_S, seconds)))
        closed = load.send(served.url, bodies, concurrency=2 * policy.max_batch, seconds=min(5.0, seconds))
        capacity = load_report.summary(closed)["answered_per_s"]
        for share in SHARES:
            starts_s = load_starts.intended_starts_s("poisson", share * capacity, seconds, seed)
            runs.append((share, starts_s, load.send(served.url, bodies, starts_s=starts_s)))
    rows = []
    for share, starts_s, fates in runs:
        own: dict[int, list[float]] = {}
        _add_runs(own, fates)
        slowness = _slowness(fates, own)
        all_sizes = calm | own  # a size that a low rate never fills is taken from the calm loops
        rows.append(
            {
                "share": share,
                "rate_per_s": share * capacity,
                "real": _real(fates),
                "simulated": {
                    "calm": _simulated(starts_s, batching.Measured(calm), seed),
                    "same run": _simulated(starts_s, batching.Measured(all_sizes), seed),
                    "same run in order": _simulated(starts_s, _InOrder(all_sizes, slowness), seed),
                },
                "load": load_report.summary(fates),
                "run_autocorrelation": _autocorrelation(slowness),
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


def _slowness(fates: Sequence[Fate], runs_s: dict[int, list[float]]) -> list[float]:
    """Of every batch in the order they ended: its run time over the mean of its size.

    The requests of one batch report the very same time, and so become one.
    """
    answered = sorted((fate for fate in fates if fate.batch_size is not None), key=lambda fate: fate.done_s)
    batches = list(dict.fromkeys((fate.batch_size or 0, fate.server_ms["run"]) for fate in answered))
    return [run_ms / 1e3 / float(np.mean(runs_s[size])) for size, run_ms in batches]


def _autocorrelation(slowness: list[float]) -> float:
    """Of neighbouring batches: 0 for the independent draws of a simulation, near 1 where slow ones come together."""
    return float(np.corrcoef(slowness[:-1], slowness[1:])[0, 1]) if len(slowness) > 2 else 0.0


class _InOrder:
    """The mean time of the batch's size, times the slowness of the real batch with the same number in the run.

    Slow stretches of the machine so stay together, as they were; independent draws spread them evenly.
    """

    def __init__(self, runs_s: dict[int, list[float]], slowness: list[float]) -> None:
        self._measured, self._slowness = batching.Measured(runs_s), slowness

    def mean_s(self, batch: int) -> float:
        return self._measured.mean_s(batch)

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Any:
        draw = self.sampler(rng, batch)
        return np.array([draw(batch) for _ in range(count)])

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Any:  # noqa: ARG002 - nothing is random here
        means = [self.mean_s(max(1, batch)) for batch in range(max_batch + 1)]
        order = itertools.cycle(self._slowness)
        return lambda batch: means[batch] * next(order)


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
    return {
        "refused": result.refused,
        "mean_batch": float(np.count_nonzero(served) / np.sum(1 / result.batch_size[served])),
        "wait_ms": _percentiles(1e3 * result.wait_s[served]),
        "in_queue_ms": _percentiles(1e3 * result.time_in_system_s[served]),
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
