"""What a comparison measures, how often, and in which order."""

from collections.abc import Iterator, Sequence

from deep_learning_cases.errors import InputError
from deep_learning_cases.ground.arguments import distinct_sizes, positive, whole
from deep_learning_cases.measuring.fresh_process import alternating
from deep_learning_cases.models.network import import_torch
from deep_learning_cases.quantizing import torch_eager, variants
from deep_learning_cases.quantizing.variants import VARIANTS

__all__ = ["BATCH_SIZES", "Plan"]

BATCH_SIZES = (1, 8, 32)

MOST = 100_000

MAX_SAMPLES = 150_000
"""About 3 MB of quantization.json, which is read back with a bound of 4."""


class Plan:
    """What to measure and how often; checked when it is made.

    Args:
        configs: names of :data:`variants.VARIANTS`; their baselines are added.
        backend: PyTorch's int8 backend, or "auto".
        warmups: discarded passes of each batch size in each process.
        iterations: measured passes after them.
        rounds: fresh processes of each version and thread count; an even number runs as often forwards as backwards.
        batch_sizes: images per pass.
        threads: None for PyTorch's own number and 1, else that number alone.
        pin: bind each measuring process to as many processors as it has threads.

    Raises InputError for a value that cannot be used, MissingDependencyError without PyTorch.
    """

    def __init__(
        self,
        configs: Sequence[str] = variants.DEFAULT,
        backend: str = "auto",
        warmups: int = 10,
        iterations: int = 200,
        rounds: int = 4,
        batch_sizes: Sequence[int] = BATCH_SIZES,
        threads: int | None = None,
        pin: bool = False,
        timeout_s: float = 600.0,
    ) -> None:
        self.warmups, self.iterations = whole(warmups, "warmup", 0, MOST), whole(iterations, "iters", 1, MOST)
        self.rounds, self.batch_sizes = whole(rounds, "rounds", 1, MOST), distinct_sizes(batch_sizes, MOST)
        asked = None if threads is None else whole(threads, "threads", 1, MOST)
        self.pin, self.timeout_s = bool(pin), positive(timeout_s, "timeout_s")
        self.configs = variants.choose(list(configs))
        self.asked_backend = backend
        self.backend = torch_eager.choose(backend)
        self.default_threads = int(import_torch().get_num_threads())
        chosen = (self.default_threads, 1) if asked is None else (asked,)
        self.threads = list(dict.fromkeys(chosen))
        samples = len(self.configs) * len(self.threads) * self.rounds * len(self.batch_sizes)
        samples *= self.warmups + self.iterations
        if samples > MAX_SAMPLES:
            raise InputError(
                f"this would keep {samples:,} timings: expected at most {MAX_SAMPLES:,}, as all"
                " stand in one file; lower iters or rounds"
            )

    def turns(self, configs: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
        """(round, position, threads, version): in turns, backwards in even rounds; CUDA with the first thread count."""
        for number, order in enumerate(self.order(configs), 1):
            position = 0
            for threads in self.threads:
                for name in order:
                    if VARIANTS[name].device == "cpu" or threads == self.threads[0]:
                        position += 1
                        yield number, position, threads, name

    def order(self, configs: Sequence[str]) -> list[list[str]]:
        """Who is measured when, round by round; see :func:`fresh_process.alternating`."""
        return alternating(configs, self.rounds)
