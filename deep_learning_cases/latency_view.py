"""A latency record for a reader: lines for a terminal, a table and a figure for a notebook."""

import html as _html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from deep_learning_cases import latency_plots, stats

__all__ = ["cells", "columns", "facts", "histogram", "html", "number", "table"]

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
        (str(batch), *(number(row[key]) for key in _TIMES), f"{row['images_per_second']:,.0f}")
        for batch, row in rows.items()
    ]


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


def html(record: dict[str, Any]) -> str:
    """Table and figure as one element; the table alone where matplotlib is not installed."""
    head = "".join(f"<th scope='col'>{_html.escape(name)}</th>" for name in _HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{_html.escape(cell)}</td>" for cell in line) + "</tr>"
        for line in cells(record["results"])
    )
    notes = "".join(f"<p style='margin:.3em 0'>{_html.escape(line)}</p>" for line in facts(record))
    try:
        picture = latency_plots.distribution(record["results"])
    except ImportError:
        drawing = "<p>No figure: matplotlib is not installed.</p>"
    else:
        drawing = (
            f"<figure role='img' aria-label='{_html.escape(picture.alt_text)}' style='max-width:36em;margin:0'>"
            f"{picture.svg()}<figcaption>{_html.escape(picture.caption)}</figcaption></figure>"
        )
    return f"<div>{notes}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{drawing}</div>"


def number(value: float | None) -> str:
    """Four significant digits without an exponent; a dash for a number that is not given."""
    if value is None:
        return "-"
    digits = max(0, 3 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(digits, 6)}f}"
