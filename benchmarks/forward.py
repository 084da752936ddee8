"""The NumPy forward pass beside PyTorch, ONNX Runtime and plain im2col: same weights, same images, one thread each.

    python -m benchmarks.forward [--processes N] [--rounds N] [--no-compile]

Every figure comes from fresh processes in which all engines sit side by side.  In each round every engine in turn runs
a short series on every batch size, in an order that rotates, so that a busy moment of the machine hits all alike; a
round counts with its median, and ratios are taken within a round.  Each engine gets its leanest call: PyTorch tensors
prepared beforehand in inference mode, ONNX Runtime its session directly.  All outputs are compared first.

The floor is the multiplications of the network at the fastest matrix product measured in the same process, plus the
NumPy calls at the price of the cheapest one.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from deep_learning_cases.ground import files, machine
from deep_learning_cases.measuring import fresh_process, timing
from deep_learning_cases.models import artefacts, conv, network
from deep_learning_cases.models.numpy_network import MULTIPLICATIONS, PlannedNetwork

RESULT = Path(__file__).resolve().parent / "results" / "forward.json"
OURS, EAGER, COMPILED, ORT, PLAIN = "NumPy, planned", "PyTorch eager", "torch.compile", "ONNX Runtime", "NumPy, im2col"
REPETITIONS = {1: 100, 8: 60, 32: 30, 128: 10}
"""Timings of one engine in one round, for each batch size."""
TIMES_FASTER = {1: 1.6, 8: 2.2, 32: 2.2, 128: 2.2}
"""Than PyTorch eager, at least."""
TIMES_SLOWER = 1.8
"""Than ONNX Runtime, at most."""
PRODUCTS = [(4, 33, 64), (16, 144, 32), (64, 16, 64), (32, 144, 64), (97, 128, 64), (128, 128, 32), (256, 256, 256)]
NOT_INHERITED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings that would make OpenBLAS take another kernel than the one it picks for this processor."""

Call = Callable[[Any], Any]


def main(argv: list[str] | None = None) -> int:
    """Print the table, write the JSON; 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward", description="the NumPy forward pass")
    parser.add_argument("--processes", type=int, default=3, help="fresh processes (3)")
    parser.add_argument("--rounds", type=int, default=40, help="rounds in each (40)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.in_this_process:
        print(json.dumps(measure(arguments.rounds, not arguments.no_compile)))
        return 0
    runs = [fresh_run(arguments.rounds, arguments.no_compile) for _ in range(arguments.processes)]
    result = {"created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "runs": runs, "summary": summary(runs)}
    RESULT.parent.mkdir(exist_ok=True)
    files.write_json(RESULT, result)
    return report(result)


def fresh_run(rounds: int, no_compile: bool) -> dict[str, Any]:
    """:func:`measure` in a new process with one thread for everything."""
    environment = {k: v for k, v in fresh_process.child_environment(1).items() if k not in NOT_INHERITED}
    command = [sys.executable, "-m", "benchmarks.forward", "--in-this-process", "--rounds", str(rounds)]
    command += ["--no-compile"] * no_compile
    checkout = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, env=environment, cwd=checkout, stdout=subprocess.PIPE, check=True, timeout=900)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(rounds: int, with_compile: bool) -> dict[str, Any]:
    """Round medians in microseconds per engine and batch size, with what the process runs on."""
    import torch
    from threadpoolctl import threadpool_info

    torch.set_num_threads(1)
    random = np.random.default_rng(1729)
    weights = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in conv.WEIGHT_SHAPES.items()}
    batches = {n: [random.random((n, 1, 8, 8), np.float32) for _ in range(8)] for n in REPETITIONS}
    with torch.inference_mode():
        engines, left_out = all_engines(torch, weights, batches, with_compile)
        differences = {n: compare(engines, batches[n][0], torch) for n in REPETITIONS}
        gc.collect()
        gc.freeze()  # the collection before each series has then little left to look at
        medians_us: dict[str, dict[int, list[float]]] = {name: {n: [] for n in REPETITIONS} for name in engines}
        names = list(engines)
        for turn in range(rounds):
            for n, repetitions in REPETITIONS.items():
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    inputs: list[Any] = batches[n]
                    if name in (EAGER, COMPILED):
                        inputs = [torch.from_numpy(batch) for batch in inputs]
                    series = timing.time_calls(engines[name], inputs, 5, repetitions)
                    medians_us[name][n].append(median(series.samples_us))
    ours = PlannedNetwork(weights)
    return {
        "environment": machine.environment(),
        "blas": [{k: v for k, v in pool.items() if k != "filepath"} for pool in threadpool_info()],
        "left_out": left_out,
        "largest_difference": differences,
        "gflops": matrix_gflops(),
        "call_us": cheapest_call_us(),
        "numpy_calls": {n: ours.numpy_calls(n) for n in REPETITIONS},
        "round_medians_us": medians_us,
        "load_average_after": machine.load_average(),
    }


def all_engines(
    torch: Any, weights: dict[str, Any], batches: dict[int, Any], with_compile: bool
) -> tuple[dict[str, Call], dict[str, str]]:
    """What runs here, and why the rest does not."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(artefacts.onnx_bytes(weights), options, providers=["CPUExecutionProvider"])
    model = network.from_weights(weights)
    engines: dict[str, Call] = {
        OURS: PlannedNetwork(weights),
        EAGER: model,
        ORT: lambda images: session.run(None, {"images": images})[0],
        PLAIN: conv.Network(weights),
    }
    left_out = {} if with_compile else {COMPILED: "not asked for"}
    if with_compile:
        try:
            compiled = torch.compile(model, dynamic=False)
            for n in batches:
                compiled(torch.from_numpy(batches[n][0]))
            engines[COMPILED] = compiled
        except Exception as error:  # whatever stops the compiler on this machine is the answer to report
            left_out[COMPILED] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return engines, left_out


