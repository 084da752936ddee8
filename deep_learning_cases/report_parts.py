"""The parts of a report as HTML, in the order a reader needs them; all text from files goes through :func:`_text`."""

import html
from collections.abc import Iterable
from importlib import resources
from typing import Any

from deep_learning_cases import artefacts, plots, stats
from deep_learning_cases.checks import BASELINE, CANDIDATE
from deep_learning_cases.expectation import is_number, look
from deep_learning_cases.figures import Picture
from deep_learning_cases.report_facts import Facts, compare_models, rows_of

__all__ = ["body", "style", "title"]


def style() -> str:
    """The style sheet; every rule is bound to ``.dlc-report``, so that a notebook around it keeps its own looks."""
    return resources.files("deep_learning_cases").joinpath("report.css").read_text(encoding="utf-8")


def title(facts: Facts) -> str:
    answer = {"release": "released", "reject": "rejected"}.get(look(facts.decided, "decision"), "not decided yet")
    return f"The smaller model: {answer}"


def body(facts: Facts) -> str:
    """All parts, from what was measured to the verdict."""
    parts = [
        _header(facts), _findings(facts), _scope(facts), _table(facts), _comparison(facts), _predictions(facts),
        _figures(facts), _processes(facts), _machine(facts.benchmark), _protocol(facts), _hashes(facts), _target(facts),
        _verdict(facts), _footer(facts),
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
    return f'<header>\n{heading}\n<p class="lead">{_text(lead)}</p>\n</header>'


def _findings(facts: Facts) -> str:
    if not facts.findings:
        return ""
    items = "".join(f"<li>{_text(str(one))}</li>" for one in facts.findings)
    return (
        '<section class="findings"><h2>The files do not hang together</h2><p>What follows is drawn from files that'
        f" contradict each other here:</p><ul>{items}</ul></section>"
    )


def _scope(facts: Facts) -> str:
    claims = look(facts.decided, "not_claimed") or []
    items = "".join(f"<li>{_text(line)}</li>" for line in claims) or "<li>No claims are stated yet.</li>"
    protocol = facts.benchmark["protocol"]
    calls = protocol["rounds"] * protocol["repetitions"]
    return f"""<section class="cards">
<div class="card"><h2>Measured: from where to where</h2><p>{_text(facts.benchmark["boundary"])}</p>
<p class="note">{calls} timed calls per model and batch size, in {protocol["rounds"]} rounds of fresh processes,
{_plural(protocol["threads"], "inference thread")}. Unit: {_text(facts.benchmark["unit"])}.</p></div>
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


def _numbers(record: dict[str, Any], regression: dict[str, Any] | None) -> str:
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
        lines.append(_row(f"{_text(row.model)}, batch {row.batch_size}", cells))
    heads = ["Model", "File, bytes", *(["Accuracy, %"] if regression else []), "p50, µs", "p95, µs", "Images/s"]
    words = f"Times are per batch. Peak memory is the largest of all rounds ({_text(_peak_source(record))})."
    return _html_table([*heads, "Peak memory, MB"], lines, words)


def _comparison(facts: Facts) -> str:
    cards = "".join(_comparison_card(facts.benchmark, size) for size in _batches(facts.benchmark))
    return f"""<h2>Is {CANDIDATE} faster?</h2>
<div class="cards">{cards}</div>
<p class="note">One ratio of medians per round and Student's t over the rounds, because the timings of one process are
not independent. Under 1 means that {CANDIDATE} takes less time. Other machines may order the models the other way
round.</p>"""


def _comparison_card(record: dict[str, Any], size: int) -> str:
    result = compare_models(record, size)
    interval = result["reason"]
    if is_number(result["low"]):
        interval = f"95 % interval {result['low']:.2f} to {result['high']:.2f}"
    verdict = result["verdict"]
    return (
        f'<div class="card"><h3>Batch {size}</h3><p class="big {verdict}">{_verdict_word(verdict)}</p>'
        f"<p>{CANDIDATE} takes {result['ratio']:.2f} times the time of {BASELINE}<br>"
        f'<span class="note">{_text(interval)}, {_plural(result["rounds"], "round")}</span></p></div>'
    )


def _predictions(facts: Facts) -> str:
    record = facts.regression
    interval, drift = record["loss_interval_pp"], record["logit_difference"]
    heads = ["Digit", "Images", f"{BASELINE}, %", f"{CANDIDATE}, %"]
    rows = [
        _row(
            str(row["label"]),
            [("Images", str(row["images"])), *((f"{name}, %", _share(row[name])) for name in (BASELINE, CANDIDATE))],
        )
        for row in record["per_class"]
    ]
    return f"""<h2>Are the predictions the same?</h2>
<div class="cards">
<div class="card"><h3>Accuracy lost</h3><p class="big">{record["loss_pp"]:+.2f} points</p>
<p class="note">95 % interval {interval["low"]:+.2f} to {interval["high"]:+.2f}. {_text(interval["method"])}</p></div>
<div class="card"><h3>Same class predicted</h3><p class="big">{100 * record["agreement"]:.1f} %</p>
<p class="note">of {record["images"]} test images</p></div>
<div class="card"><h3>Logits moved by</h3><p class="big">{drift["mean"]:.3f}</p>
<p class="note">on average; the largest change is {drift["largest"]:.3f}</p></div>
</div>
<p>{_text(record["can_show"])}</p>
{_html_table(heads, rows, "Accuracy per class: an average hides a class that fell.", "small")}"""


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
    return f"<figure><h3>{_text(picture.title)}</h3>{svg}<figcaption>{_text(picture.caption)}</figcaption></figure>"


def _processes(facts: Facts) -> str:
    rows = []
    for run in facts.benchmark["runs"]:
        load = run["load_average"]
        load = load[0] if isinstance(load, list) and load else load
        cells = [
            ("Cold start, ms", f"{run['cold_start_us'] / 1000:,.1f}"),
            ("Peak memory, MB", f"{run['peak_rss_bytes'] / 1e6:.1f}"),
            ("Load before", f"{load:.2f}" if is_number(load) else "not known"),
            ("Started", _text(str(run["started_at"])[11:19])),
        ]
        rows.append(_row(f"Round {run['round']}, {_text(run['model'])}", cells))
    heads = ["Process", "Cold start, ms", "Peak memory, MB", "Load before", "Started"]
    words = "In the order run, times in UTC. Cold start: loading the model and the first call, no part of the timings."
    return f"<h2>The processes</h2>\n{_html_table(heads, rows, words)}"


def _target(facts: Facts) -> str:
    if facts.target is None:
        return ""
    record = facts.target["benchmark"]
    cards = "".join(_comparison_card(record, size) for size in _batches(record))
    return f"""<h2>On the target device: {_text(facts.target["device"])}</h2>
<p>The same files and the same protocol, measured elsewhere by the target kit. No number of it enters the tables and
figures above, nor the other way round.</p>
{_numbers(record, None)}
<div class="cards">{cards}</div>
{_machine(record, "h3")}"""


def _machine(record: dict[str, Any], heading: str = "h2") -> str:
    place = record["environment"]
    libraries = look(place, "libraries")
    memory = look(place, "memory", "total_bytes")
    entries = [
        ("Processor", look(place, "cpu", "model")),
        ("Architecture", look(place, "cpu", "architecture")),
        ("Cores usable", look(place, "cores", "usable")),
        ("Memory", f"{memory / 2**30:.1f} GiB" if is_number(memory) else None),
        ("Governor", _joined(look(place, "governors"))),
        ("System", " ".join(str(look(place, "os", key) or "") for key in ("system", "release"))),
        ("Python", look(place, "python", "version")),
        ("Libraries", ", ".join(f"{k} {v}" for k, v in libraries.items()) if isinstance(libraries, dict) else None),
        ("BLAS", " ".join(str(look(place, "blas", key) or "") for key in ("name", "version"))),
        ("Clock", look(place, "clock", "name")),
        ("Measured at", record["created_at"]),
    ]
    flags = look(place, "cpu", "flags")
    wanted = [flag for flag in flags if str(flag) in _FLAGS] if isinstance(flags, list) else None
    entries.insert(2, ("Eight-bit units", _joined(wanted)))
    return f"<{heading}>The machine</{heading}>\n{_list(entries)}"


_FLAGS = {"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "asimddp", "i8mm", "sve"}
"""Instruction sets that decide how fast eight-bit arithmetic is."""


def _protocol(facts: Facts) -> str:
    protocol = facts.benchmark["protocol"]
    order = "; ".join(f"round {number}: {', '.join(models)}" for number, models in enumerate(protocol["order"], 1))
    entries = [
        ("Rounds", f"{protocol['rounds']}, a fresh process per model in each"),
        ("Order", order),
        ("Warm-up calls", f"{protocol['warmups']} per batch size, not in the timings"),
        ("Timed calls", f"{protocol['repetitions']} per round, model and batch size"),
        ("Batch sizes", ", ".join(map(str, protocol["batch_sizes"]))),
        ("Threads", protocol["threads"]),
        ("Garbage collector", protocol.get("garbage_collector")),
        ("Input", protocol.get("input")),
        ("Loop overhead", _overhead(facts.benchmark)),
    ]
    return f"<h2>The protocol</h2>\n{_list(entries)}"


def _hashes(facts: Facts) -> str:
    names = (
        artefacts.DATA,
        artefacts.FP32,
        artefacts.INT8,
        artefacts.REGRESSION,
        artefacts.BENCHMARK,
        artefacts.RELEASE,
    )
    items = "".join(
        f'<dt>{name}<br><span class="note">{facts.evidence.size(name):,} bytes</span></dt>'
        f"<dd><code>{facts.evidence.sha256(name)}</code></dd>"
        for name in names
        if name in facts.evidence.contents
    )
    return f"""<h2>The files</h2>
<p class="note">SHA-256 of what was measured and judged. The hashes find stale reports and wrong sums; they do not prove
that anybody measured the times.</p>
<dl>{items}</dl>"""


def _verdict(facts: Facts) -> str:
    verdict = facts.verdict
    decision = look(facts.decided, "decision") or f"no decision is stated; by these numbers: {verdict.decision}"
    reasons = "".join(
        f'<li><b class="{reason.outcome}">{reason.outcome}</b> {_text(reason.message)}'
        + (f". To do: {_text(reason.redo)}." if reason.redo else "")
        + "</li>"
        for reason in verdict.reasons
    )
    return f"""<h2>Verdict: {_text(decision)}</h2>
<ul class="reasons">{reasons}</ul>
<p>Speed is reported and not a condition: the limits are the size of the file and the accuracy lost. A benchmark on the
target device is still required before anything is said about it; hand over the target kit for that. After another
conversion, regression <em>and</em> measuring have to be done again: a new hash on old samples would be well linked and
false.</p>"""


def _footer(facts: Facts) -> str:
    return (
        "<footer>Made from the evidence folder by deep_learning_cases. Raw samples are a record to review, not a"
        f" certificate. Measured {_text(facts.benchmark['created_at'])}.</footer>"
    )


def _html_table(heads: list[str], rows: list[str], caption: str, kind: str = "stack") -> str:
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    return (
        f'<table class="{kind}"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _row(head: str, cells: Iterable[tuple[str, str]]) -> str:
    """One row; every cell carries its column's name, which a narrow screen shows in place of the head."""
    return f'<tr><th scope="row">{head}</th>' + "".join(f'<td data-label="{k}">{v}</td>' for k, v in cells) + "</tr>"


def _list(entries: Iterable[tuple[str, Any]]) -> str:
    items = "".join(
        f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in entries if value not in (None, "", " ")
    )
    return f"<dl>{items}</dl>"


def _joined(values: Any) -> str | None:
    return ", ".join(map(str, values)) if isinstance(values, list) and values else None


def _percentile(value: float, interval: stats.PercentileInterval) -> str:
    ends = interval.reason if interval.low is None else f"{_us(interval.low)} to {_us(interval.high)}"
    return f"{_us(value)} <small>{_text(ends)}</small>"


def _us(value: float | None) -> str:
    return "?" if value is None else f"{value:,.1f}"


def _accuracy(regression: dict[str, Any], model: str) -> str:
    accuracy, images = regression["accuracy"][model], regression["images"]
    low, high = stats.proportion_interval(round(accuracy * images), images)
    return f"{100 * accuracy:.1f} <small>{100 * low:.1f} to {100 * high:.1f}</small>"


def _share(value: Any) -> str:
    return f"{100 * value:.1f}" if is_number(value) else "none"


def _peak(record: dict[str, Any], model: str) -> int:
    return max(int(run["peak_rss_bytes"]) for run in record["runs"] if run["model"] == model)


def _peak_source(record: dict[str, Any]) -> str:
    return ", ".join(sorted({str(run["peak_rss_source"]) for run in record["runs"]}))


def _overhead(record: dict[str, Any]) -> str | None:
    values = [run["loop_overhead_us"] for run in record["runs"] if "loop_overhead_us" in run]
    return f"{max(values):.3f} µs per timing at most, left in" if values else None


def _batches(record: dict[str, Any]) -> list[int]:
    return list(record["protocol"]["batch_sizes"])


def _loss_words(lost: float) -> str:
    if abs(lost) < 0.005:
        return "as accurate on the test images"
    return f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} accurate on the test images"


def _verdict_word(verdict: str) -> str:
    return {"faster": "faster", "slower": "slower"}.get(verdict, "neither faster nor slower for certain")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _text(value: Any) -> str:
    """Escaped, without characters that UTF-8 cannot carry, and bounded: it may come from anybody."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8")[:2000])
