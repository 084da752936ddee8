"""Starting and ending quickly: what is slow to import and not needed, and what Python tidies up for nobody.

A class of twenty is graded in a few seconds, of which starting is the larger part.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator

__all__ = ["leave_out_format_checker", "without_collecting"]


def leave_out_format_checker() -> None:
    """Keep jsonschema from importing an optional checker of links: it takes a second, and no notebook needs it."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Around imports: modules stay, so looking for garbage among them again and again finds nothing.

    What is there afterwards is kept out of later searches, the one at the end of the process included.
    """
    was_on, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if was_on:
            gc.enable()