def compare(engines: dict[str, Call], images: Any, torch: Any) -> float:
    """The largest difference between any engine's logits and PyTorch's; AssertionError beyond float32 rounding."""
    tensor = torch.from_numpy(images)
    expected = engines[EAGER](tensor).numpy()
    largest = 0.0
    for name, call in engines.items():
        logits = np.asarray(call(tensor if name in (EAGER, COMPILED) else images))
        largest = max(largest, float(np.abs(logits - expected).max()))
    assert largest <= 1e-5 * max(1.0, float(np.abs(expected).max())), f"the engines differ by {largest}"
    return largest


def matrix_gflops() -> float:
    """The fastest of several products: small ones that stay in the cache, and a large one."""
    rates = []
    for rows, depth, columns in PRODUCTS:
        left, right = np.ones((rows, depth), np.float32), np.ones((depth, columns), np.float32)
        out = np.empty((rows, columns), np.float32)
        fastest_us = min(timing.time_calls(lambda _: np.dot(left, right, out=out), (None,), 10, 500).samples_us)  # noqa: B023
        rates.append(2e-3 * rows * depth * columns / fastest_us)
    return max(rates)


def cheapest_call_us() -> float:
    """One NumPy call on next to nothing: the fastest of many series of a hundred."""
    left, out = np.ones(16, np.float32), np.ones(16, np.float32)
    maximum = np.maximum

    def hundred(_: None) -> None:
        for _turn in range(100):
            maximum(left, out, out=out)

    return min(timing.time_calls(hundred, (None,), 3, 200).samples_us) / 100


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per batch size: medians over all rounds of all processes, paired ratios and the floor."""
    rows = []
    gflops, call_us = max(run["gflops"] for run in runs), min(run["call_us"] for run in runs)
    for n in REPETITIONS:
        rounds = {name: in_all_runs(runs, name, n) for name in (OURS, EAGER, COMPILED, ORT, PLAIN)}
        present = {name: values for name, values in rounds.items() if values}
        floor_us = n * 2e-3 * MULTIPLICATIONS / gflops + at(runs[0]["numpy_calls"], n) * call_us
        rows.append(
            {
                "batch": n,
                "median_us": {name: round(median(values), 2) for name, values in present.items()},
                "fastest_round_us": {name: round(min(values), 2) for name, values in present.items()},
                "times_faster_than": {name: ratio(values, rounds[OURS]) for name, values in present.items()},
                "over_onnxruntime": ratio(rounds[OURS], rounds[ORT]),
                "over_onnxruntime_by_process": [
                    ratio(*(at(run["round_medians_us"][name], n) for name in (OURS, ORT))) for run in runs
                ],
                "floor_us": round(floor_us, 2),
                "over_floor": round(median(rounds[OURS]) / floor_us, 2),
            }
        )
    return rows


def in_all_runs(runs: list[dict[str, Any]], name: str, n: int) -> list[float]:
    """The round medians of one engine and batch size, run after run; empty if it ran nowhere."""
    return [us for run in runs for us in at(run["round_medians_us"].get(name, {}), n)]


def at(by_batch: dict[Any, Any], n: int) -> Any:
    """The entry of a batch size, whose key is text once it has been through JSON."""
    return by_batch.get(n, by_batch.get(str(n), []))


def ratio(first: list[float], second: list[float]) -> float:
    """The median of the ratios within a round."""
    return round(median(one / other for one, other in zip(first, second, strict=True)), 2)


def report(result: dict[str, Any]) -> int:
    """Print what was found; 1 if a target is missed."""
    run = result["runs"][0]
    kernels = sorted({pool["architecture"] for pool in run["blas"] if "architecture" in pool})
    print(f"{run['environment']['cpu']['model']}, one thread; BLAS kernel {', '.join(kernels) or 'not known'}")
    for name, why in run["left_out"].items():
        print(f"{name} left out: {why}")
    print(f"load average afterwards {result['runs'][-1]['load_average_after']}")
    names = list(result["summary"][0]["median_us"])
    print("\n| batch | " + " | ".join(f"{name}, us" for name in names) + " | floor, us |")
    print("|---" * (len(names) + 2) + "|")
    for row in result["summary"]:
        print(f"| {row['batch']} | " + " | ".join(f"{row['median_us'][name]:g}" for name in names), end="")
        print(f" | {row['floor_us']:g} |")
    print()
    missed = 0
    for row in result["summary"]:
        faster, slower = row["times_faster_than"][EAGER], row["over_onnxruntime"]
        kept = faster >= TIMES_FASTER[row["batch"]] and slower <= TIMES_SLOWER
        missed += not kept
        print(
            f"batch {row['batch']}: {faster}x faster than PyTorch eager (target {TIMES_FASTER[row['batch']]}), "
            f"{slower}x the time of ONNX Runtime (target {TIMES_SLOWER}, by process "
            f"{row['over_onnxruntime_by_process']}), {row['over_floor']}x the floor: {'kept' if kept else 'MISSED'}"
        )
    gflops, call_us = max(r["gflops"] for r in result["runs"]), min(r["call_us"] for r in result["runs"])
    calls = ", ".join(str(count) for count in run["numpy_calls"].values())
    print(
        f"floor: {2e-3 * MULTIPLICATIONS:.1f} kFLOP an image at {gflops:.0f} GFLOP/s, "
        f"and {call_us:.2f} us for each of {calls} NumPy calls"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
