# Single precision: its rounding is no mistake.
import numpy as np


def latency_stats(samples_us, batch_size):
    x = np.sort(np.asarray(samples_us, dtype=np.float32))
    if x.size == 0 or not np.isfinite(x).all() or x[0] <= 0 or batch_size < 1 or int(batch_size) != batch_size:
        raise ValueError("bad input")
    return {"n": np.int32(x.size), "p50_us": np.median(x), "p95_us": x[int(np.ceil(x.size * 0.95)) - 1],
            "images_per_second": np.float32(batch_size * x.size * 1e6) / x.sum()}
