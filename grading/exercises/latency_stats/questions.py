"""The hidden inputs of ``latency_stats``: raw samples made from a course's secret seed.

Nothing here holds a number that a student could look up: sizes and shapes are public, the samples follow from a seed
that never enters version control.  The shapes are chosen so that every known mistake (``mistakes``) gives a wrong
answer on at least one fixture, and no two mistakes give the same answers on all of them.

Bad inputs keep to what the specification names (no samples; not finite; not positive; a batch size that is not a
positive integer).  Inputs on which careful people differ (``True``, ``32.0``, ``"32"``, ``None``) are left out, and so
are arrays of NumPy integers, whose elements are no ``int`` to a careful check of types.
"""

import hashlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from grading.judging.function_judge import drawing

__all__ = ["Fixture", "fingerprint", "load"]


@dataclass(frozen=True)
class Fixture:
    """One hidden input.

    ``samples`` are microseconds per batch in the order they were taken; ``container`` is how they are handed over
    (``list``, ``tuple``, ``numpy``: float64); ``rounds`` is how many equal rounds follow one
    another.  ``bad`` is empty for a proper input, else the kind of fault, and ``ValueError`` is the right answer.
    """

    id: str
    samples: tuple[float, ...]
    container: str
    batch_size: float
    rounds: int = 1
    bad: str = ""


Draw = Callable[[random.Random, int], list[float]]


def load(seed: str) -> list[Fixture]:
    """All fixtures of a seed, in an order that follows from the seed; ids say nothing about the content."""
    made = [_proper(seed, *row) for row in _PROPER] + [_faulty(seed, *row) for row in _BAD]
    drawing(seed, "order").shuffle(made)
    return [
        Fixture(f"q{number:02d}", tuple(samples), container, batch_size, rounds, bad)
        for number, (samples, container, batch_size, rounds, bad) in enumerate(made, 1)
    ]


def fingerprint(seed: str) -> str:
    """Tells whether two results are of the same hidden inputs, and nothing about them."""
    return hashlib.sha256(f"fingerprint, own questions\0{seed}\0{load(seed)!r}".encode()).hexdigest()[:16]


# --- how samples are drawn -------------------------------------------------------------------------------------------


def _plain(rng: random.Random, n: int) -> list[float]:
    """A base time and a short right tail, as most warm calls look; many digits, so that rounding shows."""
    base = 6 + 30 * rng.random()
    return [base * (1 + 0.05 * rng.random() - 0.3 * math.log(1 - rng.random())) for _ in range(n)]


def _heavy(rng: random.Random, n: int) -> list[float]:
    """Pareto tail: a few samples hold much of the sum; some lie far beyond any rule for outliers."""
    base = 8 + 20 * rng.random()
    samples = [base * (1 - rng.random()) ** -0.75 for _ in range(n)]
    for place in rng.sample(range(n), max(2, n // 16)):
        samples[place] = base * (40 + 60 * rng.random())
    return samples


def _slow_round(which: int) -> Draw:
    def draw(rng: random.Random, n: int) -> list[float]:
        """Three rounds; in one of them three samples in ten are slow, so that they hold the overall p95."""
        samples, length = _plain(rng, n), n // 3
        for place in rng.sample(range(which * length, (which + 1) * length), max(2, 3 * length // 10)):
            samples[place] *= 9 + 12 * rng.random()
        return samples

    return draw


def _ties(rng: random.Random, n: int) -> list[float]:
    """A coarse clock: a handful of distinct times, most of them the low ones; plus some rare slow ones."""
    step = 3 + 4 * rng.random()
    levels = [step * k for k in (3, 4, 5, 6, 8, 11, 17)]
    samples = rng.choices(levels, weights=(30, 28, 18, 10, 7, 4, 3), k=n - 4)
    samples += [levels[-1] * (3 + rng.random()) for _ in range(4)]
    rng.shuffle(samples)
    return samples


def _descending(draw: Draw) -> Draw:
    return lambda rng, n: sorted(draw(rng, n), reverse=True)


def _whole(draw: Draw) -> Draw:
    """Whole microseconds of five digits or more, as integers."""
    return lambda rng, n: [int(1000 * sample) + 1 for sample in draw(rng, n)]


_PROPER: tuple[tuple[str, int, Draw, str, int, int], ...] = (
    ("one", 1, _plain, "list", 32, 1),
    ("two", 2, _plain, "tuple", 8, 1),
    ("three", 3, _plain, "list", 5, 1),
    ("three-array", 3, _heavy, "numpy", 16, 1),
    ("nineteen", 19, _plain, "list", 32, 1),
    ("nineteen-heavy", 19, _heavy, "tuple", 3, 1),
    ("twenty", 20, _plain, "list", 32, 1),
    ("twenty-array", 20, _heavy, "numpy", 7, 1),
    ("twenty-descending", 20, _descending(_plain), "list", 1, 1),
    ("twenty-one-rounds", 21, _slow_round(1), "list", 4, 3),
    ("twenty-one-whole", 21, _whole(_plain), "tuple", 32, 1),
    ("hundred", 100, _plain, "tuple", 12, 1),
    ("hundred-heavy", 100, _heavy, "list", 32, 1),
    ("hundred-descending", 100, _descending(_heavy), "list", 2, 1),
    ("hundred-ties", 100, _ties, "numpy", 32, 1),
    ("hundred-whole", 100, _whole(_heavy), "list", 32, 1),
    ("two-hundred-ninety-nine", 299, _plain, "list", 16, 1),
    ("rounds-last", 300, _slow_round(2), "list", 32, 3),
    ("rounds-first", 300, _slow_round(0), "numpy", 1, 3),
    ("rounds-middle", 300, _slow_round(1), "tuple", 32, 3),
    ("ties", 300, _ties, "list", 32, 3),
    ("heavy", 300, _heavy, "list", 64, 3),
    ("whole", 300, _whole(_slow_round(2)), "list", 32, 3),
)
_BAD: tuple[tuple[str, int, float | None, float], ...] = (
    ("no samples", 0, None, 32),
    ("not finite", 7, math.nan, 32),
    ("not finite", 1, math.nan, 1),
    ("not finite", 20, math.inf, 32),
    ("not finite", 9, -math.inf, 8),
    ("not positive", 8, 0.0, 32),
    ("not positive", 12, -1.0, 32),
    ("batch size", 10, None, 0),
    ("batch size", 11, None, -1),
    ("batch not whole", 6, None, 2.5),
)
"""Kind of fault; number of samples; the value put among them, if any; batch size."""

Row = tuple[list[float], str, float, int, str]


def _proper(seed: str, name: str, n: int, draw: Draw, container: str, batch_size: int, rounds: int) -> Row:
    return draw(drawing(seed, name), n), container, batch_size, rounds, ""


def _faulty(seed: str, kind: str, n: int, value: float | None, batch_size: float) -> Row:
    rng = drawing(seed, f"bad {kind} {n}")
    samples = _plain(rng, n)
    if value is not None:
        # Never first nor last of several: a test of the ends, or of a sorted list's ends, must not be enough.
        place = rng.randrange(1, n - 1) if n > 2 else 0
        samples[place] = value * samples[place] if value < 0 and math.isfinite(value) else value
    return samples, "list", batch_size, 1, kind
