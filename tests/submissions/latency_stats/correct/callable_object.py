# latency_stats is an instance of a class.
import math
from bisect import insort


class LatencyStats:
    def __init__(self, share=0.95):
        self.share = share

    def __call__(self, samples_us, batch_size):
        self.check(samples_us, batch_size)
        ordered = []
        for sample in samples_us:
            insort(ordered, sample)
        n = len(ordered)
        return {
            "images_per_second": batch_size * n * 1_000_000 / sum(ordered),
            "p95_us": ordered[math.ceil(self.share * n) - 1],
            "p50_us": ordered[n // 2] if n % 2 else sum(ordered[n // 2 - 1 : n // 2 + 1]) / 2,
            "n": n,
        }

    @staticmethod
    def check(samples_us, batch_size):
        if len(samples_us) == 0:
            raise ValueError("no samples")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError("batch size")
        for s in samples_us:
            if not (s > 0 and math.isfinite(s)):
                raise ValueError("sample")


latency_stats = LatencyStats()
