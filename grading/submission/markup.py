"""A student's HTML as a page may hold it: a closed list of tags, written anew, whole and well nested.

Nothing of the given markup is passed through.  It is read once from left to right, in time that grows with its length,
and written again from what was understood: known tags with known attributes in a nesting that every browser reads the
same way, so that no end tag can close what stands around it, and all else as text.
"""

import html
import re
from collections.abc import Collection

from grading.submission.pictures import still_picture

__all__ = ["MAX_DEPTH", "TOO_DEEP", "clean_html"]

MAX_DEPTH = 100
MAX_TAGS = 20_000
"""A table of a data frame has a few hundred."""

MAX_NUMBER = {"width": 4000, "height": 4000, "colspan": 100, "rowspan": 100, "start": 100_000}
TOO_DEEP = "(HTML that is nested too deeply is not shown)"
CUT = "(the rest of this HTML is not shown)"

_VOID = frozenset(["br", "col", "hr", "img", "wbr"])
_INLINE = frozenset(
    [
        *("a", "abbr", "b", "code", "del", "em", "i", "ins", "kbd", "q", "s", "samp", "small", "span", "strong"),
        *("sub", "sup", "tt", "u", "var"),
    ]
)
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_BLOCKS = frozenset(["blockquote", "details", "div", "dl", "hr", "ol", "p", "pre", "table", "ul"]) | _HEADINGS
_PARENTS = {
    "summary": ("details",),
    "li": ("ul", "ol"),
    "dt": ("dl",),
    "dd": ("dl",),
    "caption": ("table",),
    "colgroup": ("table",),
    "col": ("colgroup", "table"),
    "thead": ("table",),
    "tbody": ("table",),
    "tfoot": ("table",),
    "tr": ("thead", "tbody", "tfoot", "table"),
    "td": ("tr",),
    "th": ("tr",),
}
"""Tags that mean something only inside others; elsewhere browsers drop some and close others for them."""

_TABLE_ONLY = frozenset(["table", "thead", "tbody", "tfoot", "tr", "colgroup"])
_CELLS = frozenset(["td", "th", "caption"])
_TABLE = frozenset(["table"])
_TAGS = _VOID | _INLINE | _BLOCKS | frozenset(_PARENTS)
_WITHOUT_CONTENT = frozenset(
    ["iframe", "noembed", "noframes", "noscript", "object", "script", "style", "svg", "template", "textarea", "title"]
)
"""Their text is no text for readers."""

_ATTRIBUTES = {
    "a": ("href",),
    "img": ("src", "alt", "width", "height"),
    "td": ("colspan", "rowspan", "align"),
    "th": ("colspan", "rowspan", "align", "scope"),
    "tr": ("align",),
    "ol": ("start",),
}
_CLASSED = frozenset(["code", "div", "pre", "span", "table"])
_CLASSES = frozenset(
    [
        *(
            "dataframe",
            "highlight",
            "c",
            "c1",
            "cm",
            "k",
            "kc",
            "kn",
            "mf",
            "mi",
            "n",
            "nb",
            "ne",
            "nf",
            "o",
            "ow",
            "p",
        ),
        *("s", "s1", "s2", "se", "si"),
    ]
)
"""Of a data frame and of coloured code. The pages hold Bootstrap: any other class might be one of its boxes."""

# Neither < nor > may stand in a tag, not even in quotes: where a tag ends must not depend on what follows.
_TOKEN = re.compile(r"<(?:!--|(/?)([A-Za-z][A-Za-z0-9]*+)((?:[\s/][^<>]*+)?)>|[!?/][^<>]*+>?)")
_NAME_AND_VALUE = re.compile(r"""([A-Za-z][\w:-]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'=`]++))?""")
_BARE = re.compile(r"&(?!#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)")
_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s<>\"'\\]+", re.IGNORECASE)
_PICTURE = re.compile(r"data:(image/(?:png|jpeg));base64,([A-Za-z0-9+/=\s]++)")


def clean_html(text: str) -> str:
    """``text`` with nothing but harmless tags, each of which ends inside; a sentence where it is too deep."""
    return _Writer().write(text)


