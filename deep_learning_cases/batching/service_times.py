"""How long a server takes for a batch: constants, distributions, or what was measured.

All times are seconds (float64).  Every kind hands out its times singly or as an array from the same random stream, so
that a loop over batches and a vectorised run see the same numbers.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from deep_learning_cases.batching.arrivals import Floats
from deep_learning_cases.errors import EvidenceError, InputError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import is_number, positive, settle, whole

__all__ = ["Constant", "Exponential", "Linear", "Measured", "Mix", "ServiceTime", "read_measured"]


class ServiceTime(Protocol):
    """How long the server takes for one batch of ``batch`` requests."""

    def mean_s(self, batch: int) -> float:
        """Mean seconds of a batch of ``batch`` requests."""

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Floats:
        """``count`` service times of batches of one size, shape (count,)."""
        ...

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Callable[[int], float]:
        """A function from batch size to the next service time: the same stream as :meth:`draw_s`, one at a time."""
        ...


@dataclass(frozen=True)
class Linear:
    """``base_s + per_request_s * m`` for a batch of m: a fixed cost per call and a cost per request."""

    base_s: float
    per_request_s: float

    def __post_init__(self) -> None:
        base_s = positive(self.base_s, "service time A of linear:A,B", zero=True)
        per_request_s = positive(self.per_request_s, "service time B of linear:A,B", zero=True)
        settle(self, base_s=base_s, per_request_s=per_request_s)
        positive(self.base_s + self.per_request_s, "service time A + B of linear:A,B")

    def mean_s(self, batch: int) -> float:
        """The one time of a batch, in seconds."""
        return self.base_s + self.per_request_s * batch

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Floats:  # noqa: ARG002
        """That time ``count`` times: nothing is drawn."""
        return np.full(count, self.mean_s(batch))

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Callable[[int], float]:  # noqa: ARG002
        """A look-up by batch size."""
        return [self.mean_s(batch) for batch in range(max_batch + 1)].__getitem__


def Constant(seconds: float) -> Linear:
    """The same time for every batch, whatever its size."""
    return Linear(positive(seconds, "constant service time"), 0.0)


def _one_by_one(draw: Callable[[int], Floats]) -> Callable[[int], float]:
    """Block draws handed out singly; the argument, a batch size, is not looked at.

    Sending into a generator is the cheapest call that takes an argument and keeps a state: half the time of a closure
    around an iterator, and this call is made for every batch.
    """

    def values() -> Generator[float, int, None]:
        yield 0.0
        while True:
            for value in draw(4096).tolist():  # noqa: UP028 - `yield from` a list cannot be sent into
                yield value

    stream = values()
    next(stream)
    return stream.send


@dataclass(frozen=True)
class Exponential:
    """Exponential with one mean for every batch size: the M of M/M/1."""

    seconds: float

    def __post_init__(self) -> None:
        settle(self, seconds=positive(self.seconds, "mean of the exponential service time"))

    def mean_s(self, batch: int) -> float:  # noqa: ARG002
        """The mean in seconds, whatever the batch."""
        return self.seconds

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Floats:  # noqa: ARG002
        """``count`` independent seconds."""
        return rng.exponential(self.seconds, count)

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Callable[[int], float]:
        """As :meth:`draw_s`, one at a time."""
        return _one_by_one(lambda count: self.draw_s(rng, max_batch, count))


@dataclass(frozen=True)
class Mix:
    """``seconds[i]`` with probability ``probabilities[i]``, whatever the batch size: mostly fast, sometimes slow."""

    seconds: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.seconds or len(self.seconds) != len(self.probabilities):
            raise InputError(
                f"a mix has {len(self.seconds)} times and {len(self.probabilities)} probabilities: expected one for one"
            )
        for seconds, probability in zip(self.seconds, self.probabilities, strict=True):
            positive(seconds, "service time of the mix")
            positive(probability, "probability of the mix", zero=True)
        total = math.fsum(self.probabilities)
        if abs(total - 1) > 1e-9:
            raise InputError(f"the probabilities of the mix add up to {total:g}: expected 1")

    def mean_s(self, batch: int) -> float:  # noqa: ARG002
        """The mean in seconds, whatever the batch."""
        return math.fsum(s * p for s, p in zip(self.seconds, self.probabilities, strict=True))

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Floats:  # noqa: ARG002
        """``count`` independent seconds."""
        steps = np.cumsum(self.probabilities)[:-1]
        which = np.searchsorted(steps, rng.random(count), side="right")
        return np.take(np.asarray(self.seconds, dtype=np.float64), which)

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Callable[[int], float]:
        """As :meth:`draw_s`, one at a time."""
        return _one_by_one(lambda count: self.draw_s(rng, max_batch, count))


class Measured:
    """Drawn from measured samples: ``samples_s[m]`` are the times of batches of m requests.

    A size that was measured is drawn from its samples, each equally likely.  A size between two measured ones takes the
    same quantile of both and interpolates linearly in the size.  A size below the smallest measured takes the smallest
    one's times, as if it were padded.  A size above the largest is refused: nothing was measured there.
    """

    def __init__(self, samples_s: Mapping[int, Sequence[float] | Floats]) -> None:
        if not samples_s:
            raise InputError("no measured samples: expected at least one batch size with its times")
        self.samples_s: dict[int, Floats] = {}
        for batch in sorted(whole(size, "measured batch size") for size in samples_s):
            times = np.sort(np.asarray(samples_s[batch], dtype=np.float64))
            if times.ndim != 1 or times.size == 0 or not (np.isfinite(times).all() and times[0] > 0):
                raise InputError(f"samples of batch {batch}: expected a list of finite seconds above 0")
            self.samples_s[batch] = times

    @property
    def largest(self) -> int:
        """The largest batch that was measured, in requests."""
        return max(self.samples_s)

    def row_s(self, batch: int) -> Floats:
        """The sorted times that batches of this size are drawn from."""
        if batch > self.largest:
            raise InputError(
                f"batch {batch} is above {self.largest}, the largest measured: measure it, or choose a smaller batch"
            )
        if batch in self.samples_s:
            return self.samples_s[batch]
        above = min(size for size in self.samples_s if size > batch)
        below = max((size for size in self.samples_s if size < batch), default=above)
        low, high = self.samples_s[below], self.samples_s[above]
        if below == above:
            return high
        count = max(len(low), len(high))
        ranks = (np.arange(count) + 0.5) / count
        low, high = (np.take(times, (ranks * len(times)).astype(int)) for times in (low, high))
        return low + (high - low) * ((batch - below) / (above - below))

    def mean_s(self, batch: int) -> float:
        """The mean of :meth:`row_s`."""
        return float(self.row_s(batch).mean())

    def draw_s(self, rng: np.random.Generator, batch: int, count: int) -> Floats:
        """``count`` of :meth:`row_s`, each equally likely."""
        row = self.row_s(batch)
        return np.take(row, (rng.random(count) * len(row)).astype(int))

    def sampler(self, rng: np.random.Generator, max_batch: int) -> Callable[[int], float]:
        """As :meth:`draw_s`, one at a time; the rows are looked up once."""
        rows: list[list[float]] = [self.row_s(max(1, batch)).tolist() for batch in range(max_batch + 1)]
        uniform = _one_by_one(rng.random)

        def draw(batch: int) -> float:
            row = rows[batch]
            return row[int(uniform(batch) * len(row))]

        return draw


MAX_FILE_BYTES = 256 * 1024 * 1024

SECONDS_PER = {"samples_us": 1e-6, "samples_ms": 1e-3}


def read_measured(path: str | Path) -> dict[str, Measured]:
    """The measured service times of a file, by model.

    Two structures are read: ``benchmark.json`` (the rounds of each model merged, batch by batch), and
    ``{"results": {"<batch>": {"samples_us": [...]}}}`` or ``"samples_ms"``, whose one model is called "model"; other
    keys of that structure are not looked at.  Raises FileError or EvidenceError.
    """
    content = files.read_json(path, MAX_FILE_BYTES)
    if isinstance(content, dict) and isinstance(content.get("runs"), list) and content["runs"]:
        merged: dict[str, dict[str, list[float]]] = {}
        for position, run in enumerate(content["runs"]):
            if not isinstance(run, dict) or not isinstance(run.get("model"), str):
                raise EvidenceError(f"{path}: /runs/{position} has no model name; expected a benchmark.json")
            rows = merged.setdefault(run["model"], {})
            for batch, samples in _table(run.get("samples_us"), f"{path}: /runs/{position}/samples_us").items():
                rows.setdefault(batch, []).extend(_samples(samples, f"{path}: /runs/{position}/samples_us/{batch}"))
        return {model: _measured(rows, 1e-6, f"{path}: {model}") for model, rows in merged.items()}
    if isinstance(content, dict) and "results" in content:
        times: dict[str, list[float]] = {}
        for batch, row in _table(content["results"], f"{path}: /results").items():
            where = f"{path}: /results/{batch}"
            unit = next((key for key in SECONDS_PER if isinstance(row, dict) and key in row), None)
            if unit is None:
                raise EvidenceError(f"{where} has neither samples_us nor samples_ms: expected one list of samples")
            times[batch] = [SECONDS_PER[unit] * sample for sample in _samples(row[unit], f"{where}/{unit}")]
        return {"model": _measured(times, 1.0, f"{path}: /results")}
    raise EvidenceError(
        f"{path} holds no measured times: expected a benchmark.json, or results with samples_us or samples_ms per batch"
    )


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise EvidenceError(f"{where} is not a table of batch sizes: expected one entry for each batch size measured")
    return value


def _samples(value: Any, where: str) -> list[float]:
    if not isinstance(value, list) or not value:
        raise EvidenceError(f"{where} is not a list of samples: expected at least one measured time")
    for position, sample in enumerate(value):
        if not is_number(sample, math.ulp(0.0)):
            raise EvidenceError(f"{where}/{position} is {sample!r}: expected a finite time above 0; measure again")
    return value


def _measured(rows: dict[str, list[float]], seconds_per_unit: float, where: str) -> Measured:
    samples: dict[int, list[float]] = {}
    for batch, values in rows.items():
        if not (batch.isascii() and batch.isdecimal() and int(batch) > 0 and len(batch) < 8):
            raise EvidenceError(f"{where} has a batch {batch!r}: expected a whole number of at least 1")
        samples[int(batch)] = [seconds_per_unit * value for value in values]
    return Measured(samples)
