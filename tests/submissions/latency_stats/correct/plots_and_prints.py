# Draws and prints while it computes.
import math
import sys

import numpy as np


def latency_stats(samples_us, batch_size):
    a = np.asarray(samples_us, dtype=float).copy()
    if a.ndim != 1 or len(a) == 0 or not np.isfinite(a).all() or a.min() <= 0:
        raise ValueError("samples")
    if batch_size != round(batch_size) or batch_size < 1:
        raise ValueError("batch")
    print("n =", len(a), file=sys.stderr)
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        Figure(figsize=(1, 1)).add_subplot().plot(a)
    except ImportError:
        print("no matplotlib")
    order = np.argsort(a)
    return {"n": len(a), "p50_us": np.median(a), "p95_us": a[order][math.ceil(0.95 * len(a)) - 1],
            "images_per_second": batch_size * len(a) / a.sum() * 1e6, "samples": a.tolist(), "histogram": np.histogram(a)}
