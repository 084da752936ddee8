# Recursion: quickselect for the ranks, a recursive sum.
import math


def select(values, k):
    pivot = values[len(values) // 2]
    low = [v for v in values if v < pivot]
    same = [v for v in values if v == pivot]
    if k < len(low):
        return select(low, k)
    if k < len(low) + len(same):
        return pivot
    return select([v for v in values if v > pivot], k - len(low) - len(same))


def total(values):
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return total(values[:half]) + total(values[half:])


def latency_stats(samples_us, batch_size):
    values = tuple(samples_us)
    n = len(values)
    if n == 0 or type(batch_size) not in (int,) or batch_size <= 0:
        raise ValueError("input")
    if not all(0 < v < math.inf for v in values):
        raise ValueError("samples")
    return {
        "n": n,
        "p50_us": (select(values, (n - 1) // 2) + select(values, n // 2)) / 2,
        "p95_us": select(values, math.ceil(0.95 * n) - 1),
        "images_per_second": 1_000_000 * batch_size * n / total(values),
    }
