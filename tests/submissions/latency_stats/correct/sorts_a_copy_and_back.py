# Works on a copy in place, keeps results in a cache, uses match.
import math

_cache = {}


def latency_stats(samples_us, batch_size):
    key = (tuple(map(float, samples_us)), batch_size)
    if key not in _cache:
        _cache[key] = _compute(list(key[0]), batch_size)
    return dict(_cache[key])


def _compute(xs, batch_size):
    match len(xs):
        case 0:
            raise ValueError("nothing measured")
        case n:
            if not all(map(math.isfinite, xs)) or any(x <= 0 for x in xs):
                raise ValueError("not a time")
    if batch_size % 1 != 0 or batch_size < 1:
        raise ValueError("not a count")
    xs.sort(reverse=True)
    return {"n": n, "p50_us": (xs[n // 2] + xs[(n - 1) // 2]) / 2, "p95_us": xs[n // 20],
            "images_per_second": batch_size * n * 1_000_000 / math.fsum(xs)}
