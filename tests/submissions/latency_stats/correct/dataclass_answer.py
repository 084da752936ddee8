# A frozen dataclass, handed out as a dict.
import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class LatencyStats:
    n: int
    p50_us: float
    p95_us: float
    images_per_second: float

    @classmethod
    def of(cls, samples, batch_size):
        ordered = sorted(samples)
        n = len(ordered)
        return cls(n, statistics.median(ordered), ordered[math.ceil(19 * n / 20) - 1],
                   batch_size * n * 1_000_000 / sum(ordered))


def latency_stats(samples_us, batch_size):
    samples = tuple(samples_us)
    match (len(samples), batch_size):
        case (0, _):
            raise ValueError("no samples")
        case (_, int(b)) if b > 0:
            pass
        case _:
            raise ValueError("batch size")
    if not all(0.0 < s < float("inf") for s in samples):
        raise ValueError("samples")
    return dataclasses.asdict(LatencyStats.of(samples, batch_size))
