# Decimal with plenty of digits.
from decimal import Decimal, getcontext

getcontext().prec = 50


def latency_stats(samples_us, batch_size):
    xs = sorted(Decimal(str(float(s))) for s in samples_us) if all(s == s for s in samples_us) else []
    if not xs or not all(x.is_finite() and x > 0 for x in xs):
        raise ValueError("samples")
    if not float(batch_size).is_integer() or batch_size <= 0:
        raise ValueError("batch size")
    n = len(xs)
    total = sum(xs, Decimal(0))
    return {"n": n, "p50_us": (xs[(n - 1) // 2] + xs[n // 2]) / 2, "p95_us": xs[(19 * n + 19) // 20 - 1],
            "images_per_second": Decimal(int(batch_size)) * n * 1_000_000 / total}
