# A decorator validates, another one prints.
import functools
import math
import statistics


def validated(function):
    @functools.wraps(function)
    def wrapper(samples_us, batch_size):
        samples = [*samples_us]
        if not samples:
            raise ValueError("empty")
        if any(math.isnan(s) or math.isinf(s) or s <= 0 for s in samples):
            raise ValueError("not a time")
        if isinstance(batch_size, float) or batch_size < 1:
            raise ValueError("batch size")
        return function(samples, batch_size)

    return wrapper


def announced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print("computing", function.__name__)
        result = function(*args, **kwargs)
        print(result)
        return result

    return wrapper


@announced
@validated
def latency_stats(samples_us, batch_size):
    """Median, nearest rank, throughput."""
    n = len(samples_us)
    return {"n": n, "p50_us": statistics.median(samples_us), "p95_us": sorted(samples_us)[n - n // 20 - 1],
            "images_per_second": batch_size * 1e6 / statistics.fmean(samples_us)}
