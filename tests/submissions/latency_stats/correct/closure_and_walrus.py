# A factory returns the function; ranks by Fraction; an itertools pipeline.
import itertools
import math
from fractions import Fraction


def make(share):
    def at(ordered, fraction):
        return ordered[math.ceil(fraction * len(ordered)) - 1]

    def latency_stats(samples_us, batch_size):
        if (n := len(ordered := sorted(samples_us))) < 1:
            raise ValueError("empty")
        if not all(map(math.isfinite, ordered)) or any(itertools.dropwhile(lambda s: s > 0, ordered)):
            raise ValueError("sample")
        if ordered[0] <= 0 or batch_size < 1 or math.trunc(batch_size) != batch_size:
            raise ValueError("input")
        *_, total = itertools.accumulate(ordered)
        middle = at(ordered, Fraction(1, 2)) + ordered[n // 2]
        return {"n": n, "p50_us": middle / 2, "p95_us": at(ordered, share), "images_per_second": batch_size * n / total * 1e6}

    return latency_stats


latency_stats = make(Fraction(19, 20))
