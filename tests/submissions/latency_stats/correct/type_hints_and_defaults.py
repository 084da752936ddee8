# Type hints, keyword-only extras, a TypedDict.
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict


class Stats(TypedDict):
    n: int
    p50_us: float
    p95_us: float
    images_per_second: float


def latency_stats(samples_us: Sequence[float], batch_size: int = 1, *, share: int = 95, **options: object) -> Stats:
    n: int = len(samples_us)
    if n == 0:
        raise ValueError("samples_us is empty")
    if batch_size <= 0 or batch_size - math.floor(batch_size) != 0:
        raise ValueError(f"batch_size={batch_size!r}")
    bad = [value for value in samples_us if not value > 0 or value == math.inf]
    if bad:
        raise ValueError(f"{len(bad)} bad samples")
    ordered: list[float] = sorted(map(float, samples_us))
    middle = ordered[(n - 1) // 2 : n // 2 + 1]
    return Stats(n=n, p50_us=sum(middle) / len(middle), p95_us=ordered[(share * n + 99) // 100 - 1],
                 images_per_second=batch_size * n / (math.fsum(ordered) * 1e-6))
