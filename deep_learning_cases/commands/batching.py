"""``dlcases batching``: simulate one policy, or choose one from measured service times."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from deep_learning_cases import batching
from deep_learning_cases.batching.arrivals import Arrivals, Bursts, Poisson, Regular
from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.batching.service_times import Constant, Exponential, Linear, Measured, Mix, ServiceTime
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import positive, whole

__all__ = ["add_arguments", "command", "parse_arrivals", "parse_service"]

Number = TypeVar("Number", int, float)

SERVICES = "const:S, exp:MEAN, linear:A,B or mix:S1@P1,S2@P2 (seconds)"

FIGURE = Path("batching.png")

MOST_SECONDS = 1e6
"""Of a service time or a wait: eleven days."""
MOST_RATE = 1e9
MOST_BATCH, MOST_BURST, MOST_SEEDS = 100_000, 1_000_000, 10_000
MOST_REQUESTS, MOST_QUEUE = 10**10, 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``dlcases batching``; ``--json`` is every command's and comes from the caller."""
    parser.add_argument("--rate", type=float, required=True, help="arrivals per second")
    parser.add_argument("--arrivals", default="poisson", help="poisson (default), constant, or burst:SIZE")
    parser.add_argument("--max-batch", help="largest batch; without --simulate, a list to choose from: 1,8,32")
    parser.add_argument("--max-wait", help="longest wait in seconds, 0 is greedy; without --simulate, a list")
    parser.add_argument("--queue-bound", type=int, help="so many may wait, the rest is refused (no bound)")
    parser.add_argument("--requests", type=int, help="(simulate: 1,000,000; choose: 40,000 per seed)")
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    parser.add_argument("--simulate", action="store_true", help="simulate one policy with --service")
    parser.add_argument("--service", help=f"time of a batch of m: {SERVICES}; linear is A + B*m")
    parser.add_argument("--from", dest="measured", type=Path, help="measured samples: latency.json or benchmark.json")
    parser.add_argument("--model", help="which model of the file (needed where it holds several)")
    parser.add_argument("--slo-p95-ms", type=float, help="95 %% of all requests answered within so many milliseconds")
    parser.add_argument("--seeds", type=int, default=8, help="runs of each candidate (8)")
    parser.add_argument("--figure", type=Path, help=f"where the figure goes ({FIGURE})")


def command(arguments: argparse.Namespace) -> int:
    """Run ``dlcases batching``; returns the exit code, raises InputError for a call that makes no sense."""
    _check_given(arguments)
    return _simulate(arguments) if arguments.simulate else _choose(arguments)


def _check_given(arguments: argparse.Namespace) -> None:
    """What was given comes before what is missing: whoever adds that should not hear of the rest only then."""
    parse_arrivals(arguments.arrivals)(arguments.rate)
    rate = positive(arguments.rate, "rate (requests per second)", most=MOST_RATE)
    if rate < 1 / MOST_SECONDS:
        raise InputError(f"rate (requests per second) is {rate:g}: expected at least {1 / MOST_SECONDS:g}; change it")
    for name, most in (("requests", MOST_REQUESTS), ("seeds", MOST_SEEDS), ("queue_bound", MOST_QUEUE)):
        value = getattr(arguments, name)
        if value is not None:
            what = name.replace("_", " ")
            whole(value, what, most=most)
    if arguments.service is not None:
        parse_service(arguments.service)
    if arguments.max_batch is not None:
        _policies(arguments)
    if arguments.slo_p95_ms is not None:
        _objective(arguments)


def _objective(arguments: argparse.Namespace) -> batching.Objective:
    positive(arguments.slo_p95_ms, "--slo-p95-ms", most=1e3 * MOST_SECONDS)
    return batching.Objective(arguments.slo_p95_ms / 1e3)


def parse_service(text: str) -> ServiceTime:
    """``const:S``, ``exp:MEAN``, ``linear:A,B`` (A + B*m) or ``mix:S1@P1,S2@P2``, all in seconds."""
    kind, _, values = text.partition(":")
    if kind in ("const", "exp"):
        (seconds,) = _seconds(values, text, count=1)
        return Constant(seconds) if kind == "const" else Exponential(seconds)
    if kind == "linear":
        return Linear(*_seconds(values, text, count=2))
    if kind == "mix":
        pairs = [_seconds(pair.replace("@", ","), text, count=2) for pair in values.split(",")]
        return Mix(tuple(seconds for seconds, _ in pairs), tuple(probability for _, probability in pairs))
    raise InputError(f"--service is {text!r}: expected {SERVICES}")


