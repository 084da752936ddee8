"""The parts of a report that say where its numbers come from: processes, machine, protocol, files."""

from typing import Any

from deep_learning_cases.ground.expectation import is_number, look
from deep_learning_cases.measuring.bench_record import Benchmark
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.report.facts import Facts
from deep_learning_cases.release.report.html import definitions, table, table_row, text

__all__ = ["footer", "hashes", "machine", "processes", "protocol"]


def processes(facts: Facts) -> str:
    """One row for each measuring process, in the order run."""
    rows = []
    for run in facts.benchmark["runs"]:
        before = run["load_average"]
        load = before[0] if isinstance(before, list) and before else before
        cells = [
            ("Cold start, ms", f"{run['cold_start_us'] / 1000:,.1f}"),
            ("Peak memory, MB", f"{run['peak_rss_bytes'] / 1e6:.1f}"),
            ("Load before", f"{load:.2f}" if is_number(load) else "not known"),
            ("Started", text(str(run["started_at"])[11:19])),
        ]
        rows.append(table_row(f"Round {run['round']}, {text(run['model'])}", cells))
    heads = ["Process", "Cold start, ms", "Peak memory, MB", "Load before", "Started"]
    words = "In the order run, times in UTC. Cold start: loading the model and the first call, no part of the timings."
    return f"<h2>The processes</h2>\n{table(heads, rows, words)}"


def machine(record: Benchmark, heading: str = "h2") -> str:
    """Where it was measured, as the record tells."""
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
    return f"<{heading}>The machine</{heading}>\n{definitions(entries)}"


_FLAGS = {"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "asimddp", "i8mm", "sve"}
"""Instruction sets that decide how fast eight-bit arithmetic is."""


def protocol(facts: Facts) -> str:
    """How it was measured."""
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
    return f"<h2>The protocol</h2>\n{definitions(entries)}"


def hashes(facts: Facts) -> str:
    """The files behind the report, with size and SHA-256."""
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


def footer(facts: Facts) -> str:
    """What the page is, and what it is not."""
    return (
        "<footer>Made from the evidence folder by deep_learning_cases. Raw samples are a record to review, not a"
        f" certificate. Measured {text(facts.benchmark['created_at'])}.</footer>"
    )


def _joined(values: Any) -> str | None:
    return ", ".join(map(str, values)) if isinstance(values, list) and values else None


def _overhead(record: Benchmark) -> str | None:
    values = [run["loop_overhead_us"] for run in record["runs"] if "loop_overhead_us" in run]
    return f"{max(values):.3f} µs per timing at most, left in" if values else None
