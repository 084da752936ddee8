# Checks every type it meets.
import math


def latency_stats(samples_us, batch_size):
    if type(batch_size) is not int:
        raise ValueError(f"batch_size is a {type(batch_size).__name__}, expected int")
    if batch_size <= 0:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    values = []
    for place, sample in enumerate(samples_us):
        if not isinstance(sample, (int, float)) or isinstance(sample, bool):
            raise ValueError(f"sample {place} is a {type(sample).__name__}")
        if math.isnan(sample) or math.isinf(sample) or sample <= 0:
            raise ValueError(f"sample {place} is {sample}")
        values.append(sample)
    if not values:
        raise ValueError("no samples")
    values.sort()
    n = len(values)
    half, odd = divmod(n, 2)
    return {
        "n": n,
        "p50_us": values[half] if odd else (values[half - 1] + values[half]) / 2,
        "p95_us": values[max(0, math.ceil(n * 0.95) - 1)],
        "images_per_second": (batch_size * n) / (sum(values) / 1_000_000),
    }
