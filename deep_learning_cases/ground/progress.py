"""A progress bar on standard error for whatever takes more than a second; silent where nobody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "progress_steps"]

Progress = Callable[[int, int, str], object]


@contextmanager
def progress_steps(callback: Progress | None, total: int) -> Iterator[Callable[[int, str], object]]:
    """Yields ``step(done, name)`` for a task of ``total`` steps: the callback if there is one, else a bar."""
    if callback is not None:
        yield lambda done, name: callback(done, total, name)
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda *_: None
        return
    with tqdm(total=total, desc="measuring", unit="process", disable=None, file=sys.stderr, leave=False) as bar:

        def show(done: int, name: str) -> None:
            bar.set_postfix_str(name, refresh=False)
            bar.update(done - bar.n)
            bar.refresh()

        yield show
