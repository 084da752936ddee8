"""What a browser may show of a student's work: text, still pictures, and a short list of harmless HTML.

Feedback goes to students and formgrader runs in the instructor's session, so neither may hold a script, a form, a frame
or a picture fetched from elsewhere.  Outputs are cleaned once, before they are stored; Markdown is made inert in the
stored notebook and cleaned again after rendering.
"""

import html
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from grading.submission.coloured_code import coloured_code, plain_code
from grading.submission.markup import clean_html
from grading.submission.pictures import KINDS, as_markdown, clean_attachments, replace_pasted, still_picture

__all__ = ["as_written", "clean_html", "clean_outputs", "inert_markdown", "is_active_file", "markdown_to_html"]

MAX_TEXT = 200_000
# Renderers take time that grows with the square of what is ambiguous.
MAX_MARKDOWN = 20_000
# A definition can be long and be used a thousand times.
MAX_RENDERED = 20 * MAX_MARKDOWN

# MathJax commands that reach outside their formula: links, styles, classes, ids, further packages.
_MATHJAX = re.compile(r"\\(?=(?:href|style|class|cssId|require|data|mmlToken|unicode|bbox|Tip|texttip|mathtip)\b)")
_ACTIVE = re.compile(r"html|xml|svg|javascript|ecmascript|css|flash|mathml|xslt|wasm")
_ACTIVE_SUFFIXES = {
    ".mjs",
    ".htc",
    ".hta",
    ".mht",
    ".mhtml",
    ".shtml",
    ".xht",
    ".svgz",
    ".swf",
    ".jsp",
    ".php",
    ".wasm",
}


def clean_outputs(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """Outputs of one cell in the notebook format, with only what is safe to show; others leave a line saying so.

    Anything that is not an output of the format is dropped: forged messages need not be well-formed.
    """
    cleaned = (_clean_output(output) for output in outputs if isinstance(output, dict))
    return [output for output in cleaned if output is not None]


def inert_markdown(source: str) -> str:
    """Markdown in which no HTML tag can begin and no MathJax command acts outside its formula.

    A tag needs a letter, a slash, ``!`` or ``?`` right behind ``<``: a space in between leaves a text that reads the
    same, in prose, in code and in mathematics, whatever a renderer takes for which.
    """
    source = replace_pasted(source, as_markdown)
    source = re.sub(r"<(https?://[^\s<>\"']+)>", r"\1", source)
    source = re.sub(r"<(?=[A-Za-z/!?])", "< ", source)
    source = _MATHJAX.sub(lambda _: "\\ ", source)
    return re.sub(r"(?i)\b(javascript|vbscript|data)(\s*):(?=\S)", r"\1\2: ", source)


def markdown_to_html(source: str, attachments: Any = None) -> str:
    """Markdown as feedback and formgrader show it: nbconvert's own rendering, then :func:`clean_html`.

    ``attachments`` are the cell's pasted pictures.  Each is shown once, so that a page is not larger than they are.
    """
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    if len(source) > MAX_MARKDOWN:
        return as_written(source)
    kept = clean_attachments(attachments)
    pictures = dict(kept)
    shown: set[str] = set()

    class Renderer(IPythonRenderer):
        """nbconvert gives up a whole page for an attachment that it does not find, and embeds one of any kind."""

        def block_code(self, code: str, info: str | None = None) -> str:
            """nbconvert asks Pygments for whichever of its languages the student names."""
            language = (info or "").split()[:1]
            return coloured_code(code) if language in (["python"], ["python3"], ["py"]) else plain_code(code)

        def block_html(self, html: str) -> str:
            return str(super().block_html(replace_pasted(html, self.image)))

        def inline_html(self, html: str) -> str:
            return str(super().inline_html(replace_pasted(html, self.image)))

        def image(self, text: str, url: str, title: str | None = None) -> str:
            if not url.lower().startswith("attachment:"):
                return str(super().image(text, url, title))
            label = html.escape(html.unescape(re.sub(r"<[^>]*>", "", text)))
            name = url[11:] if url[11:] in pictures or url[11:] in shown else unquote(url[11:])
            for kind, picture in pictures.pop(name, {}).items():
                shown.add(name)
                return f'<img alt="{label}" src="data:{kind};base64,{picture}">'
            where = "shown above" if name in shown else "see the file that was handed in"
            return f"(picture {label or html.escape(name)}: {where})"

    rendered = str(MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(source))
    if len(rendered) > MAX_RENDERED + sum(len(picture) for name in shown for picture in kept[name].values()):
        return as_written(source)
    return clean_html(rendered)


def as_written(source: str) -> str:
    """Markdown as it was typed, where rendering it would take too long."""
    return f"<pre>{html.escape(source)}</pre>"


def is_active_file(name: str) -> bool:
    """Whether a browser would run a file of this name: such files are not copied to where formgrader serves."""
    import mimetypes

    lowered = name.lower()
    suffix = lowered[lowered.rfind(".") :] if "." in lowered else ""
    kind = mimetypes.guess_type(lowered, strict=False)[0] or ""
    return suffix in _ACTIVE_SUFFIXES or bool(_ACTIVE.search(kind))


def _clean_output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        traceback = output.get("traceback")
        lines = traceback if isinstance(traceback, list) else []
        return {
            "output_type": "error",
            "ename": _text(output.get("ename"))[:200],
            "evalue": _text(output.get("evalue"))[:10_000],
            "traceback": [_text(line)[:10_000] for line in lines[:200]],
        }
    if kind in ("display_data", "execute_result"):
        data = _clean_data(output.get("data"))
        cleaned: dict[str, Any] = {"output_type": kind, "data": data, "metadata": {}}
        if kind == "execute_result":
            count = output.get("execution_count")
            cleaned["execution_count"] = count if isinstance(count, int) and not isinstance(count, bool) else None
        return cleaned
    return None


def _clean_data(data: Any) -> dict[str, str]:
    data = data if isinstance(data, dict) else {}
    cleaned: dict[str, str] = {}
    for kind in KINDS:
        image = still_picture(kind, data.get(kind))
        if image is not None:
            cleaned[kind] = image
    # A picture says more than the markup that came with it; HTML is kept where it is the only form, for tables.
    if not cleaned and "text/html" in data:
        markup = clean_html(_text(data["text/html"]))
        if markup.strip():
            cleaned["text/html"] = markup
    if "text/plain" in data:
        cleaned["text/plain"] = _text(data["text/plain"])
    elif not cleaned:
        kinds = ", ".join(sorted(str(kind)[:60] for kind in data)[:5]) or "nothing"
        cleaned["text/plain"] = f"(an output of type {kinds} is not shown)"
    return cleaned


def _text(value: Any, limit: int = MAX_TEXT) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    text = value if isinstance(value, str) else ""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[:limit] + "\n... the rest of this output is not shown ..."
