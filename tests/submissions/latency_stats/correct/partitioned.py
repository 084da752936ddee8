# np.partition instead of sorting; zero-dimensional arrays and NumPy scalars in the answer.
import numpy as np


def latency_stats(samples_us, batch_size):
    x = np.array(samples_us, dtype=float)
    if x.size < 1 or not (np.isfinite(x) & (x > 0)).all() or batch_size < 1 or batch_size % 1:
        raise ValueError(f"bad input: {x.size} samples, batch {batch_size}")
    n = x.size
    k = int(np.ceil(95 * n / 100)) - 1
    mid = np.partition(x, [(n - 1) // 2, n // 2])
    return {"n": n, "p50_us": np.array((mid[(n - 1) // 2] + mid[n // 2]) / 2), "p95_us": np.partition(x, k)[k],
            "images_per_second": np.multiply(batch_size, 1e6) / x.mean()}
