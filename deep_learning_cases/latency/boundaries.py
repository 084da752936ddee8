"""The same network with more inside the timer: decoding and resizing the images, or a whole service.

``cases`` times the model alone.  Each function here gives one more part of the same record.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.ground.arguments import distinct_sizes, positive, whole
from deep_learning_cases.ground.progress import Progress, progress_steps
from deep_learning_cases.ground.threads import blas_threads
from deep_learning_cases.latency import record
from deep_learning_cases.latency.engine import Network, Settings
from deep_learning_cases.measuring import timing
from deep_learning_cases.serving import images

__all__ = ["POOL", "PREPROCESSING", "prepare", "preprocessing", "series"]

Row = dict[str, Any]

LEAST_TRIALS = 3
POOL = 8
"""Different images that the calls of a series take in turn."""

PREPROCESSING = (
    "With preprocessing: from just before the first image is decoded to the return of engine.run(batch). Included:"
    " decoding every image of the batch, one after the other in this process, resizing to 8 x 8, normalising, stacking,"
    " and the forward pass. Excluded: importing, loading the model, reading files, any queue or network."
)


def preprocessing(
    batches: Sequence[int],
    width: int,
    image_format: str = "jpeg",
    *,
    warmups: int = 8,
    trials: int = 60,
    seconds: float | None = None,
    clock: timing.Clock = time.perf_counter_ns,
    progress: Progress | None = None,
    **settings: Unpack[Settings],
) -> dict[str, Any]:
    """Time decoding, resizing, normalising and the forward pass together, batch size by batch size.

    ``width`` is of the square images, in pixels; they are made up (:func:`images.photo`), decode like photographs, and
    :data:`POOL` of them are taken in turn.  ``seconds`` bounds each series: where its first call shows that the trials
    would take longer, there are fewer, at least :data:`LEAST_TRIALS`, after a single warm-up, and ``trials_note`` says
    so.  The other arguments and failures are those of :func:`cases.latency_case`.

    Returns ``boundary`` in words, ``image`` (what was decoded) and ``results`` as in the record.
    """
    batches, network = distinct_sizes(batches), Network(**settings)
    pool = [images.photo(width, image_format, network.seed + number) for number in range(POOL)]
    results: dict[int, Row] = {}
    with (
        blas_threads(network.threads),
        network.opened() as measured,
        progress_steps(progress, len(batches)) as step,
    ):

        def call(encoded: list[bytes]) -> None:
            measured.run(prepare(encoded))

        for done, size in enumerate(batches):
            step(done, f"{image_format} {width} px, batch {size}")
            inputs = [[pool[(first + place) % POOL] for place in range(size)] for first in range(POOL)]
            results[size] = series(call, inputs, size, warmups, trials, seconds, clock, measured.synchronize)
        step(len(batches), "")
    return {
        "boundary": PREPROCESSING,
        "image": {
            "format": image_format,
            "width_px": width,
            "height_px": width,
            "mode": "RGB",
            "mean_bytes": round(statistics.fmean(map(len, pool))),
            "distinct_images": POOL,
        },
        "results": results,
    }


def prepare(encoded: Sequence[bytes]) -> NDArray[np.float32]:
    """Encoded images as one batch float32 (n, 1, 8, 8); InputError for one that cannot be decoded."""
    return np.stack([images.to_input(images.decode(content)) for content in encoded])


def series(
    call: Callable[[Any], object],
    inputs: Sequence[Any],
    size: int,
    warmups: int,
    trials: int,
    seconds: float | None,
    clock: timing.Clock,
    synchronize: Callable[[], object] | None = None,
) -> Row:
    """One row, cut short where the first calls tell that all of them would take longer than ``seconds``.

    At least one call is a warm-up, and two where there is time: the first alone may be a hundred times too slow to
    judge by.
    """
    warmups, trials = whole(warmups, "warmups", 0), whole(trials, "trials")
    seconds = None if seconds is None else positive(seconds, "seconds")
    warm_us: list[float] = []
    while len(warm_us) < min(max(1, warmups), 2) and (seconds is None or sum(warm_us) < 5e5 * seconds):
        warm_us += timing.time_calls(call, inputs[:1], 0, 1, clock, synchronize).samples_us
    room = None if seconds is None else int(1e6 * seconds / max(warm_us[-1], 1e-3))
    left_warmups, left_trials = max(0, warmups - len(warm_us)), trials
    if room is not None and warmups + trials > room:
        left_warmups, left_trials = 0, min(trials, max(LEAST_TRIALS, room - len(warm_us)))
    timings = timing.time_calls(call, [*inputs[1:], inputs[0]], left_warmups, left_trials, clock, synchronize)
    warm_us += timings.warmups_us
    row = record.row([us / 1000 for us in timings.samples_us], [us / 1000 for us in warm_us], size)
    if left_trials < trials or len(warm_us) < warmups:
        row["trials_note"] = (
            f"{len(warm_us)} warm-up(s) and {left_trials} trials instead of {warmups} and {trials}, as a call takes"
            f" {warm_us[-1] / 1e6:.3g} s and a series was given {seconds:g} s"
        )
    return row