class _Writer:
    """What was written so far, and which elements of it are open."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.opened: list[str] = []

    def write(self, text: str) -> str:
        position = tags = 0
        while (token := _TOKEN.search(text, position)) is not None:
            self._text(text[position : token.start()])
            position = token.end()
            if token[0] == "<!--":
                end = text.find("-->", position)
                position = len(text) if end < 0 else end + 3
            name = (token[2] or "").lower()
            if name in _WITHOUT_CONTENT and not token[1]:
                position = _behind(name, text, position)
            if name not in _TAGS:
                continue
            tags += 1
            if tags > MAX_TAGS:
                position, text = 0, CUT
                break
            if token[1]:
                self._close(name)
            else:
                self._open(name, token[3])
            if len(self.opened) > MAX_DEPTH:
                return TOO_DEEP
        self._text(text[position:])
        self._end(0)
        return "".join(self.parts)

    def _text(self, text: str) -> None:
        if text:
            self.parts.append(_BARE.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;"))

    def _open(self, name: str, given: str) -> None:
        if name in _PARENTS:
            at = self._nearest(_PARENTS[name], _TABLE if name in _TABLE_ONLY | _CELLS | {"col"} else _CELLS)
            if at is None:
                return
            self._end(at + 1)
        elif self.opened and self.opened[-1] in _TABLE_ONLY:
            return  # a browser would put it in front of the table
        elif name in _BLOCKS:
            if (at := self._nearest(("p",))) is not None:
                self._end(at)
            if name in _HEADINGS and self.opened and self.opened[-1] in _HEADINGS:
                self._end(len(self.opened) - 1)
        elif name == "a" and (at := self._nearest(("a",))) is not None:
            self._end(at)
        attributes = _attributes(name, given)
        if attributes is None:
            return
        self.parts.append(f"<{name}{attributes}>")
        if name not in _VOID:
            self.opened.append(name)

    def _close(self, name: str) -> None:
        at = self._nearest((name,), _TABLE if name in _TABLE_ONLY | _CELLS else _CELLS)
        if at is not None and name not in _VOID:
            self._end(at)

    def _nearest(self, names: Collection[str], walls: Collection[str] = _CELLS) -> int | None:
        """Where the innermost open element of these names stands; none is looked for beyond a wall."""
        for at in range(len(self.opened) - 1, -1, -1):
            if self.opened[at] in names:
                return at
            if self.opened[at] in walls:
                return None
        return None

    def _end(self, at: int) -> None:
        """Close all that was opened from there on."""
        self.parts += [f"</{name}>" for name in reversed(self.opened[at:])]
        del self.opened[at:]


def _behind(name: str, text: str, position: int) -> int:
    """The place behind an element whose content is dropped; the end of the text where it has none."""
    end = re.compile(rf"</{name}(?:[\s/][^<>]*)?>", re.IGNORECASE).search(text, position)
    return len(text) if end is None else end.end()


def _attributes(name: str, given: str) -> str | None:
    """The known attributes of a tag, checked and written anew; None for a picture or a link without any."""
    allowed = _ATTRIBUTES.get(name, ())
    if not given or not (allowed or name in _CLASSED):
        return None if name in ("a", "img") else ""
    kept: dict[str, str] = {}
    for found, quoted in _NAME_AND_VALUE.findall(given):
        attribute = found.lower()
        value = html.unescape(quoted[1:-1] if quoted[:1] in ("'", '"') else quoted)
        if attribute == "class" and name in _CLASSED:
            value = " ".join(word for word in value.split()[:10] if word in _CLASSES)
        elif attribute == "src" and name == "img":
            value = _picture(value)
        elif attribute not in allowed or not _fits(attribute, value):
            continue
        if value or attribute == "alt":
            kept.setdefault(attribute, value)
    if name == "img":
        if "src" not in kept:
            return None
        kept.setdefault("alt", "a picture without a description")
    if name == "a":
        if "href" not in kept:
            return None
        kept["rel"] = "noopener noreferrer nofollow"
    return "".join(f' {attribute}="{html.escape(value)}"' for attribute, value in kept.items())


def _fits(attribute: str, value: str) -> bool:
    if attribute in MAX_NUMBER:
        return value.isascii() and value.isdigit() and len(value) < 7 and 0 < int(value) <= MAX_NUMBER[attribute]
    if attribute == "href":
        # A link into the page, or into the server that shows it, could press what is ours.
        return len(value) <= 2000 and _ADDRESS.fullmatch(value) is not None
    if attribute == "align":
        return value in ("left", "right", "center")
    return len(value) <= 500 if attribute == "alt" else value in ("row", "col", "rowgroup", "colgroup")


def _picture(address: str) -> str:
    """The address of a picture that it holds; one from elsewhere tells its server who reads the page, and when."""
    found = _PICTURE.fullmatch(address)
    content = still_picture(found[1], found[2]) if found else None
    return f"data:{found[1]};base64,{content}" if found and content else ""
