"""Every public function that takes a whole number or seconds takes the same ones, and refuses the same in one line."""

import contextlib
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from deep_learning_cases import bench, cases, load, noise
from deep_learning_cases.batching import arrivals, choice, queueing, service_times, simulation
from deep_learning_cases.errors import FileError, InputError, MissingDependencyError, one_line
from deep_learning_cases.ground import arguments
from deep_learning_cases.latency import boundaries, case, fresh_starts, over_http
from deep_learning_cases.latency.record import STAGES
from deep_learning_cases.measuring import distributions, fresh_process, stats, timing
from deep_learning_cases.models import conv, data, engines, network
from deep_learning_cases.quantizing import subjects
from deep_learning_cases.quantizing.comparison import compare, plan
from deep_learning_cases.serving import images, predictor, process
from deep_learning_cases.serving.load import starts as load_starts

NOWHERE = Path("/nowhere/at/all")
X = np.ones((1, 3, 9, 9))


class BeyondError(Exception):
    """The arguments were taken: what comes after them is no part of these tests."""


class Elsewhere:
    def __getattr__(self, name: str) -> Any:
        raise BeyondError


def launched(*_: Any) -> Any:
    raise BeyondError


def probed(*_: Any) -> dict[str, Any]:
    return {"fits": False, "peak_rss_bytes": 1, "before_bytes": 1, "source": "here", "reason": "too large"}


def cold(batches: Any = (1,), starts: Any = 1) -> object:
    return fresh_starts.cold(batches, starts=starts, launch=lambda *_: {"stages": dict.fromkeys(STAGES, 1.0)})


def latency(**settings: Any) -> object:
    return case.latency_case(**({"batches": 1, "warmups": 0, "trials": 1} | settings))


def series(warmups: Any = 0, trials: Any = 1, seconds: Any = None) -> object:
    ticks = iter(range(1000, 10**9, 1000))
    return boundaries.series(lambda _: None, [0], 1, warmups, trials, seconds, lambda: next(ticks))


def sent(**settings: Any) -> None:
    """A load for a port where nobody listens: what is wrong with the arguments is said before that."""
    try:
        load.send("http://127.0.0.1:9", [b"image"], **({"concurrency": 1} | settings))
    except InputError as error:
        if "nobody answers" not in str(error):
            raise


def chosen(**settings: Any) -> object:
    quick = {"candidates": [queueing.Policy()], "seeds": 2, "requests": 1000}
    return choice.choose_policy(100.0, choice.Objective(1.0), service_times.Constant(0.001), **(quick | settings))


def summarised(**settings: Any) -> object:
    return simulation.summarise(
        arrivals.Poisson(1.0), service_times.Constant(0.1), queueing.Policy(), **({"requests": 100} | settings)
    )


class Taker(NamedTuple):
    """``call(value)`` hands ``value`` to one argument; ``good`` is accepted, and None as well if ``optional``."""

    name: str
    call: Callable[[Any], object]
    good: int = 3
    optional: bool = False


