"""Still pictures, and only what really is one: in outputs, and pasted into written answers."""

import base64
import binascii
from typing import Any

__all__ = ["KINDS", "MAX_IMAGE_BYTES", "clean_attachments", "still_picture"]

MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_CELL_BYTES = 8 * 1024 * 1024
MAX_PICTURES = 20
MAX_NAME = 200

_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
KINDS = tuple(_SIGNATURES)


def still_picture(kind: str, value: Any) -> str | None:
    """A PNG or JPEG as base64 in one line; None where ``value`` is anything else, by its first bytes, or too large."""
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
    return base64.b64encode(content).decode()


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
