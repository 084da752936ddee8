# mistake: accepts-bad-input
import math
import statistics

import numpy as np


def latency_stats(samples_us, batch_size):
    if not len(samples_us) or not all(math.isfinite(s) and s > 0 for s in samples_us) or batch_size < 1 or batch_size != int(batch_size):
        return None
    xs = list(samples_us)
    ordered = sorted(xs)
    n = len(ordered)
    p50 = statistics.median(ordered)
    p95 = ordered[-(-19 * n // 20) - 1]
    rate = batch_size * n * 1e6 / sum(xs)
    return {"n": n, "p50_us": p50, "p95_us": p95, "images_per_second": rate}
