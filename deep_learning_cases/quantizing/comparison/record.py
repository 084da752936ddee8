"""The record of a comparison before anything was measured: data, methodology and machine, in words and numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from deep_learning_cases.ground import files, machine
from deep_learning_cases.measuring import timing
from deep_learning_cases.models.network import import_torch
from deep_learning_cases.quantizing.comparison.plan import Plan
from deep_learning_cases.quantizing.comparison.trial import TRACED_CALLS
from deep_learning_cases.quantizing.subjects import Subject

__all__ = ["CAVEATS", "SCHEMA", "busy", "started"]

SCHEMA = "deep-learning-cases/quantization/1"

CAVEATS = (
    (
        "These are times of one machine at one moment; ratios between versions travel better than microseconds, and"
        " neither is proof for another processor, thread count or runtime."
    ),
    (
        "tracemalloc sees what Python and NumPy allocate; PyTorch's and ONNX Runtime's own memory it does not see, the"
        " resident sizes do."
    ),
    (
        "The same seed gives the same state_dict hashes on one machine with the same thread count; another processor or"
        " another PyTorch may round differently in training and calibration, and then gives other hashes."
    ),
    (
        "A small network's pass is mostly the framework's own work per layer, which int8 does not make smaller; the"
        " larger the batch, the more the arithmetic counts."
    ),
)


def started(subject: Subject, plan: Plan, seed: int) -> dict[str, Any]:
    """The record of ``subject`` compared by ``plan``, with everything that stands before the first version is made."""
    test = subject.dataset.test
    return {
        "schema": SCHEMA,
        "created_at": machine.utc_now(),
        "partial": False,
        "stopped": None,
        "seed": seed,
        "data": {
            "name": subject.name,
            "source": subject.source,
            "classes": subject.classes,
            "input_shape": list(subject.input_shape),
            "train_images": len(subject.dataset.train.labels),
            "calibration_images": len(subject.dataset.calibration.labels),
            "test_images": len(test.labels),
            "test_sha256": files.sha256_bytes(test.images.tobytes() + test.labels.tobytes()),
            "labels": test.labels.tolist(),
        },
        "network": {"name": subject.network_name, "epochs": subject.epochs, "qat_epochs": subject.qat_epochs},
        "methodology": _methodology(plan),
        "environment": machine.environment(),
        "gpu": _gpu(),
        "skipped": {},
        "configs": {},
        "runs": [],
        "caveats": list(CAVEATS),
    }


def _methodology(plan: Plan) -> dict[str, Any]:
    return {
        "boundary": (
            "one forward pass with the input already where the network reads it; loading, drawing the input, copying"
            " the result and reading memory are outside the timer"
        ),
        "unit": "microseconds per batch",
        "input": "uniform random float32 in [0, 1), drawn anew before each pass from the seed",
        "percentiles": (
            "linear interpolation between ranks (NumPy's default, type 7) of all rounds' samples merged;"
            " nearest_rank: the ceil(p n)-th smallest (type 1)"
        ),
        "comparison": "one ratio of medians per round, Student's t interval of their logarithms, 95 %",
        "memory": (
            "rss: resident size by psutil before the first pass and the largest after any pass; peak_rss: the whole"
            f" process's high-water mark; tracemalloc: peak over {TRACED_CALLS} passes after all timings, Python and"
            " NumPy only, PyTorch's memory not seen"
        ),
        "garbage_collector": timing.GARBAGE_COLLECTOR,
        "rounds": plan.rounds,
        "warmups": plan.warmups,
        "iterations": plan.iterations,
        "batch_sizes": plan.batch_sizes,
        "threads": plan.threads,
        "default_threads": plan.default_threads,
        "pin": plan.pin,
        "order": [],
    }


def _gpu() -> dict[str, Any]:
    cuda = import_torch().cuda
    if cuda.is_available():
        return {"present": True, "name": str(cuda.get_device_name(0)), "reason": None}
    return {
        "present": False,
        "name": None,
        "reason": "PyTorch finds no CUDA device here: float32, float16 and bfloat16 left out",
    }


def busy(runs: Sequence[Mapping[str, Any]], threads: Sequence[int]) -> list[str]:
    """A caveat where more was waiting for the processors than they can serve, beside our own threads; else nothing.

    From the load averages over one minute that stand in the runs.
    """
    loads = sorted(run["load_average"][0] for run in runs if run["load_average"])
    cores = machine.usable_cores()
    if not loads or loads[len(loads) // 2] <= cores + max(threads, default=1):
        return []
    caveat = (
        f"Other work was running: the load average was {loads[len(loads) // 2]:.1f} on {cores} usable cores. High"
        " percentiles and several threads tell of that work, not of the versions; measure again on a quiet machine."
    )
    return [caveat]
