# A counting walk over distinct times, with generators.
import math
from collections import Counter, OrderedDict


def at_rank(counts, rank):
    seen = 0
    for time_us in sorted(counts):
        seen += counts[time_us]
        if seen >= rank:
            return time_us


def latency_stats(samples_us, batch_size):
    def times():
        for s in samples_us:
            if not math.isfinite(s) or s <= 0:
                raise ValueError("sample")
            yield float(s)

    counts = Counter(times())
    n = sum(counts.values())
    if n == 0 or batch_size <= 0 or int(batch_size) != batch_size:
        raise ValueError("input")
    answer = OrderedDict()
    answer["n"] = n
    answer["p50_us"] = 0.5 * (at_rank(counts, (n + 1) // 2) + at_rank(counts, n // 2 + 1))
    answer["p95_us"] = at_rank(counts, math.ceil(0.95 * n))
    answer["images_per_second"] = batch_size * n * 1e6 / sum(t * c for t, c in counts.items())
    return answer
