"""One question put to a student's function, and arithmetic that right and mistaken answers share."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from deep_learning_cases.measuring import stats

__all__ = [
    "SPLITS", "Case", "Finish", "Rule", "Samples", "View",
    "hundreds", "nearest_rank", "sample_spread", "spread", "thirds", "true_answer",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One question put to the student's function, with what the function itself answered for the other quantities."""

    samples: tuple[float, ...]
    batch_size: int
    own: dict[str, float] = field(default_factory=dict)


Samples = Sequence[float]
View = Callable[[Samples], Samples]
Rule = Callable[[Samples, Case], float]
Finish = Callable[[float, Case], float]


def true_answer(case: Case) -> dict[str, float]:
    """The right answer to a proper input, by the library's own definition."""
    return dict(_truth(tuple(case.samples), case.batch_size))


@lru_cache(maxsize=256)
def _truth(samples: tuple[float, ...], batch_size: int) -> dict[str, float]:
    """A whole class is asked the same questions."""
    answer: dict[str, float] = stats.latency_summary(samples, batch_size)
    return answer


def nearest_rank(samples: Samples, percent: float) -> float:
    """The least sample that ``percent`` of all are not above."""
    rank = math.ceil(percent * len(samples) / 100)
    return sorted(samples)[rank - 1]


def spread(samples: Samples) -> float:
    """Standard deviation of all samples."""
    # Not statistics.pstdev: its exact fractions take a hundred times as long, and a search computes thousands.
    return float(np.std(samples))


def sample_spread(samples: Samples) -> float:
    """Standard deviation estimated from a sample; StatisticsError for one alone."""
    if len(samples) < 2:
        raise statistics.StatisticsError("one sample has no spread")
    return float(np.std(samples, ddof=1))


def thirds(samples: Samples) -> list[Samples]:
    """Three parts of equal length, without what is left over; fewer where there are fewer samples."""
    length = max(1, len(samples) // 3)
    return [part for part in (samples[k * length : (k + 1) * length] for k in range(3)) if len(part)]


def _thirds_with_rest(samples: Samples) -> list[Samples]:
    return [part.tolist() for part in np.array_split(np.asarray(samples, float), 3) if part.size]


def hundreds(samples: Samples) -> list[Samples]:
    """Parts of a hundred samples; the last may be shorter."""
    return [samples[start : start + 100] for start in range(0, len(samples), 100)]


SPLITS = (thirds, _thirds_with_rest, hundreds)
