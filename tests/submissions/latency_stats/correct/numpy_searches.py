# The smallest sample that has 95 % of all samples at or below it, literally.
import numpy as np


def latency_stats(samples_us, batch_size):
    x = np.array([s for s in samples_us], dtype=np.float64)
    problems = [
        x.size == 0,
        bool((~np.isfinite(x)).sum()),
        bool((x <= 0).sum()),
        int(batch_size) != batch_size,
        batch_size < 1,
    ]
    if any(problems):
        raise ValueError(f"problems: {problems}")
    at_or_below = (x[None, :] <= x[:, None]).sum(axis=1)
    p95 = x[100 * at_or_below >= 95 * x.size].min()
    s = np.sort(x)
    return {"n": len(s), "p50_us": s[(len(s) - 1) // 2 : len(s) // 2 + 1].mean(), "p95_us": float(p95),
            "images_per_second": batch_size * x.size / np.sum(x / 1e6)}