WHOLE = [
    Taker("whole", lambda v: arguments.whole(v, "it")),
    Taker("distinct_sizes", lambda v: arguments.distinct_sizes([v])),
    *(
        Taker(f"bench {name}", lambda v, name=name: bench.measure(NOWHERE, **{name: v}))
        for name in ("rounds", "warmups", "repetitions", "threads", "batch_sizes")
    ),
    Taker("bench.run", lambda v: bench.run(NOWHERE, rounds=v)),
    *(
        Taker(f"noise {name}", lambda v, name=name: noise.measure(NOWHERE, **{name: v}))
        for name in ("trials", "rounds")
    ),
    *(
        Taker(f"latency_case {name}", lambda v, name=name: latency(**{name: v}))
        for name in ("batches", "warmups", "trials", "seed", "threads")
    ),
    Taker("cold batches", lambda v: cold(batches=v)),
    Taker("cold starts", lambda v: cold(starts=v)),
    Taker("memory batches", lambda v: fresh_starts.memory(v, launch=probed)),
    Taker("memory limit", lambda v: fresh_starts.memory((1,), limit_bytes=v, launch=probed), optional=True),
    Taker("series warmups", lambda v: series(warmups=v)),
    Taker("series trials", lambda v: series(trials=v)),
    Taker("preprocessing batches", lambda v: boundaries.preprocessing(v, 8, warmups=1, trials=1)),
    Taker("preprocessing width", lambda v: boundaries.preprocessing(1, v, warmups=1, trials=1), good=30),
    *(
        Taker(f"service {name}", lambda v, name=name: over_http.measure_service(**({"batches": 1} | {name: v})))
        for name in ("batches", "warmups", "trials")
    ),
    Taker("time_calls warmups", lambda v: timing.time_calls(len, [()], v, 1)),
    Taker("time_calls repetitions", lambda v: timing.time_calls(len, [()], 0, v)),
    Taker("loop_overhead_us", lambda v: timing.loop_overhead_us(repetitions=v)),
    Taker("clock_resolution_ns", lambda v: timing.clock_resolution_ns(readings=v)),
    Taker("latency_summary", lambda v: stats.latency_summary([1.0], v)),
    Taker("t_quantile", lambda v: distributions.t_quantile(0.975, v)),
    Taker("proportion hits", lambda v: distributions.proportion_interval(v, 5)),
    Taker("proportion n", lambda v: distributions.proportion_interval(0, v)),
    Taker("alternating", lambda v: fresh_process.alternating("ab", v)),
    Taker("open_engine", lambda v: engines.open_engine(NOWHERE, "numpy", v)),
    Taker("check_seed", data.check_seed),
    Taker("load_digits", data.load_digits),
    Taker("train epochs", lambda v: network.train(Elsewhere(), epochs=v)),
    Taker("train seed", lambda v: network.train(Elsewhere(), seed=v)),
    Taker("subject epochs", lambda v: subjects.load("cifar10", NOWHERE, epochs=v), optional=True),
    Taker("subject qat_epochs", lambda v: subjects.load("cifar10", NOWHERE, qat_epochs=v), optional=True),
    *(
        Taker(f"plan {name}", lambda v, name=name: plan.Plan(**{name: v}), optional=name == "threads")
        for name in ("warmups", "iterations", "rounds", "batch_sizes", "threads")
    ),
    Taker("compare", lambda v: compare.compare(Elsewhere(), NOWHERE, Elsewhere(), seed=v)),
    Taker("groups", lambda v: conv.conv2d(X, np.ones((3, 1, 1, 1)), groups=v)),
    Taker("stride", lambda v: conv.conv2d(X, np.ones((1, 3, 1, 1)), stride=v)),
    Taker("padding", lambda v: conv.conv2d(X, np.ones((1, 3, 1, 1)), padding=(1, v))),
    Taker("kernel", lambda v: conv.max_pool2d(X, v)),
    Taker("photo width", lambda v: images.photo(v, "png", 1), good=30),
    Taker("photo seed", lambda v: images.photo(8, "png", v)),
    Taker("bodies", lambda v: load.make_bodies(8, count=v)),
    Taker("concurrency", lambda v: sent(concurrency=v, starts_s=np.zeros(1)), optional=True),
    Taker("starts seed", lambda v: load_starts.intended_starts_s("poisson", 100, 1, v)),
    Taker("limits", lambda v: predictor.Limits(connections=v)),
    *(
        Taker(f"settings {name}", lambda v, name=name: process.Settings("model", **({"max_batch": 1} | {name: v})))
        for name in ("threads", "max_batch", "queue_bound")
    ),
    Taker("policy max_batch", lambda v: queueing.Policy(v)),
    Taker("policy queue_bound", lambda v: queueing.Policy(1, 0.0, v), optional=True),
    Taker("objective", lambda v: choice.Objective(1.0, v)),
    Taker("candidates", lambda v: choice.default_candidates(v, 1.0)),
    Taker("choose seeds", lambda v: chosen(seeds=v)),
    Taker("choose requests", lambda v: chosen(requests=v), good=1000),
    Taker("choose seed", lambda v: chosen(seed=v)),
    Taker("burst size", lambda v: arrivals.Bursts(1.0, v)),
    Taker("arrival requests", lambda v: arrivals.arrival_times_s(arrivals.Poisson(1.0), v)),
    Taker("arrival seed", lambda v: arrivals.arrival_times_s(arrivals.Poisson(1.0), 3, v)),
    Taker("summarise requests", lambda v: summarised(requests=v), good=100),
    Taker("summarise seed", lambda v: summarised(seed=v)),
    Taker("summarise warm_up", lambda v: summarised(warm_up=v), optional=True),
    Taker("simulate seed", lambda v: simulation.simulate([0.0], service_times.Constant(1.0), queueing.Policy(), v)),
    Taker("measured batch", lambda v: service_times.Measured({v: [1.0]})),
]

SECONDS = [
    Taker("positive", lambda v: arguments.positive(v, "it")),
    Taker("bench", lambda v: bench.measure(NOWHERE, timeout_s=v)),
    Taker("noise", lambda v: noise.measure(NOWHERE, timeout_s=v)),
    Taker("run_fresh", lambda v: fresh_process.run_fresh({}, v, ("/nowhere/python",))),
    Taker("plan", lambda v: plan.Plan(timeout_s=v)),
    Taker("series", lambda v: series(seconds=v), optional=True),
    Taker("send seconds", lambda v: sent(seconds=v)),
    Taker("send timeout", lambda v: sent(timeout_s=v)),
    Taker("starts", lambda v: load_starts.intended_starts_s("poisson", 100, v)),
    Taker("limits", lambda v: predictor.Limits(body_timeout_s=v)),
    Taker("settings", lambda v: process.Settings("model", request_timeout_s=v)),
    Taker("policy", lambda v: queueing.Policy(1, v)),
    Taker("objective", choice.Objective),
    Taker("candidates", lambda v: choice.default_candidates(3, v)),
    Taker("constant", service_times.Constant),
    Taker("linear", lambda v: service_times.Linear(v, 0.0)),
    Taker("exponential", service_times.Exponential),
    Taker("mix", lambda v: service_times.Mix((v,), (1.0,))),
    Taker("rate", arrivals.Poisson),
    Taker("choose rate", lambda v: choice.choose_policy(v, choice.Objective(1.0), Elsewhere(), [])),
]

