"""What every figure shares: a logarithmic axis that can be read, whatever it spans."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from deep_learning_cases import comparison_plots
from deep_learning_cases.ground import figures
from deep_learning_cases.latency import plots as latency_plots
from deep_learning_cases.latency import record as latency_record
from deep_learning_cases.quantizing.comparison import summary
from deep_learning_cases.release.report import plots

DECADES = [1.02, 1.5, 3, 30, 300, 3000, 1e6]


@pytest.mark.parametrize(
    ("low", "high", "inches", "ticks"),
    [
        (70, 2100, 2.2, [100, 200, 500, 1000, 2000]),
        (70, 21_000, 2.2, [100, 300, 1000, 3000, 10_000]),
        (70, 210_000, 2.2, [100, 1000, 10_000, 100_000]),
        (70, 110, 2.2, [70, 80, 90, 100, 110]),
        (123.27, 123.3933, 4, [123.28, 123.3, 123.32, 123.34, 123.36, 123.38]),
        (0.03, 0.9, 2.2, [0.05, 0.1, 0.2, 0.5]),
        (1e-3, 1e6, 4.3, [0.01, 1, 100, 10_000, 1_000_000]),
    ],
)
def test_ticks_worked_by_hand(low, high, inches, ticks):
    assert figures.log_ticks(low, high, inches) == pytest.approx(ticks)


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e9), st.floats(0.5, 8), st.booleans())
def test_ticks_lie_inside_in_order_and_are_at_least_two(low, ratio, inches, level):
    ticks = figures.log_ticks(low, low * ratio, inches, level)
    assert len(ticks) >= 2
    assert all(left < right for left, right in itertools.pairwise(ticks))
    assert low * (1 - 1e-6) <= ticks[0]
    assert ticks[-1] <= low * ratio * (1 + 1e-6)


def drawn(axis) -> list[str]:
    """The labels of an axis as they are drawn; fails where two of them touch or are cut off at the figure's edge."""
    FigureCanvasAgg(axis.axes.figure).draw()
    low, high = sorted(axis.get_view_interval())
    shown = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    labels = [label for label in shown if label.get_visible() and label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    for left, right in itertools.combinations(boxes, 2):
        assert not left.overlaps(right), [label.get_text() for label in labels]
    return [label.get_text() for label in labels]


def spread(ratio: float, count: int = 40) -> list[float]:
    return [70 * ratio ** (rank / (count - 1)) for rank in range(count)]


def enough(labels: list[str]) -> bool:
    return len(labels) >= 2 and not any("10^" in label or "e" in label for label in labels)


@pytest.mark.parametrize("ratio", DECADES)
def test_the_distributions_of_a_comparison_can_be_read(ratio):
    runs = [
        {
            "round": number, "position": 1, "config": "fp32", "threads": 1,
            "samples_us": {size: spread(ratio) for size in ("1", "8", "32")},
        }
        for number in (1, 2)
    ]  # fmt: skip
    record = {
        "methodology": {"batch_sizes": [1, 8, 32], "threads": [1]},
        "configs": {"fp32": {}},
        "runs": runs,
        "summary": summary.summary_of(runs),
    }
    picture = comparison_plots.distributions(record, "1")
    for axes in picture.figure.axes:
        labels = drawn(axes.xaxis)
        assert enough(labels)
        if 3 <= ratio <= 3000:
            assert len(labels) >= 3, labels


@pytest.mark.slow
@pytest.mark.parametrize("ratio", DECADES)
def test_the_figures_of_a_latency_record_can_be_read(ratio):
    times_ms = [one / 1e3 for one in spread(ratio)]
    rows = {size: latency_record.row(times_ms, times_ms[:2], size) for size in (1, 8, 32)}
    (axes,) = latency_plots.distribution(rows).figure.axes
    assert len(drawn(axes.xaxis)) >= 3
    for axes in latency_plots.cost({"model only": rows}).figure.axes:
        assert drawn(axes.xaxis) == ["1", "8", "32"]
        assert enough(drawn(axes.yaxis))


@pytest.mark.parametrize("worst", [3, 30, 3000])
def test_the_strip_of_slow_calls_can_be_read(worst):
    samples = [100 + call % 7 for call in range(98)] + [100 * math.sqrt(worst), 100.0 * worst]
    record = {
        "protocol": {"batch_sizes": [1]},
        "models": {"fp32": {"bytes": 1}},
        "runs": [{"round": 1, "model": "fp32", "samples_us": {"1": samples}}],
    }
    strip = plots.samples_in_order(record, "fp32", 1).figure.axes[0]
    assert strip.get_yscale() == "log"
    assert enough(drawn(strip.yaxis))


def test_the_batching_figure_can_be_read():
    from deep_learning_cases import batching, batching_plots
    from deep_learning_cases.batching.queueing import Policy
    from deep_learning_cases.batching.service_times import Linear

    policies = [Policy(size, wait_s) for size in (1, 8, 32) for wait_s in (0.0, 0.005)]
    objective = batching.Objective(0.05)
    found = batching_plots.curves(policies, Linear(1e-3, 1e-4), objective, rate_per_s=300, requests=500)
    panels = batching_plots.latency_against_rate(found, objective, 300).figure.axes
    assert all(len(drawn(axes.xaxis)) >= 3 for axes in panels)
    assert enough(drawn(panels[0].yaxis))
