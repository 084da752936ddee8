# Everything in lambdas.
import math

_raise = lambda error: (_ for _ in ()).throw(error)
_ok = lambda xs, b: len(xs) > 0 and all(math.isfinite(x) and x > 0 for x in xs) and b == int(b) and b > 0
_p95 = lambda xs: sorted(xs)[math.ceil(len(xs) * 95 / 100) - 1]
_p50 = lambda xs: (sorted(xs)[(len(xs) - 1) // 2] + sorted(xs)[len(xs) // 2]) / 2
latency_stats = lambda samples_us, batch_size: (
    {"n": len(samples_us), "p50_us": _p50(samples_us), "p95_us": _p95(samples_us),
     "images_per_second": batch_size / (sum(samples_us) / len(samples_us)) * 1e6}
    if _ok(samples_us, batch_size) else _raise(ValueError("bad input")))
