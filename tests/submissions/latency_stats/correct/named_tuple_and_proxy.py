# A read-only mapping; the work is in a namedtuple.
import collections
import math
import types

import numpy as np

Row = collections.namedtuple("Row", "n p50_us p95_us images_per_second")


def latency_stats(samples_us, batch_size):
    x = np.sort(np.array(samples_us, dtype=float))
    if len(x) == 0 or not np.isfinite(x.sum()) or x[0] <= 0:
        raise ValueError("samples must be positive and finite")
    if math.modf(batch_size)[0] or batch_size < 1:
        raise ValueError("batch size must be a whole number of at least 1")
    n = x.size
    row = Row(n, (x[(n - 1) // 2] + x[n // 2]) * 0.5, x[-(n // 20) - 1], 1e6 * batch_size / x.mean())
    return types.MappingProxyType(row._asdict())
