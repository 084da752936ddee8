"""Code in colours, in time that grows with its length, whatever was handed in.

General highlighters try rules that look far ahead at every place of a text; a page of blank lines can keep one busy for
hours.  Here one expression takes each character once.  The classes are those of Pygments, whose colours the pages have.
"""

import builtins
import html
import keyword
import re
from collections.abc import Iterator

__all__ = ["MAX_COLOURED", "coloured_code", "plain_code"]

MAX_COLOURED = 50_000
"""Characters of one text; a longer one is shown in one colour."""

_TOKEN = re.compile(
    r"""
      (?P<c1>\#[^\n]*+)
    | (?P<s2>[rRbBuUfF]{0,2}(?:\"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3}|\\?\Z)|'{3}(?:[^'\\]|\\.|'(?!''))*+(?:'{3}|\\?\Z)))
    | (?P<s1>[rRbBuUfF]{0,2}(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?))
    | (?P<mf>(?:\d[\d_]*+)?\.\d[\d_]*+(?:[eE][+-]?\d++)?|\d[\d_]*+[eE][+-]?\d++)
    | (?P<mi>0[xXoObB][\da-fA-F_]++|\d[\d_]*+)
    | (?P<word>[^\W\d]\w*+)
    | (?P<o>[-+*/%@&|^~<>=!]++)
    | (?P<p>[()\[\]{},;:.]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"True", "False", "None"}
_OPERATORS = {"and", "or", "not", "in", "is"}
_IMPORTS = {"import", "from"}


def coloured_code(source: str) -> str:
    """HTML of a piece of Python: one box, coloured unless it is too long for that."""
    return _boxed("".join(_pieces(source)) if len(source) <= MAX_COLOURED else html.escape(source))


def plain_code(source: str) -> str:
    """HTML of any text in the same box, in one colour."""
    return _boxed(html.escape(source))


def _boxed(inner: str) -> str:
    return f'<div class="highlight"><pre>{inner.strip(chr(10))}\n</pre></div>'


def _pieces(source: str) -> Iterator[str]:
    position = 0
    for token in _TOKEN.finditer(source):
        yield html.escape(source[position : token.start()])
        position = token.end()
        kind = token.lastgroup or "n"
        yield f'<span class="{_kind_of(token[0]) if kind == "word" else kind}">{html.escape(token[0])}</span>'
    yield html.escape(source[position:])


def _kind_of(word: str) -> str:
    if word in _CONSTANTS:
        return "kc"
    if word in _OPERATORS:
        return "ow"
    if word in _IMPORTS:
        return "kn"
    if keyword.iskeyword(word):
        return "k"
    known = getattr(builtins, word, None)
    if known is None:
        return "n"
    return "ne" if isinstance(known, type) and issubclass(known, BaseException) else "nb"
