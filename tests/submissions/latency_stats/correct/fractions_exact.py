# Exact arithmetic; the answer's numbers are Fractions.
from fractions import Fraction
from math import isfinite


def latency_stats(samples_us, batch_size):
    if isinstance(batch_size, bool) or batch_size != int(batch_size) or batch_size < 1:
        raise ValueError("batch size")
    for s in samples_us:
        if not isfinite(s) or s <= 0:
            raise ValueError("sample")
    xs = sorted(Fraction(float(s)) for s in samples_us)
    if not xs:
        raise ValueError("no samples")
    n = len(xs)
    rank = -((-95 * n) // 100)
    return {"n": n, "p50_us": (xs[(n - 1) // 2] + xs[n // 2]) / 2, "p95_us": xs[rank - 1],
            "images_per_second": Fraction(batch_size * n * 10**6) / sum(xs)}
