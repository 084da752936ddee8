"""``dlcases load``: requests at a declared rate to a running service, each timed from its intended start."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep_learning_cases.errors import INTERRUPTED, FileError, InputError
from deep_learning_cases.ground import command_line, files, machine, out_folder
from deep_learning_cases.ground.arguments import positive, whole
from deep_learning_cases.models import data

if TYPE_CHECKING:
    from deep_learning_cases.batching.arrivals import Floats
    from deep_learning_cases.serving.load.send import Fate

__all__ = ["add_arguments", "command"]

MOST_SECONDS = 3600.0
"""Of one wait for an answer; more is a slip of the finger."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``dlcases load``; ``--json`` is every command's and comes from the caller."""
    parser.add_argument("url", metavar="URL", help="of the service, as dlcases serve prints it")
    parser.add_argument("--rate", type=float, help="requests per second, on average")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long requests start (10)")
    parser.add_argument(
        "--arrivals", default="poisson", help="poisson (default), constant, bursts[:SIZE], or a file of start times"
    )
    parser.add_argument("--concurrency", type=int, help="closed loop: so many clients, each waits for its answer")
    parser.add_argument("--timeout-s", type=float, default=10.0, help="of one request (10)")
    parser.add_argument("--seed", type=int, default=0, help="of arrivals and images (0)")
    parser.add_argument("--image", type=Path, action="append", help="PNG or JPEG to send; may be given several times")
    parser.add_argument("--width", type=int, default=64, help="of made-up images, in pixels (64)")
    parser.add_argument("--out", type=Path, help="keep every request: a JSON file")
    parser.add_argument("--allow-remote", action="store_true", help="the target is not this machine, and you may")


def command(arguments: argparse.Namespace) -> int:
    """Send a load and print what became of it; exit code 1 where no request was answered.

    After Ctrl-C the same with the requests that were sent until then, and exit code 130.
    """
    from deep_learning_cases.serving.load import report, send, starts

    if arguments.rate is None and arguments.concurrency is None and _is_drawn(arguments.arrivals):
        raise InputError("neither --rate nor --concurrency is given: expected requests per second, or clients in turn")
    data.check_seed(arguments.seed)
    positive(arguments.timeout_s, "timeout (seconds)", most=MOST_SECONDS)
    if arguments.concurrency is not None:
        whole(arguments.concurrency, "concurrency", most=send.MAX_CONCURRENCY)
    if arguments.out is not None:
        _check_place(arguments.out)
    starts_s = None
    if _has_starts(arguments):
        starts_s = starts.intended_starts_s(arguments.arrivals, arguments.rate, arguments.seconds, arguments.seed)
    bodies = _images(arguments.image) if arguments.image else send.make_bodies(arguments.width, seed=arguments.seed)
    interrupted = False
    try:
        fates = _send(arguments, bodies, starts_s)
    except send.LoadInterrupted as stop:
        if not stop.fates:
            raise
        fates, interrupted = stop.fates, True
    result = report.summary(fates, interrupted)
    if arguments.out is not None:
        record = report.record(fates, _settings(arguments, bodies), interrupted)
        report.check(record, str(arguments.out))
        files.write_json(arguments.out, record)
    command_line.emit(arguments, result, _lines(arguments, result))
    if interrupted:
        kept = "nothing is kept, as no --out was given"
        if arguments.out is not None:
            kept = f"they are in {arguments.out}, marked as interrupted"
        print(f"dlcases load: stopped by Ctrl-C after {len(fates)} requests; {kept}", file=sys.stderr)
        return INTERRUPTED
    return 0 if result["answered"] else 1


def _check_place(out: Path) -> None:
    """Before anything is sent: a wrong path should not cost the load."""
    if not out.parent.is_dir() or out.is_dir():
        raise FileError(f"cannot write {out}: expected a file in an existing folder; make the folder first")
    out_folder.check_room(out.parent)


def _send(arguments: argparse.Namespace, bodies: list[bytes], starts_s: "Floats | None") -> "list[Fate]":
    from tqdm import tqdm

    from deep_learning_cases.serving.load import send

    total = None if starts_s is None else len(starts_s)
    with tqdm(total=total, desc="sending", unit="request", disable=None, leave=False, file=sys.stderr) as bar:
        return send.send(
            arguments.url,
            bodies,
            starts_s=starts_s,
            concurrency=arguments.concurrency,
            seconds=arguments.seconds,
            timeout_s=arguments.timeout_s,
            allow_remote=arguments.allow_remote,
            progress=None if bar.disable else lambda ended: bar.update(ended - bar.n),
        )


def _lines(arguments: argparse.Namespace, result: dict[str, Any]) -> list[str]:
    from deep_learning_cases.serving.load import report

    lines = report.lines(result)
    if arguments.concurrency is not None:
        lines.append(_CLOSED_WITH_RATE if _has_starts(arguments) else _CLOSED)
    if arguments.out is not None:
        lines.append(f"every request: {arguments.out}")
    return lines


_CLOSED = (
    "closed loop: a slow service was sent fewer requests, and the waiting of those that were not sent is in no number;"
    " for what users meet, give --rate alone"
)
_CLOSED_WITH_RATE = (
    "closed loop with a rate: clients that still waited sent late; 'from sending' omits that waiting, 'from the"
    " intended start' does not"
)


def _has_starts(arguments: argparse.Namespace) -> bool:
    """Whether requests have intended starts: drawn at a rate, or read from a file."""
    return arguments.rate is not None or not _is_drawn(arguments.arrivals)


def _is_drawn(arrivals: str) -> bool:
    return arrivals.partition(":")[0] in ("poisson", "constant", "bursts")


def _settings(arguments: argparse.Namespace, bodies: list[bytes]) -> dict[str, Any]:
    names = ("url", "rate", "seconds", "arrivals", "concurrency", "timeout_s", "seed")
    return {name: getattr(arguments, name) for name in names} | {
        "images": len(bodies),
        "mean_image_bytes": round(sum(map(len, bodies)) / len(bodies)),
        "load_average_after": machine.load_average(),
    }


def _images(paths: list[Path]) -> list[bytes]:
    return [files.read_bytes(path, 64 << 20) for path in paths]