def parse_arrivals(text: str) -> Callable[[float], Arrivals]:
    """``poisson``, ``constant`` or ``burst:SIZE``: a function from the rate to the arrival process."""
    kind, _, value = text.partition(":")
    if text == "poisson":
        return Poisson
    if text == "constant":
        return Regular
    if kind == "burst":
        (size,) = _numbers(value, int, f"--arrivals {text}", count=1)
        whole(size, "burst size", most=MOST_BURST)
        return lambda rate_per_s: Bursts(rate_per_s, size)
    raise InputError(f"--arrivals is {text!r}: expected poisson, constant or burst:SIZE")


def _numbers(text: str, kind: Callable[[str], Number], name: str, count: int | None = None) -> list[Number]:
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or (count is not None and len(numbers) != count):
        what = "comma-separated numbers" if count is None else f"{count} number{'s' if count > 1 else ''}"
        raise InputError(f"{name}: expected {what}, got {text!r}")
    return numbers


def _seconds(text: str, service: str, count: int) -> list[float]:
    numbers = _numbers(text, float, f"--service {service}", count)
    return [positive(number, f"a time of --service {service}", zero=True, most=MOST_SECONDS) for number in numbers]


def _policies(arguments: argparse.Namespace) -> list[Policy]:
    sizes = [
        whole(size, "largest batch", most=MOST_BATCH) for size in _numbers(arguments.max_batch, int, "--max-batch")
    ]
    waits = _numbers(arguments.max_wait or "0", float, "--max-wait")
    waits = [positive(wait, "longest wait (seconds)", zero=True, most=MOST_SECONDS) for wait in waits]
    return [Policy(size, wait, arguments.queue_bound) for size in sizes for wait in waits]


def _simulate(arguments: argparse.Namespace) -> int:
    for name in ("service", "max_batch"):
        if getattr(arguments, name) is None:
            raise InputError(f"--simulate without --{name.replace('_', '-')}: expected the policy and its service time")
    policies = _policies(arguments)
    if len(policies) > 1:
        raise InputError("--simulate takes one policy: expected one number for --max-batch and one for --max-wait")
    (policy,) = policies
    service, arrivals = parse_service(arguments.service), parse_arrivals(arguments.arrivals)(arguments.rate)
    requests = 1_000_000 if arguments.requests is None else arguments.requests
    summary = batching.summarise(arrivals, service, policy, requests, arguments.seed)
    offered = batching.load(arguments.rate, service, policy)
    for warning in _warnings(summary, offered, policy):
        print(f"dlcases batching: {warning}", file=sys.stderr)
    if arguments.json:
        bounded = {} if policy.queue_bound is None else {"offered": summary.offered, "refused": summary.refused}
        print(json.dumps(summary.as_dict() | bounded, indent=1, allow_nan=False))
    else:
        print("\n".join(_lines(summary, offered, policy)))
    return 0


def _warnings(summary: batching.Summary, offered: float, policy: Policy) -> list[str]:
    if offered >= 1 and policy.queue_bound is None:
        return [f"unstable: the load is {offered:.4g}, expected below 1; the waits only tell how long the run was"]
    if not summary.trusted:
        known = "too few requests" if summary.independent is None else f"about {summary.independent:.0f} independent"
        return [f"the run is short for its load ({known} waits): the standard error is a guess; raise --requests"]
    return []


def _lines(summary: batching.Summary, offered: float, policy: Policy) -> list[str]:
    error = "unknown" if summary.standard_error_s is None else f"{summary.standard_error_s:.3g} s"
    counted = f"{summary.counted} requests counted after {summary.warm_up} of warm-up"
    return [
        f"{policy}; load {offered:.4g}, busy {100 * summary.utilisation:.1f} %, mean batch {summary.mean_batch:.2f}",
        f"{counted}; {summary.refused} of {summary.offered} refused; percentiles nearest rank, {summary.percentiles}",
        f"{'seconds':<16}{'mean':>12}{'p50':>12}{'p95':>12}{'p99':>12}",
        *(
            f"{title:<16}" + "".join(f"{getattr(summary, key):>12.6g}" for key in keys)
            for title, keys in (("wait", summary.KEYS[:4]), ("time in system", summary.KEYS[4:8]))
        ),
        f"standard error of the mean wait {error} (correlation accounted for)",
    ]


