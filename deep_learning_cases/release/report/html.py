"""The pieces of a report's HTML: tables, lists, and text from anybody, escaped."""

import html
from collections.abc import Iterable
from typing import Any

__all__ = ["definitions", "table", "table_row", "text"]


def text(value: Any) -> str:
    """Escaped, without characters that UTF-8 cannot carry, and bounded: it may come from anybody."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8")[:2000])


def table(heads: list[str], rows: list[str], caption: str, kind: str = "stack") -> str:
    """A table of :func:`table_row` with its caption; ``kind`` "stack" lays its rows out as cards on a narrow screen."""
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    return (
        f'<table class="{kind}"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def table_row(head: str, cells: Iterable[tuple[str, str]]) -> str:
    """One row; every cell carries its column's name, which a narrow screen shows in place of the head."""
    return f'<tr><th scope="row">{head}</th>' + "".join(f'<td data-label="{k}">{v}</td>' for k, v in cells) + "</tr>"


def definitions(entries: Iterable[tuple[str, Any]]) -> str:
    """Names and their values, as a list; what is not known is left out."""
    items = "".join(f"<dt>{name}</dt><dd>{text(value)}</dd>" for name, value in entries if value not in (None, "", " "))
    return f"<dl>{items}</dl>"
