"""The pieces of the class report: escaped HTML and small drawings, readable without colour and without a network."""

import html
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from deep_learning_cases.ground.command_line import printable

__all__ = ["document", "figures", "heading", "histogram", "isolation", "items", "names", "table", "times"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d1d9e0; --bar: #0072b2; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --bar: #56b4e9; --back: #0d1117 }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back) }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem } dl { display: flex; flex-wrap: wrap; gap: 2.5rem }
dt { color: var(--soft) } dd { margin: 0; font-size: 1.5rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; overflow-wrap: break-word }
@media (max-width: 44rem) { th, td { overflow-wrap: anywhere } }
th, td { border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: 600 } .bar { fill: var(--bar) }
text { fill: var(--ink); font: 13px system-ui, sans-serif }
""".strip()


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page."""
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    head = (
        f'<meta charset="utf-8">{policy}<meta name="viewport" content="width=device-width"><title>{_e(title)}</title>'
    )
    body = "\n".join(part for part in parts if part)
    head = f"<head>{head}<style>{_STYLE}</style></head>"
    return f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>\n<main>\n{body}\n</main>\n</body></html>\n'


def heading(text: str) -> str:
    """The page's title."""
    return f"<h1>{_e(text)}</h1>"


def figures(values: dict[str, Any]) -> str:
    """The few numbers that come first."""
    return "<dl>" + "".join(f"<div><dt>{_e(k)}</dt><dd>{_e(v)}</dd></div>" for k, v in values.items()) + "</dl>"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], otherwise: str = "") -> str:
    """A section with a table, or with one sentence where there is nothing to say."""
    if not rows:
        return f"<h2>{_e(title)}</h2><p>{_e(otherwise)}</p>" if otherwise else ""
    head = "".join(f'<th scope="col">{_e(name)}</th>' for name in header)
    body = "".join("<tr>" + "".join(f"<td>{_e(value)}</td>" for value in row) + "</tr>\n" for row in rows)
    return f"<h2>{_e(title)}</h2>\n<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def histogram(title: str, points: Sequence[float], maximum: float) -> str:
    """How many students have how many points, in at most 25 bins of whole points."""
    if not points or maximum <= 0:
        return ""
    width = max(1, math.ceil(maximum / 25))
    bins = int(maximum // width) + 1
    counts = [0] * bins
    for value in points:
        counts[min(bins - 1, int(max(0.0, value) // width))] += 1
    labels = [f"{index * width:g}" for index in range(bins)]
    words = ", ".join(f"{label} points: {count}" for label, count in zip(labels, counts, strict=True) if count)
    return f"<h2>{_e(title)}</h2>\n{_columns(labels, counts, f'Number of students by points. {words}')}"


def items(title: str, found: dict[str, list[tuple[float, float]]]) -> str:
    """For each item the share of its points that the class earned, as a bar and as numbers."""
    rows = []
    for name, values in found.items():
        maximum = values[0][1]
        full = sum(points >= most for points, most in values)
        none = sum(points == 0 for points, _ in values)
        share = statistics.fmean(points for points, _ in values) / maximum if maximum else 0.0
        rect = f'<rect class="bar" width="{160 * share:.1f}" height="14"/>'
        bar = f'<svg width="160" height="14" role="img" aria-label="{share:.0%}">{rect}</svg>'
        cells = [_e(name), f"{maximum:g}", bar, f"{share:.0%}", full, len(values) - full - none, none]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{n}</th>' for n in ("item", "points", "earned", "share", "full", "part", "none"))
    return f"<h2>{_e(title)}</h2>\n<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def times(title: str, seconds: dict[str, float]) -> str:
    """Median, p95 by nearest rank, and the slowest five."""
    if not seconds:
        return ""
    ordered = sorted(seconds.values())
    p95 = ordered[-(-19 * len(ordered) // 20) - 1]
    words = (
        f"Median {statistics.median(ordered):.2f} s, p95 {p95:.2f} s, together {sum(ordered):.0f} s of workers' time."
    )
    slowest = sorted(seconds.items(), key=lambda pair: -pair[1])[:5]
    rows = [(student, f"{value:.2f} s") for student, value in slowest]
    return f"<h2>{_e(title)}</h2><p>{_e(words)}</p>" + table("Slowest", ["student", "time"], rows).replace("h2", "h3")


def isolation(described: dict[str, Any]) -> str:
    """The wall of one submission in one line."""
    name = str(described.get("kind", "unknown"))
    told = {
        "kernel": described.get("kernel"),
        "own user": described.get("user_changed"),
        "memory": described.get("memory"),
    }
    rest = "; ".join(f"{key}: {_word(value)}" for key, value in told.items() if value is not None)
    return f"{name} ({rest})" if rest else name


def names(students: Sequence[str], shown: int) -> str:
    """A list that stays readable for a class of thousands."""
    unique = sorted(set(students))
    more = f" and {len(unique) - shown} more" if len(unique) > shown else ""
    return ", ".join(unique[:shown]) + more


def _columns(labels: Sequence[str], counts: Sequence[int], words: str) -> str:
    step, height = 28, 160
    top = max(counts) or 1
    bars = []
    for index, (label, count) in enumerate(zip(labels, counts, strict=True)):
        tall, left = height * count / top, index * step
        bars.append(
            f'<rect class="bar" x="{left}" y="{20 + height - tall:.1f}" width="{step - 4}" height="{tall:.1f}"/>'
        )
        bars.append(f'<text x="{left + step / 2 - 2}" y="{38 + height}" text-anchor="middle">{_e(label)}</text>')
        if count:
            bars.append(
                f'<text x="{left + step / 2 - 2}" y="{15 + height - tall:.1f}" text-anchor="middle">{count}</text>'
            )
    size = f'width="{step * len(counts)}" height="{height + 45}"'
    return f'<svg {size} role="img" aria-label="{_e(words)}">{"".join(bars)}</svg>'


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _e(value: Any) -> str:
    return html.escape(printable(str(value)))
