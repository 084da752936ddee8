"""Hold libraries that bring threads of their own to the number that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["blas_threads"]


@contextmanager
def blas_threads(threads: int) -> Iterator[list[dict[str, Any]] | None]:
    """Hold NumPy's linear algebra to ``threads`` threads; yields what is in force, None where that cannot be seen.

    BLAS reads its environment variables once, when NumPy is imported, which in a notebook was long ago.
    """
    try:
        import threadpoolctl  # scikit-learn brings it
    except ImportError:
        yield None
        return
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        found = [pool for pool in threadpoolctl.threadpool_info() if pool.get("user_api") == "blas"]
        yield [{"library": str(pool["internal_api"]), "threads": int(pool["num_threads"])} for pool in found]
