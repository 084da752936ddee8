"""When the requests of a load are meant to start: drawn beforehand, or read from a file."""

import math
from pathlib import Path

from deep_learning_cases.batching.arrivals import Arrivals, Bursts, Floats, Poisson, Regular, Trace, arrival_times_s
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import positive, whole

__all__ = ["MAX_REQUESTS", "MAX_SECONDS", "intended_starts_s"]

MAX_REQUESTS = 1_000_000
MAX_SECONDS = 3600.0
BURST = 10


def intended_starts_s(arrivals: str, rate_per_s: float | None, seconds: float, seed: int = 0) -> Floats:
    """When the requests of an open loop start: ``poisson``, ``constant``, ``bursts`` or ``bursts:SIZE``, or a file.

    A file holds one start per line, in seconds and in order; blank lines and what follows a ``#`` are skipped.  Starts
    at or after ``seconds`` are dropped.  InputError for nonsense, FileError for an unreadable file.
    """
    seconds = positive(seconds, "seconds", most=MAX_SECONDS)
    kind, _, size = arrivals.partition(":")
    if kind not in ("poisson", "constant", "bursts") or (size and kind != "bursts"):
        times = _recorded(arrivals)
        return times[times < seconds]
    if rate_per_s is None:
        raise InputError(f"there is no rate for {kind} arrivals: expected requests per second; give one")
    rate = positive(rate_per_s, "rate (requests per second)")
    if rate * seconds > MAX_REQUESTS:
        raise InputError(f"{rate:g} requests/s for {seconds:g} s: expected at most {MAX_REQUESTS} requests; send fewer")
    process: Arrivals = Poisson(rate) if kind == "poisson" else Regular(rate)
    expected = rate * seconds
    if kind == "bursts":
        if size and not (size.isascii() and size.isdecimal() and len(size) <= len(str(MAX_REQUESTS))):
            raise InputError(f"arrivals is {arrivals[:40]!r}: expected bursts:SIZE with a whole number; change it")
        process = Bursts(rate, whole(int(size or BURST), "burst size"))
        if process.size > MAX_REQUESTS:
            raise InputError(f"burst size is {process.size}: expected at most {MAX_REQUESTS}; send fewer at once")
        expected /= process.size
    # Eight standard deviations more events than expected, so that the stream never ends before the seconds do.
    events = math.ceil(expected + 8 * math.sqrt(expected) + 16)
    times = arrival_times_s(process, events * (process.size if isinstance(process, Bursts) else 1), seed)
    times = times[times < seconds]
    if not len(times):
        raise InputError(
            f"no request falls into {seconds:g} s at {rate:g} per second: expected at least one; take longer"
        )
    return times


def _recorded(name: str) -> Floats:
    if not Path(name).is_file():
        raise InputError(f"arrivals is {name!r}: expected poisson, constant, bursts, bursts:SIZE, or an existing file")
    text = files.read_bytes(name, 32 * MAX_REQUESTS).decode("utf-8", "replace")
    entries = [line.partition("#")[0].strip() for line in text.splitlines()]
    try:
        times = Trace([float(entry) for entry in entries if entry]).times_s
    except (ValueError, InputError) as error:
        raise InputError(
            f"{name} holds no arrivals ({error}): expected one time in seconds per line, in order"
        ) from None
    if times[0] < 0 or len(times) > MAX_REQUESTS:
        raise InputError(
            f"{name} holds {len(times)} starts from {times[0]:g} s: expected up to {MAX_REQUESTS} from 0 on"
        )
    return times
