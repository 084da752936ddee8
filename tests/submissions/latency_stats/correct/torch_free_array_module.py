# array, itertools and reduce.
from array import array
from functools import reduce
from itertools import islice
from operator import add
import math


def latency_stats(samples_us, batch_size):
    data = array("d", samples_us)
    if len(data) == 0 or not all(map(lambda t: math.isfinite(t) and t > 0, data)):
        raise ValueError("samples_us must hold positive finite times")
    if not (isinstance(batch_size, int) and batch_size >= 1):
        raise ValueError("batch_size must be an int >= 1")
    n, ordered = len(data), sorted(data)
    return {"n": n,
            "p50_us": reduce(add, islice(ordered, (n - 1) // 2, n // 2 + 1)) / (2 - n % 2),
            "p95_us": next(islice(ordered, (95 * n - 1) // 100, None)),
            "images_per_second": batch_size * n * 1e6 / reduce(add, data)}
