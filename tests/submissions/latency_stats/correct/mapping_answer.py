# The answer is a dict subclass that computes missing keys.
import math
import statistics


class Answer(dict):
    def __missing__(self, key):
        return None


class InvalidTimings(ArithmeticError, ValueError):
    """Both a number problem and a value problem."""


def latency_stats(samples_us, batch_size):
    xs = list(samples_us)
    try:
        assert len(xs) > 0, "samples"
        assert all(math.isfinite(x) for x in xs), "finite"
        assert min(xs) > 0, "positive"
        assert isinstance(batch_size, int) and batch_size > 0, "batch"
    except AssertionError as error:
        raise InvalidTimings(str(error)) from None
    answer = Answer(n=len(xs), p50_us=statistics.median(xs))
    answer["p95_us"] = sorted(xs)[math.ceil(0.95 * len(xs)) - 1]
    answer |= {"images_per_second": statistics.harmonic_mean([batch_size * 1e6 / x for x in xs])}
    return answer
