# mistake: interpolated-percentile
import math
import statistics

import numpy as np


def latency_stats(samples_us, batch_size):
    xs = [float(s) for s in samples_us]
    if not xs or not all(math.isfinite(s) and s > 0 for s in xs):
        raise ValueError("samples must be finite and positive")
    if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ValueError("batch_size must be a positive integer")
    ordered = sorted(xs)
    n = len(ordered)
    p50 = statistics.median(ordered)
    p95 = ordered[-(-19 * n // 20) - 1]
    rate = batch_size * n * 1e6 / sum(xs)

    place = 0.95 * (n - 1)
    low = int(place)
    high = min(low + 1, n - 1)
    p95 = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return {"n": n, "p50_us": p50, "p95_us": p95, "images_per_second": rate}