BAD = [True, np.True_, "3", None, math.nan, math.inf, -1, 10**30, 10**400, 1j, b"3"]


def accepts(taker: Taker, value: object) -> None:
    beyond = (BeyondError, FileError, MissingDependencyError, fresh_process.MeasurementError)
    with contextlib.suppress(*beyond):
        taker.call(value)


def named(taker: Taker) -> str:
    return taker.name


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint16], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("taker", [one for one in WHOLE if not one.name.startswith("service ")], ids=named)
def test_a_whole_number_of_any_kind_is_welcome(taker, kind):
    accepts(taker, kind(taker.good))


@pytest.mark.parametrize("value", [3, np.int64(3), 2.5, np.float32(2.5), np.float64(3), Fraction(5, 2)], ids=repr)
@pytest.mark.parametrize("taker", [one for one in SECONDS if one.name != "choose rate"], ids=named)
def test_seconds_of_any_kind_are_welcome(taker, value):
    accepts(taker, value)


def refused(taker: Taker, value: object) -> None:
    with pytest.raises(InputError) as caught:
        taker.call(value)
    message = str(caught.value)
    assert one_line(message, 1000) == message
    assert one_line(repr(value), 60) in message
    assert "expected" in message


@pytest.mark.parametrize("value", [*BAD, 2.0, np.float64(3), np.int64(-1)], ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize("taker", WHOLE, ids=named)
def test_what_is_no_whole_number_is_refused_in_one_line(taker, value):
    if value is not None or not taker.optional:
        refused(taker, value)


@pytest.mark.parametrize("value", [*BAD, np.float32(math.nan)], ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize("taker", SECONDS, ids=named)
def test_what_are_no_seconds_is_refused_in_one_line(taker, value):
    if value is not None or not taker.optional:
        refused(taker, value)


def test_what_is_kept_is_python_s_own_so_that_records_stay_json():
    policy = queueing.Policy(np.int64(3), np.float32(0.5), np.int32(9))
    assert json.dumps([policy.max_batch, policy.max_wait_s, policy.queue_bound]) == "[3, 0.5, 9]"
    objective = choice.Objective(np.float32(0.5), np.int64(90))
    assert json.dumps([objective.limit_s, objective.percent]) == "[0.5, 90]"
    settings = process.Settings("model", threads=np.int64(1), max_batch=np.int64(2), request_timeout_s=np.float32(1))
    assert json.dumps([settings.threads, settings.max_batch, settings.request_timeout_s]) == "[1, 2, 1.0]"
    assert type(arrivals.Bursts(np.float32(2), np.int64(3)).size) is int
    record = cases.latency_case(batches=np.int64(2), warmups=np.int64(0), trials=np.int64(2), threads=np.int64(1))
    assert json.dumps(record["protocol"] | {"distinct_inputs": None})


def test_a_number_too_long_to_write_is_still_one_line():
    with pytest.raises(InputError, match=r"it is a int too long to show: expected a whole number from 1 to 9"):
        arguments.whole(10**5000, "it")


@pytest.mark.parametrize("value", [0, 1, True, "0.5", None, math.nan, np.float32(1)], ids=repr)
def test_a_share_lies_strictly_between_0_and_1(value):
    with pytest.raises(InputError, match="expected more than 0 and less than 1"):
        arguments.fraction(value, "it")
    assert arguments.fraction(np.float32(0.5), "it") == 0.5


def test_a_json_number_is_finite_and_no_truth_value():
    assert [arguments.is_number(value) for value in (0, -1.5, 10**300)] == [True] * 3
    bad = (True, None, "1", math.nan, math.inf, -math.inf, 10**400)
    assert [arguments.is_number(value) for value in bad] == [False] * 7
    assert not arguments.is_number(0.0, math.ulp(0.0))


BY_HAND = re.compile(
    r"type\(\w+\) is not int|isinstance\(\w+, bool\) or not isinstance|[\"'] [\"']\.join\(str\(error\)|datetime\.now\("
)


def test_no_module_checks_by_hand_what_has_its_one_place():
    library = Path(arguments.__file__).parents[1]
    places = {
        path.relative_to(library).as_posix() for path in library.rglob("*.py") if BY_HAND.search(path.read_text())
    }
    assert places == {"errors.py", "ground/arguments.py", "ground/machine.py"}
