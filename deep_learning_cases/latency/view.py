"""A latency record for a reader: lines for a terminal, a table and a figure for a notebook."""

import html as _html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from deep_learning_cases.ground.figures import INK
from deep_learning_cases.latency import plots
from deep_learning_cases.measuring import stats

__all__ = ["boundary_name", "facts", "histogram", "html", "report", "table"]

_TIMES = ("median_ms", "p95_ms", "p99_ms", "min_ms", "max_ms", "first_call_ms", "ms_per_image")
_HEADINGS = ("batch", "median ms", "p95 ms", "p99 ms", "min ms", "max ms", "first call ms", "ms/image", "images/s")


def facts(record: dict[str, Any]) -> list[str]:
    """What the numbers are about: network, engine, machine, protocol and boundary, one line each."""
    protocol, cpu, execution = record["protocol"], record["hardware"]["cpu"]["model"], record["execution"]
    shape = " x ".join(str(part) for part in record["input_shape"])
    where = f"{cpu or 'an unnamed processor'}, {execution['device']}, {record['threads']} thread(s)"
    return [
        f"{record['engine']['name']} on {where}, {record['precision']}, input {shape}",
        f"{protocol['warmups']} warm-ups and {protocol['trials']} trials a batch size, {protocol['inputs']} inputs",
        "times per batch; p95 is the nearest rank; a dash is a number that the trials do not support",
        record["boundary"],
    ]


def cells(rows: dict[int, dict[str, Any]]) -> list[tuple[str, ...]]:
    """The numbers of each batch size as text, in the order of the headings."""
    return [
        (str(batch), *(number(_given(row, key)) for key in _TIMES), f"{row['images_per_second']:,.0f}")
        for batch, row in rows.items()
    ]


def _given(row: dict[str, Any], key: str) -> float | None:
    """The number, unless it is a p95 that only the slowest trial stands for (below 20 trials)."""
    value: float | None = None if key == "p95_ms" and row["p95_ms"] == row["max_ms"] else row[key]
    return value


def table(rows: dict[int, dict[str, Any]]) -> list[str]:
    """One line for each batch size under a line of headings."""
    return columns([_HEADINGS, *cells(rows)])


