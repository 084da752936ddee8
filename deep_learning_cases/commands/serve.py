"""``dlcases serve``: a model as an HTTP service."""

import argparse
import ipaddress
import json
import sys
from pathlib import Path

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground import machine
from deep_learning_cases.ground.arguments import positive, whole
from deep_learning_cases.models import artefacts, engines

__all__ = ["add_arguments", "command"]

MOST_SECONDS = 3600.0
"""Of one wait for an answer; more is a slip of the finger."""

MOST_BATCH, MOST_QUEUE, MOST_THREADS = 4096, 16_384, 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def command(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; exit code 0 if every accepted request was answered, 1 if not."""
    from deep_learning_cases.serving import process

    if not 0 <= arguments.port <= 65535:
        raise InputError(f"--port is {arguments.port}: expected 0 to 65535; choose another")
    _check_sizes(arguments)
    settings = process.Settings(
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

    answered = process.serve(settings, arguments.host, arguments.port, announce)
    return 0 if answered else 1


def _check_sizes(arguments: argparse.Namespace) -> None:
    """Before a model is loaded or a thread started; and a remark on threads that have no core."""
    whole(arguments.max_batch, "largest batch (--max-batch)", most=MOST_BATCH)
    whole(arguments.queue, "queue bound (--queue)", most=MOST_QUEUE)
    whole(arguments.threads, "threads (--threads)", most=MOST_THREADS)
    waits = (
        ("longest wait", arguments.max_wait_ms / 1e3, True),
        ("request timeout", arguments.request_timeout_s, False),
    )
    for name, seconds, zero in waits:
        positive(seconds, f"{name} (seconds)", zero=zero, most=MOST_SECONDS)
    cores = machine.usable_cores()
    if arguments.threads > cores:
        print(
            f"dlcases serve: {arguments.threads} threads on {cores} usable core{'s' if cores > 1 else ''}: they take"
            " turns, and fewer are usually faster",
            file=sys.stderr,
        )


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
