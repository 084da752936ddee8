"""What a comparison measures, how often, and in which order."""

from collections.abc import Iterator, Sequence

from deep_learning_cases.errors import InputError
from deep_learning_cases.models.network import import_torch
from deep_learning_cases.quantizing import torch_eager, variants
from deep_learning_cases.quantizing.variants import VARIANTS

__all__ = ["BATCH_SIZES", "Plan"]

BATCH_SIZES = (1, 8, 32)

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
        counts = [("warmup", warmups, 0), ("iters", iterations, 1), ("rounds", rounds, 1)]
        counts += [
            ("threads", 1 if threads is None else threads, 1),
            *(("a batch size", size, 1) for size in batch_sizes),
        ]
        for name, value, least in counts:
            if type(value) is not int or not least <= value <= 100_000:
                raise InputError(f"{name} is {value!r}: expected a whole number from {least} to 100000; change it")
        if not batch_sizes or len(set(batch_sizes)) != len(batch_sizes):
            raise InputError(f"the batch sizes are {list(batch_sizes)}: expected at least one, none twice; change them")
        self.configs = variants.choose(list(configs))
        self.asked_backend = backend
        self.backend = torch_eager.choose(backend)
        self.warmups, self.iterations, self.rounds = warmups, iterations, rounds
        self.batch_sizes = list(batch_sizes)
        self.default_threads = int(import_torch().get_num_threads())
        chosen = (self.default_threads, 1) if threads is None else (threads,)
        self.threads = list(dict.fromkeys(chosen))
        self.pin, self.timeout_s = bool(pin), timeout_s
        cells = len(self.configs) * len(self.threads) * rounds * len(self.batch_sizes)
        if cells * (warmups + iterations) > MAX_SAMPLES:
            raise InputError(
                f"this would keep {cells * (warmups + iterations):,} timings: expected at most {MAX_SAMPLES:,}, as all"
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
        return [list(configs) if number % 2 else list(reversed(configs)) for number in range(1, self.rounds + 1)]
