# Extended precision and numpy's own median; a helper that answers nothing itself.
import numpy as np


def validate(samples_us, batch_size):
    x = np.asarray(samples_us, dtype=np.longdouble)
    bad = x[~(np.isfinite(x) & (x > 0))]
    if not x.size or bad.size:
        raise ValueError(f"{bad.size} of {x.size} samples are no times")
    if batch_size < 1 or batch_size != np.floor(batch_size):
        raise ValueError(f"{batch_size} images per call")
    return x


def latency_stats(samples_us, batch_size):
    x = validate(samples_us, batch_size)
    p95 = np.percentile(x.astype(float), 95, method="inverted_cdf")
    return {"n": x.shape[0], "p50_us": np.median(x), "p95_us": p95, "images_per_second": batch_size * len(x) * 1_000_000 / x.sum()}
