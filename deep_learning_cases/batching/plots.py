"""Latency against arrival rate for batching policies: where is each policy's knee?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deep_learning_cases.batching.arrivals import Arrivals, Poisson, arrival_times_s
from deep_learning_cases.batching.choice import Objective
from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.batching.service_times import ServiceTime
from deep_learning_cases.batching.simulation import load, simulate
from deep_learning_cases.errors import InputError, MissingDependencyError
from deep_learning_cases.ground.figures import COLOURS, FAINT, INK, Picture, plain_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curve", "curves", "latency_against_rate"]

# A marker for every colour, so that colour is never the only cue; ordered so that neighbouring sizes differ most.
STYLES = (
    (INK, "o"), (COLOURS["orange"], "^"), (COLOURS["blue"], "s"), (COLOURS["vermillion"], "D"),
    (COLOURS["green"], "v"), (COLOURS["purple"], "P"), (FAINT, "X"),
)  # fmt: skip

LOADS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)


@dataclass(frozen=True)
class Curve:
    """The objective's percentile at some rates below the policy's capacity, the rate at which its load is 1."""

    policy: Policy
    capacity_per_s: float
    rates_per_s: tuple[float, ...]
    reached_s: tuple[float, ...]


def curves(
    policies: Sequence[Policy],
    measured: ServiceTime,
    objective: Objective,
    *,
    rate_per_s: float | None = None,
    arrivals: Callable[[float], Arrivals] = Poisson,
    requests: int = 10_000,
    seed: int = 0,
    progress: Callable[[Sequence[Policy]], Iterable[Policy]] = iter,
) -> list[Curve]:
    """Simulate each policy at loads from 0.02 to 0.98, and at ``rate_per_s`` where that is below its capacity."""
    found = []
    for policy in progress(policies):
        capacity = 1 / load(1.0, measured, policy)
        rates = {capacity * share for share in LOADS}
        if rate_per_s is not None and rate_per_s < LOADS[-1] * capacity:
            rates.add(rate_per_s)
        ordered = tuple(sorted(rates))
        streams = (arrival_times_s(arrivals(rate), requests, seed) for rate in ordered)
        reached = tuple(objective.reached_s(simulate(times, measured, policy, seed)) for times in streams)
        found.append(Curve(policy, capacity, ordered, reached))
    return found


def latency_against_rate(found: Sequence[Curve], objective: Objective, rate_per_s: float | None = None) -> Picture:
    """One panel per longest wait, one line per largest batch, dotted verticals where a queue grows for ever.

    Raises InputError for no curves and MissingDependencyError without matplotlib.
    """
    if not found:
        raise InputError("no curves to draw: expected at least one policy")
    try:
        from matplotlib.figure import Figure as NewFigure
    except ImportError as error:
        raise MissingDependencyError("the figure needs matplotlib: install it with: pip install matplotlib") from error

    waits = sorted({curve.policy.max_wait_s for curve in found})
    sizes = sorted({curve.policy.max_batch for curve in found})
    figure = NewFigure(figsize=(3.4 * len(waits) + 1.3, 3.6), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(waits), sharex=True, sharey=True, squeeze=False)[0]
    for wait, axes in zip(waits, panels, strict=True):
        _dress(axes, objective, rate_per_s)
        axes.set_title("greedy" if wait == 0 else f"longest wait {1e3 * wait:.3g} ms", fontsize=10, color=INK)
        for curve in (one for one in found if one.policy.max_wait_s == wait):
            _draw(axes, curve, *STYLES[sizes.index(curve.policy.max_batch) % len(STYLES)])
    for axis in (*(axes.xaxis for axes in panels), panels[0].yaxis):  # once every line is there
        plain_log(axis)
    panels[0].set_ylabel(f"p{objective.percent} of time in system, ms")
    _explain(figure, panels, [str(size) for size in sizes], rate_per_s is not None)
    caption = (
        f"Dashed: the limit, {1e3 * objective.limit_s:g} ms. Dotted: a policy's capacity; beyond it the queue grows."
    )
    if rate_per_s is not None:
        caption += f" Grey line: the declared rate, {rate_per_s:g}/s."
    return Picture(
        "latency-against-rate", "Latency against arrival rate", caption, _words(found, objective, rate_per_s), figure
    )


def _explain(figure: "Figure", panels: "Iterable[Axes]", names: list[str], with_rate: bool) -> None:
    """The legend: batch sizes, then what the straight lines are, so that the file explains itself without a caption."""
    from matplotlib.lines import Line2D

    drawn = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    straight = {
        "limit": Line2D([], [], color=INK, linestyle="--", linewidth=1),
        "capacity": Line2D([], [], color=INK, linestyle=":", linewidth=0.9),
    }
    if with_rate:
        straight["declared rate"] = Line2D([], [], color=FAINT, linewidth=3, alpha=0.5)
    handles = [drawn[name] for name in names] + list(straight.values())
    figure.legend(
        handles, [*names, *straight], title="largest batch", loc="outside right upper", frameon=False, fontsize=9
    )


def _dress(axes: "Axes", objective: Objective, rate_per_s: float | None) -> None:
    axes.set(xscale="log", yscale="log", xlabel="arrivals per second")
    axes.axhline(1e3 * objective.limit_s, color=INK, linestyle="--", linewidth=1)
    if rate_per_s is not None:
        axes.axvline(rate_per_s, color=FAINT, linewidth=3, alpha=0.5)
    axes.grid(visible=True, which="major", color=FAINT, linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelcolor=INK, labelsize=9, color=FAINT)


def _draw(axes: "Axes", curve: Curve, colour: str, marker: str) -> None:
    axes.plot(
        curve.rates_per_s,
        [1e3 * value for value in curve.reached_s],
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.3,
        label=str(curve.policy.max_batch),
    )
    axes.axvline(curve.capacity_per_s, color=colour, linestyle=":", linewidth=0.9)


def _words(found: Sequence[Curve], objective: Objective, rate_per_s: float | None) -> str:
    by_size = {curve.policy.max_batch: curve.capacity_per_s for curve in found}
    capacities = ", ".join(f"{by_size[size]:,.0f} for batches up to {size}" for size in sorted(by_size))
    text = (
        f"Line chart with logarithmic axes: p{objective.percent} of the time in the system in milliseconds against the"
        f" arrival rate per second, for {len(found)} batching policies. Latency turns steeply upwards as the rate nears"
        f" a policy's capacity, per second: {capacities}. A dashed line marks the limit of"
        f" {1e3 * objective.limit_s:g} ms"
    )
    return text + (f", a grey one the rate of {rate_per_s:g} per second." if rate_per_s is not None else ".")
