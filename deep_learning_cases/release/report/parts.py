"""The parts of a report as HTML, in the order a reader needs them; text from files goes through ``text``."""

import html
from importlib import resources
from typing import Any

from deep_learning_cases.ground.expectation import is_number, look
from deep_learning_cases.ground.figures import Picture
from deep_learning_cases.measuring import stats
from deep_learning_cases.measuring.bench_record import Benchmark
from deep_learning_cases.models.artefacts import BASELINE, CANDIDATE
from deep_learning_cases.release.report import origins, plots
from deep_learning_cases.release.report.facts import Facts, compare_models, rows_of
from deep_learning_cases.release.report.html import table, table_row, text

__all__ = ["body", "style", "title"]


def style() -> str:
    """The style sheet; every rule is bound to ``.dlc-report``, so that a notebook around it keeps its own looks."""
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def title(facts: Facts) -> str:
    """The headline: what was decided."""
    answer = {"release": "released", "reject": "rejected"}.get(look(facts.decided, "decision"), "not decided yet")
    return f"The smaller model: {answer}"


def body(facts: Facts) -> str:
    """All parts, from what was measured to the verdict."""
    parts = [
        _header(facts), _findings(facts), _scope(facts), _table(facts), _comparison(facts), _predictions(facts),
        _figures(facts), origins.processes(facts), origins.machine(facts.benchmark),
        origins.protocol(facts), origins.hashes(facts), _target(facts), _verdict(facts),
        origins.footer(facts),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _header(facts: Facts) -> str:
    decision = look(facts.decided, "decision")
    chip = {"release": ("pass", "Release"), "reject": ("fail", "Reject")}.get(
        decision, ("inconclusive", "No decision yet")
    )
    chips = f'<span class="chip {chip[0]}">{chip[1]}</span>'
    chips += '<span class="chip inconclusive">Target device: not measured</span>' if not facts.target else ""
    lost = facts.regression["loss_pp"]
    sizes = {name: facts.benchmark["models"][name]["bytes"] for name in (BASELINE, CANDIDATE)}
    speeds = ", ".join(
        f"{_verdict_word(facts.comparison(size)['verdict'])} at batch {size}" for size in _batches(facts.benchmark)
    )
    lead = (
        f"The {CANDIDATE} file is {100 * sizes[CANDIDATE] / sizes[BASELINE]:.0f} % of the size of {BASELINE}, "
        f"{_loss_words(lost)}, and on the machine below it is {speeds}."
    )
    heading = f"<h1>May the smaller model ship?</h1>\n<div>{chips}</div>"
    return f'<header>\n{heading}\n<p class="lead">{text(lead)}</p>\n</header>'


def _findings(facts: Facts) -> str:
    if not facts.findings:
        return ""
    items = "".join(f"<li>{text(str(one))}</li>" for one in facts.findings)
    return (
        '<section class="findings"><h2>The files do not hang together</h2><p>What follows is drawn from files that'
        f" contradict each other here:</p><ul>{items}</ul></section>"
    )


def _scope(facts: Facts) -> str:
    claims = look(facts.decided, "not_claimed") or []
    items = "".join(f"<li>{text(line)}</li>" for line in claims) or "<li>No claims are stated yet.</li>"
    protocol = facts.benchmark["protocol"]
    calls = protocol["rounds"] * protocol["repetitions"]
    return f"""<section class="cards">
<div class="card"><h2>Measured: from where to where</h2><p>{text(facts.benchmark["boundary"])}</p>
<p class="note">{calls} timed calls per model and batch size, in {protocol["rounds"]} rounds of fresh processes,
{_plural(protocol["threads"], "inference thread")}. Unit: {text(facts.benchmark["unit"])}.</p></div>
<div class="card open"><h2>Not claimed</h2><ul>{items}</ul></div>
</section>"""


def _table(facts: Facts) -> str:
    return f"""<h2>The numbers</h2>
{_numbers(facts.benchmark, facts.regression)}
<p class="note">p50 is the median, p95 the nearest rank (the ceil(0.95 n)-th smallest), both over the merged raw
timings of all rounds. Below each percentile stands its 95 % order-statistic interval; below the accuracy its 95 %
interval. Timings of one process hang together, so take the intervals as the least uncertainty. Peak memory is the
whole measuring process, Python and runtime included; a smaller file need not make it smaller. These numbers hold for
the machine below.</p>"""


def _numbers(record: Benchmark, regression: dict[str, Any] | None) -> str:
    lines = []
    for row in rows_of(record):
        facts = record["models"][row.model]
        cells = [
            ("File, bytes", f"{facts['bytes']:,}"),
            *([("Accuracy, %", _accuracy(regression, row.model))] if regression else []),
            ("p50, µs", _percentile(row.summary["p50_us"], row.p50)),
            ("p95, µs", _percentile(row.summary["p95_us"], row.p95)),
            ("Images/s", f"{row.summary['images_per_second']:,.0f}"),
            ("Peak memory, MB", f"{_peak(record, row.model) / 1e6:.1f}"),
        ]
        lines.append(table_row(f"{text(row.model)}, batch {row.batch_size}", cells))
    heads = ["Model", "File, bytes", *(["Accuracy, %"] if regression else []), "p50, µs", "p95, µs", "Images/s"]
    words = f"Times are per batch. Peak memory is the largest of all rounds ({text(_peak_source(record))})."
    return table([*heads, "Peak memory, MB"], lines, words)


def _comparison(facts: Facts) -> str:
    cards = "".join(_comparison_card(facts.benchmark, size) for size in _batches(facts.benchmark))
    return f"""<h2>Is {CANDIDATE} faster?</h2>
<div class="cards">{cards}</div>
<p class="note">One ratio of medians per round and Student's t over the rounds, because the timings of one process are
not independent. Under 1 means that {CANDIDATE} takes less time. Other machines may order the models the other way
round.</p>"""


def _comparison_card(record: Benchmark, size: int) -> str:
    result = compare_models(record, size)
    interval = result["reason"]
    if is_number(result["low"]):
        interval = f"95 % interval {result['low']:.2f} to {result['high']:.2f}"
    verdict = result["verdict"]
    return (
        f'<div class="card"><h3>Batch {size}</h3><p class="big {verdict}">{_verdict_word(verdict)}</p>'
        f"<p>{CANDIDATE} takes {result['ratio']:.2f} times the time of {BASELINE}<br>"
        f'<span class="note">{text(interval)}, {_plural(result["rounds"], "round")}</span></p></div>'
    )


def _predictions(facts: Facts) -> str:
    record = facts.regression
    interval, drift = record["loss_interval_pp"], record["logit_difference"]
    heads = ["Digit", "Images", f"{BASELINE}, %", f"{CANDIDATE}, %"]
    rows = [
        table_row(
            str(row["label"]),
            [("Images", str(row["images"])), *((f"{name}, %", _share(row[name])) for name in (BASELINE, CANDIDATE))],
        )
        for row in record["per_class"]
    ]
    return f"""<h2>Are the predictions the same?</h2>
<div class="cards">
<div class="card"><h3>Accuracy lost</h3><p class="big">{record["loss_pp"]:+.2f} points</p>
<p class="note">95 % interval {interval["low"]:+.2f} to {interval["high"]:+.2f}. {text(interval["method"])}</p></div>
<div class="card"><h3>Same class predicted</h3><p class="big">{100 * record["agreement"]:.1f} %</p>
<p class="note">of {record["images"]} test images</p></div>
<div class="card"><h3>Logits moved by</h3><p class="big">{drift["mean"]:.3f}</p>
<p class="note">on average; the largest change is {drift["largest"]:.3f}</p></div>
</div>
<p>{text(record["can_show"])}</p>
{table(heads, rows, "Accuracy per class: an average hides a class that fell.", "small")}"""


def _figures(facts: Facts) -> str:
    drawn = plots.pictures(facts.benchmark)
    groups = {
        "Every timing, in order": (
            "order-",
            "Nothing is dropped. Drift, a slow start, a burst of other work: visible here, in no average.",
        ),
        "How the timings are distributed": (
            "distribution-",
            "Read across: the share of calls that were done within so many microseconds.",
        ),
        "Size against speed": ("size-speed-", "A small file is one thing, a fast model another."),
    }
    sections = []
    for heading, (prefix, words) in groups.items():
        figures = "\n".join(_figure(picture) for picture in drawn if picture.name.startswith(prefix))
        sections.append(f'<h2>{heading}</h2>\n<p class="note">{words}</p>\n<div class="figures">{figures}</div>')
    return "\n".join(sections)


def _figure(picture: Picture) -> str:
    label = html.escape(picture.alt_text)
    svg = picture.svg().replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f"<figure><h3>{text(picture.title)}</h3>{svg}<figcaption>{text(picture.caption)}</figcaption></figure>"


def _target(facts: Facts) -> str:
    if facts.target is None:
        return ""
    record = facts.target["benchmark"]
    cards = "".join(_comparison_card(record, size) for size in _batches(record))
    return f"""<h2>On the target device: {text(facts.target["device"])}</h2>
<p>The same files and the same protocol, measured elsewhere by the target kit. No number of it enters the tables and
figures above, nor the other way round.</p>
{_numbers(record, None)}
<div class="cards">{cards}</div>
{origins.machine(record, "h3")}"""


def _verdict(facts: Facts) -> str:
    verdict = facts.verdict
    decision = look(facts.decided, "decision") or f"no decision is stated; by these numbers: {verdict.decision}"
    reasons = "".join(
        f'<li><b class="{reason.outcome}">{reason.outcome}</b> {text(reason.message)}'
        + (f". To do: {text(reason.redo)}." if reason.redo else "")
        + "</li>"
        for reason in verdict.reasons
    )
    return f"""<h2>Verdict: {text(decision)}</h2>
<ul class="reasons">{reasons}</ul>
<p>Speed is reported and not a condition: the limits are the size of the file and the accuracy lost. A benchmark on the
target device is still required before anything is said about it; hand over the target kit for that. After another
conversion, regression <em>and</em> measuring have to be done again: a new hash on old samples would be well linked and
false.</p>"""


def _percentile(value: float, interval: stats.PercentileInterval) -> str:
    ends = interval.reason if interval.low is None else f"{_us(interval.low)} to {_us(interval.high)}"
    return f"{_us(value)} <small>{text(ends)}</small>"


def _us(value: float | None) -> str:
    return "?" if value is None else f"{value:,.1f}"


def _accuracy(regression: dict[str, Any], model: str) -> str:
    accuracy, images = regression["accuracy"][model], regression["images"]
    low, high = stats.proportion_interval(round(accuracy * images), images)
    return f"{100 * accuracy:.1f} <small>{100 * low:.1f} to {100 * high:.1f}</small>"


def _share(value: Any) -> str:
    return f"{100 * value:.1f}" if is_number(value) else "none"


def _peak(record: Benchmark, model: str) -> int:
    return max(int(run["peak_rss_bytes"]) for run in record["runs"] if run["model"] == model)


def _peak_source(record: Benchmark) -> str:
    return ", ".join(sorted({str(run["peak_rss_source"]) for run in record["runs"]}))


def _batches(record: Benchmark) -> list[int]:
    return list(record["protocol"]["batch_sizes"])


def _loss_words(lost: float) -> str:
    if abs(lost) < 0.005:
        return "as accurate on the test images"
    return f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} accurate on the test images"


def _verdict_word(verdict: str) -> str:
    return {"faster": "faster", "slower": "slower"}.get(verdict, "neither faster nor slower for certain")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