def _choose(arguments: argparse.Namespace) -> int:
    if arguments.measured is None or arguments.slo_p95_ms is None:
        raise InputError("choosing a policy needs --from FILE and --slo-p95-ms MS: expected both, or --simulate")
    _format(arguments.figure or FIGURE)
    measured = _model(arguments)
    objective = _objective(arguments)
    arrivals = parse_arrivals(arguments.arrivals)
    if arguments.max_batch is None:
        candidates = batching.default_candidates(measured.largest, objective.limit_s, arguments.queue_bound)
    else:
        candidates = _policies(arguments)
    progress = _progress("choosing")
    choice = batching.choose_policy(
        arguments.rate,
        objective,
        measured,
        candidates,
        arrivals=arrivals,
        requests=40_000 if arguments.requests is None else arguments.requests,
        seeds=arguments.seeds,
        seed=arguments.seed,
        progress=progress,
    )
    path, words = _draw(arguments, candidates, measured, objective, arrivals)
    if arguments.json:
        print(json.dumps(choice.as_dict() | {"figure": str(path), "alt_text": words}, indent=1, allow_nan=False))
    else:
        print("\n".join([*_table(choice), f"figure: {path}", f"  {words}"]))
    return 0


def _model(arguments: argparse.Namespace) -> Measured:
    models = batching.read_measured(arguments.measured)
    name = arguments.model or (next(iter(models)) if len(models) == 1 else None)
    if name not in models:
        asked = "no --model" if name is None else f"--model {name}"
        raise InputError(f"{asked}, and {arguments.measured} holds {', '.join(models)}: expected one of them")
    return models[name]


def _draw(
    arguments: argparse.Namespace,
    candidates: Sequence[Policy],
    measured: Measured,
    objective: batching.Objective,
    arrivals: Callable[[float], Arrivals],
) -> tuple[Path, str]:
    from deep_learning_cases.batching import plots

    path = arguments.figure or FIGURE
    found = plots.curves(
        candidates,
        measured,
        objective,
        rate_per_s=arguments.rate,
        arrivals=arrivals,
        seed=arguments.seed,
        progress=_progress("drawing"),
    )
    picture = plots.latency_against_rate(found, objective, arguments.rate)
    content = io.BytesIO()
    picture.figure.savefig(content, format=_format(path), metadata={_FORMATS[_format(path)]: picture.alt_text})
    files.write_bytes(path, content.getvalue())
    return path, picture.alt_text


_FORMATS = {"png": "Description", "svg": "Description", "pdf": "Subject"}
"""File formats of the figure, and where each keeps the description."""


def _format(path: Path) -> str:
    kind = path.suffix.lstrip(".").lower()
    if kind not in _FORMATS:
        raise InputError(f"--figure is {path}: expected a name that ends in .png, .svg or .pdf")
    return kind


def _table(choice: batching.Choice) -> list[str]:
    name = f"p{choice.objective.percent}"
    lines = [
        f"{choice.rate_per_s:g} requests/s; {choice.objective}; {choice.seeds} seeds of {choice.requests} requests",
        (
            f"{'policy':<32}{'load':>7}{name + ' ms':>11}{'95 % interval':>20}"
            f"{'seeds':>7}{'busy %':>8}{'batch':>7}{'refused %':>10}"
        ),
    ]
    for row in choice.readings:
        text = f"{row.policy!s:<32}{row.load:>7.3f}"
        if row.load >= 1 and row.policy.queue_bound is None:
            lines.append(f"{text}   grows for ever")
            continue
        interval = f"{1e3 * row.low_s:.4g} to {1e3 * row.high_s:.4g}"
        lines.append(
            f"{text}{1e3 * row.reached_s:>11.4g}{interval:>20}{f'{row.seeds_met}/{choice.seeds}':>7}"
            f"{100 * row.cost:>8.1f}{row.mean_batch:>7.2f}{100 * row.refused:>10.3g}  {row.verdict}"
        )
    return [*lines, f"{'chosen: ' if choice.chosen else 'none: '}{choice.reason}"]


def _progress(what: str) -> Callable[[Sequence[Policy]], Any]:
    from tqdm import tqdm

    return lambda policies: tqdm(policies, desc=what, unit="policy", leave=False, disable=None, file=sys.stderr)
