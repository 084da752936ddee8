"""Still pictures, and only what really is one: in outputs, and pasted into written answers."""

import base64
import binascii
import html
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

__all__ = ["KINDS", "MAX_IMAGE_BYTES", "as_markdown", "clean_attachments", "replace_pasted", "still_picture"]

MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_CELL_BYTES = 8 * 1024 * 1024
MAX_PICTURES = 20
MAX_NAME = 200
MAX_PIXELS = 40_000_000
"""What a browser has to unpack, however small the file is; a page at 300 dots per inch has 9 million."""

_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
KINDS = tuple(_SIGNATURES)

_IMAGE = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(src|alt)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def still_picture(kind: str, value: Any) -> str | None:
    """A PNG or JPEG as base64 in one line; None where ``value`` is anything else, by its first bytes, or too large.

    Nothing is unpacked here: of the content only the size in its head is read.
    """
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    if kind not in _SIGNATURES or not isinstance(value, str) or len(value) > 2 * MAX_IMAGE_BYTES:
        return None
    try:
        content = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    if not content.startswith(_SIGNATURES[kind]) or len(content) > MAX_IMAGE_BYTES:
        return None
    if _pixels(kind, content) > MAX_PIXELS:
        return None
    return base64.b64encode(content).decode()


def _pixels(kind: str, content: bytes) -> int:
    """Width times height as the head says; 0 where there is none, which no browser shows either."""
    if kind == "image/png":
        return int.from_bytes(content[16:20]) * int.from_bytes(content[20:24]) if content[12:16] == b"IHDR" else 0
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        if 0xC0 <= content[at + 1] <= 0xCF and content[at + 1] not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(content[at + 5 : at + 7]) * int.from_bytes(content[at + 7 : at + 9])
        at += 2 + max(int.from_bytes(content[at + 2 : at + 4]), 2)
    return 0


def clean_attachments(attachments: Any) -> dict[str, dict[str, str]]:
    """A Markdown cell's pasted pictures, as Jupyter keeps them: {name: {kind: base64}}; whatever else is there goes."""
    kept: dict[str, dict[str, str]] = {}
    room = MAX_CELL_BYTES * 4 // 3
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        if len(kept) >= MAX_PICTURES or not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            continue
        for kind in KINDS:
            picture = still_picture(kind, bundle.get(kind)) if isinstance(bundle, dict) else None
            if picture is not None and len(picture) <= room:
                kept[name.encode("utf-8", "replace").decode()] = {kind: picture}
                room -= len(picture)
                break
    return kept


def replace_pasted(source: str, show: Callable[[str, str], str]) -> str:
    """``source`` with ``show(label, address)`` for each HTML tag of a pasted picture: Jupyter resizes by one."""

    def replaced(tag: re.Match[str]) -> str:
        given = {name.lower(): html.unescape(value.strip("\"'")) for name, value in _ATTRIBUTE.findall(tag[1])}
        address = given.get("src", "").strip()
        return show(given.get("alt", ""), address) if address.lower().startswith("attachment:") else tag[0]

    return _IMAGE.sub(replaced, source)


def as_markdown(label: str, address: str) -> str:
    """The short form of a pasted picture."""
    label = re.sub(r"[\[\]\\`<>\s]+", " ", label).strip()
    # A name may be encoded already, and may hold what would end the address.
    return f"![{label}]({quote(address, safe=':%')})"
