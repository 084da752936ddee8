"""What the service counts, in Prometheus' text format (version 0.0.4): counters, gauges and histograms.

Everything is counted in the event loop's thread, so nothing is locked.  A histogram loses the single values; the
answers carry them, and the load generator keeps them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from deep_learning_cases.errors import MissingDependencyError

__all__ = ["CONTENT_TYPE", "Metrics", "resident_bytes"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def resident_bytes() -> int:
    """Memory of this process that is in RAM now; MissingDependencyError without psutil."""
    try:
        import psutil
    except ImportError as error:
        raise MissingDependencyError(
            "psutil is not installed: the service reports its memory with it; install it with: "
            "pip install 'deep_learning_cases[service]'"
        ) from error
    return int(psutil.Process().memory_info().rss)


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Cumulative buckets, as the format wants them, then sum and count."""
        total = 0
        for bound, count in zip([*(f"{bound:g}" for bound in self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}} {total}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self._sum!r}"
        yield f"{name}_count{braces} {total}"


class Metrics:
    """Counts of one service since its start."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.answers: Counter[int] = Counter()
        self._latency = {part: _Histogram(SECONDS) for part in parts}
        self._batches = _Histogram(SIZES)

    def answered(self, code: int) -> None:
        """One request ended with this HTTP status (499: the client had gone)."""
        self.answers[code] += 1

    def latency(self, seconds: Mapping[str, float]) -> None:
        """The parts of one answered request's latency."""
        for part, value in seconds.items():
            self._latency[part].observe(value)

    def batch(self, size: int) -> None:
        """One batch has run."""
        self._batches.observe(size)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """The whole page; ``gauges`` maps a name to its help text and its value now."""
        lines = ["# HELP dlcases_requests_total Requests by HTTP status.", "# TYPE dlcases_requests_total counter"]
        lines += [f'dlcases_requests_total{{code="{code}"}} {count}' for code, count in sorted(self.answers.items())]
        lines += [
            "# HELP dlcases_latency_seconds Parts of the latency of answered requests.",
            "# TYPE dlcases_latency_seconds histogram",
        ]
        for part, histogram in self._latency.items():
            lines += histogram.lines("dlcases_latency_seconds", f'part="{part}"')
        lines += ["# HELP dlcases_batch_size Requests per batch.", "# TYPE dlcases_batch_size histogram"]
        lines += self._batches.lines("dlcases_batch_size")
        for name, (text, value) in gauges.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"
