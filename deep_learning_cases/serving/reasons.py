"""What an exception says, fit to be shown to a stranger: one line, not long, without addresses of this process."""

import re

from deep_learning_cases.errors import one_line

__all__ = ["reason"]

_OBJECT = re.compile(r"<([\w.]+)[^<>]* at 0x[0-9a-fA-F]+>")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def reason(error: BaseException, most: int = 200) -> str:
    """The message of ``error`` in at most ``most`` characters, or the name of its class where it says nothing."""
    try:
        text = one_line(error, most)
    except Exception:  # an exception whose own text fails
        text = type(error).__name__
    return _ADDRESS.sub("(an address)", _OBJECT.sub(r"(a \1)", text))
