# np.quantile with both methods that agree with the definition.
import numpy as np


def latency_stats(samples_us, batch_size):
    arr = np.fromiter((float(s) for s in samples_us), dtype=float)
    if not arr.size or np.isnan(arr).any() or np.isinf(arr).any() or (arr <= 0).any():
        raise ValueError
    if not np.issubdtype(type(batch_size), np.integer) or batch_size < 1:
        raise ValueError
    p50 = (np.quantile(arr, 0.5, method="lower") + np.quantile(arr, 0.5, method="higher")) / 2
    return dict(zip(("n", "p50_us", "p95_us", "images_per_second"),
                    (arr.shape[0], p50, np.quantile(arr, 0.95, method="inverted_cdf"), batch_size * 1e6 / np.mean(arr))))
