"""What is slow to import and not needed here, left out before the first import of ``nbformat``."""

import sys

__all__ = ["leave_out_format_checker"]


def leave_out_format_checker() -> None:
    """Keep jsonschema from importing an optional checker of links: it takes a second, and no notebook needs it."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