def columns(lines: Iterable[Sequence[str]]) -> list[str]:
    """Cells set right in columns as wide as their widest cell."""
    cells_of = [tuple(line) for line in lines]
    widths = [max(len(line[place]) for line in cells_of) for place in range(len(cells_of[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells_of]


def histogram(samples_ms: Sequence[float], bins: int = 8, width: int = 40) -> list[str]:
    """A small text histogram; outliers share the last line, so that the rest stays visible.

    Outliers lie above p95 or twice the median, whichever is less, where the slowest is half as long again as that.
    """
    ordered = sorted(samples_ms)
    low, usual = ordered[0], min(stats.percentile(ordered, 0.95), 2 * stats.percentile(ordered, 0.5))
    high = ordered[-1] if ordered[-1] <= 1.5 * usual else usual
    step = (high - low) / bins
    inside = [sample for sample in ordered if sample <= high]
    counts = [0] * (bins if step else 1)
    for sample in inside:
        counts[min(bins - 1, int((sample - low) / step)) if step else 0] += 1
    named = [(number(low + place * step), count) for place, count in enumerate(counts)]
    if len(inside) < len(ordered):
        named.append((f"> {number(high)}", len(ordered) - len(inside)))
    most = max(count for _, count in named)
    return [f"{name:>10} ms |{'#' * math.ceil(width * count / most):<{width}} {count}" for name, count in named]


def report(record: dict[str, Any]) -> list[str]:
    """The whole record for a terminal: facts, tables, histograms, and what did not fit."""
    lines = [*facts(record), "", *table(record["results"])]
    for batch, row in record["results"].items():
        lines += ["", f"batch {batch}, {row['trials']} trials", *histogram(row["samples_ms"])]
    if "boundaries" in record:
        lines += ["", *boundary_lines(record)]
    if "cold" in record:
        lines += ["", *cold_lines(record)]
    if "memory" in record:
        lines += ["", *memory_lines(record["memory"])]
    return lines


def boundary_name(name: str) -> str:
    """The key of a boundary in words: preprocessing_jpeg_64 becomes "JPEG, 64 px"."""
    kind, _, rest = name.partition("_")
    image_format, _, width = rest.partition("_")
    return f"{image_format.upper()}, {width} px" if kind == "preprocessing" and width else name


def boundary_lines(record: dict[str, Any]) -> list[str]:
    """Batch latency, cost per image and images per second of every boundary, side by side."""
    parts = {"model": {"results": record["results"]}, **record["boundaries"]}
    lines: list[tuple[str, ...]]
    lines, notes = [("boundary", "batch", "trials", "median ms", "p95 ms", "ms/image", "images/s")], []
    for name, part in parts.items():
        if "unavailable" in part:
            notes.append(f"{boundary_name(name)}: not measured: {part['unavailable']}")
        for batch, row in part.get("results", {}).items():
            numbers = (number(_given(row, key)) for key in ("median_ms", "p95_ms", "ms_per_image"))
            rate = f"{row['images_per_second']:,.0f}"
            lines.append((boundary_name(name), str(batch), str(row["trials"]), *numbers, rate))
            if "trials_note" in row:
                notes.append(f"{boundary_name(name)}, batch {batch}: {row['trials_note']}")
    return [*columns(lines), *notes]


def cold_lines(record: dict[str, Any]) -> list[str]:
    """Medians of each stage of a cold start, and a warm call beside them."""
    stages = ("start_ms", "import_ms", "load_ms", "first_call_ms", "total_ms")
    lines: list[tuple[str, ...]] = [
        ("batch", "starts", "start ms", "import ms", "load ms", "first call ms", "cold ms", "warm ms")
    ]
    for batch, part in record["cold"]["results"].items():
        medians = (number(stats.percentile([start[key] for start in part["starts"]], 0.5, "linear")) for key in stages)
        warm = number(record["results"][batch]["median_ms"])
        lines.append((str(batch), str(len(part["starts"])), *medians, warm))
    return [*columns(lines), record["cold"]["boundary"]]


def memory_lines(part: dict[str, Any]) -> list[str]:
    """Peak memory of each batch size; under a limit also what does not fit, and what would."""
    lines = [("batch", "peak MB", "before model MB", "fits")]
    for batch, row in part["results"].items():
        peak, before = (number(row[key] / 1e6 if row[key] else None) for key in ("peak_rss_bytes", "before_bytes"))
        lines.append((str(batch), peak, before, "yes" if row["fits"] else "no"))
    text = [*columns(lines), part["boundary"]]
    if part["limit_bytes"] is not None:
        limit = f"{part['limit_bytes'] / 1e6:g} MB"
        text += [
            f"batch {batch} does not fit in {limit}: {row['reason']}; it was left out"
            for batch, row in part["results"].items()
            if not row["fits"]
        ]
        largest = part["largest_batch"]
        text.append(f"the largest batch that fits in {limit} is {largest['fits']}; {largest['reason']}")
    return text


def html(record: dict[str, Any]) -> str:
    """Table and figure as one element; the table alone where matplotlib is not installed.

    The ink is the notebook's own, so that a dark theme stays readable.
    """
    head = "".join(f"<th scope='col'>{_html.escape(name)}</th>" for name in _HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{_html.escape(cell)}</td>" for cell in line) + "</tr>"
        for line in cells(record["results"])
    )
    notes = "".join(f"<p style='margin:.3em 0'>{_html.escape(line)}</p>" for line in facts(record))
    try:
        picture = plots.distribution(record["results"])
    except ImportError:
        drawing = "<p>No figure: matplotlib is not installed.</p>"
    else:
        drawing = (
            f"<figure role='img' aria-label='{_html.escape(picture.alt_text)}' style='max-width:36em;margin:0'>"
            f"{picture.svg()}<figcaption>{_html.escape(picture.caption)}</figcaption></figure>"
        )
    style = f"--ink: var(--jp-content-font-color1, {INK})"
    listing = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div style='{style}'>{notes}{listing}{drawing}</div>"


def number(value: float | None) -> str:
    """Four significant digits without an exponent; a dash for a number that is not given."""
    if value is None:
        return "-"
    digits = max(0, 3 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(digits, 6)}f}"
