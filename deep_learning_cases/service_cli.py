"""``dlcases serve`` and ``dlcases load``: a model as an HTTP service, and a load on it."""

import argparse
import ipaddress
import json
import sys
from pathlib import Path
from typing import Any

from deep_learning_cases import artefacts, engines, files, machine
from deep_learning_cases.errors import FileError, InputError

__all__ = ["add_load_arguments", "add_serve_arguments", "load_command", "serve_command"]


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``dlcases serve``; ``--json`` is every command's and comes from the caller."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a built evidence folder")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; the default is this machine only")
    parser.add_argument("--port", type=int, default=0, help="(0: a free one, printed)")
    parser.add_argument("--max-batch", type=int, default=32, help="largest batch (32)")
    parser.add_argument(
        "--max-wait-ms", type=float, default=2.0, help="longest wait for a batch to fill; 0: greedy (2)"
    )
    parser.add_argument("--queue", type=int, default=256, help="so many may wait, more get 503 (256)")
    parser.add_argument("--engine", default="onnxruntime", choices=engines.ENGINES, help="(onnxruntime)")
    parser.add_argument("--model", default="fp32", choices=("fp32", "int8"), help="(fp32)")
    parser.add_argument("--threads", type=int, default=1, help="of inference (1)")
    parser.add_argument("--request-timeout-s", type=float, default=10.0, help="no answer by then: 504 (10)")


def serve_command(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; exit code 0 if every accepted request was answered, 1 if not."""
    from deep_learning_cases import service_process

    if not 0 <= arguments.port <= 65535:
        raise InputError(f"--port is {arguments.port}: expected 0 to 65535; choose another")
    settings = service_process.Settings(
        str(_model(arguments.folder, arguments.engine, arguments.model)),
        engine=arguments.engine,
        threads=arguments.threads,
        max_batch=arguments.max_batch,
        max_wait_s=arguments.max_wait_ms / 1e3,
        queue_bound=arguments.queue,
        request_timeout_s=arguments.request_timeout_s,
    )
    if not _is_loopback(arguments.host):
        print(f"dlcases serve: {arguments.host} is reachable from other machines, without a password", file=sys.stderr)

    def announce(url: str) -> None:
        facts = {"url": url, "engine": settings.engine, "model": settings.model, "policy": str(settings.policy)}
        as_json = getattr(arguments, "json", False)
        print(json.dumps(facts) if as_json else url, flush=True)
        if not as_json:
            print(f"{settings.engine}, {settings.model}; {settings.policy}; stop with Ctrl-C", file=sys.stderr)

    answered = service_process.serve(settings, arguments.host, arguments.port, announce)
    return 0 if answered else 1


def add_load_arguments(parser: argparse.ArgumentParser) -> None:
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


def load_command(arguments: argparse.Namespace) -> int:
    """Send a load and print what became of it; exit code 1 where no request was answered."""
    from tqdm import tqdm

    from deep_learning_cases import load, load_report, load_starts

    if arguments.rate is None and arguments.concurrency is None and _is_drawn(arguments.arrivals):
        raise InputError("neither --rate nor --concurrency is given: expected requests per second, or clients in turn")
    if arguments.out is not None and (not arguments.out.parent.is_dir() or arguments.out.is_dir()):
        raise FileError(f"cannot write {arguments.out}: expected a file in an existing folder; make the folder first")
    starts_s = None
    if arguments.rate is not None or not _is_drawn(arguments.arrivals):
        starts_s = load_starts.intended_starts_s(arguments.arrivals, arguments.rate, arguments.seconds, arguments.seed)
    bodies = _images(arguments.image) if arguments.image else load.make_bodies(arguments.width, seed=arguments.seed)
    total = None if starts_s is None else len(starts_s)
    with tqdm(total=total, desc="sending", unit="request", disable=None, leave=False, file=sys.stderr) as bar:
        fates = load.send(
            arguments.url,
            bodies,
            starts_s=starts_s,
            concurrency=arguments.concurrency,
            seconds=arguments.seconds,
            timeout_s=arguments.timeout_s,
            allow_remote=arguments.allow_remote,
            progress=None if bar.disable else lambda ended: bar.update(ended - bar.n),
        )
    result = load_report.summary(fates)
    if arguments.out is not None:
        files.write_json(arguments.out, load_report.record(fates, _settings(arguments, bodies)))
    if getattr(arguments, "json", False):
        print(json.dumps(result, indent=1, allow_nan=False))
    else:
        print("\n".join(load_report.lines(result)))
        if arguments.concurrency is not None:
            print(_CLOSED_WITH_RATE if starts_s is not None else _CLOSED)
        if arguments.out is not None:
            print(f"every request: {arguments.out}")
    return 0 if result["answered"] else 1


_CLOSED = (
    "closed loop: a slow service was sent fewer requests, and the waiting of those that were not sent is in no number;"
    " for what users meet, give --rate alone"
)
_CLOSED_WITH_RATE = (
    "closed loop with a rate: clients that still waited sent late; 'from sending' omits that waiting, 'from the"
    " intended start' does not"
)


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


def _model(folder: Path, engine: str, precision: str) -> Path:
    if precision == "int8" and engine != "onnxruntime":
        raise InputError(
            f"--model int8 with --engine {engine}: expected onnxruntime, which alone runs int8; change one"
        )
    name = artefacts.WEIGHTS if engine != "onnxruntime" else artefacts.INT8 if precision == "int8" else artefacts.FP32
    path = folder / name
    if not path.is_file():
        raise FileError(f"{path} is no file: expected a built evidence folder; make one with: dlcases build {folder}")
    return path


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
