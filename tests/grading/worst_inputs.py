"""The worst texts known for each place where the grader itself reads what a student handed in; run as a script.

Prints a JSON line {"place", "seconds", "megabytes"} for each; the parent bounds memory, and an alarm ends what hangs.
The texts are as large as what comes before lets through, or so large that what is not linear would take minutes.
"""

# Inputs are made by lambdas in tables, whose types are not inferred.
# mypy: disable-error-code="misc, operator"

import contextlib
import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 90
MAX_SOURCE = 1 << 20
MAX_TEXT = 200_000
BOMB = [" " * d + line for d in range(19) for line in ("try: pass", " finally:")]
COLLIDING = (1 << 61) - 1

Case = tuple[str, Callable[[], Any]]


def repeated(piece: str, size: int) -> str:
    return piece * (size // len(piece))


def notebooks() -> Iterator[Case]:
    from grading.submission.rebuild import MAX_NOTEBOOK_BYTES, NotANotebookError, parse_notebook

    def read(content: bytes) -> None:
        with contextlib.suppress(NotANotebookError):
            parse_notebook(content[:MAX_NOTEBOOK_BYTES], "x.ipynb")

    full = MAX_NOTEBOOK_BYTES - 100
    for piece in (b"[],", b"{},", b'{"a":[]},', b"[", b'"\\",', b"1e9,", b'"x",'):
        yield f"notebook {piece!r}", lambda piece=piece: read(b'{"cells":[],"x":[' + piece * (full // len(piece)))
    yield "notebook old", lambda: read(b'{"worksheets":[' + b'{"cells":[]},' * 300_000 + b'{"cells":[]}]}')
    yield "notebook name", lambda: read(b'{"cells":[{"cell_type":"code","source":[' + b'"",' * 900_000 + b'""]}]}')


def sources() -> Iterator[Case]:
    from grading.exercises.latency_stats.judge import _compiles
    from grading.judging.flags import source_flags
    from grading.sandbox.answers import known_names
    from grading.submission.untouched import _meaning

    for piece in ("assert_", "isclose ", "gc.get_refer", "latency_summary exec", "\n", "os.", "assert_a  ", "inspect."):
        yield f"flags {piece!r}", lambda piece=piece: source_flags(repeated(piece, MAX_SOURCE))
    yield "names", lambda: known_names([" ".join(f"a{n:x}" for n in range(500_000))])
    yield "compiles finally", lambda: _compiles("x = 1\n" + "\n".join([*BOMB, " " * 19 + ";".join(["a"] * 100)]))
    for piece in (
        "(",
        "{",
        "[a for a in ",
        "-",
        "a;",
        "f'{a}'",
        "lambda:",
        "a\n",
        "not ",
        "a.",
        "elif a:pass\n",
        "with (",
    ):
        yield f"compiles {piece!r}", lambda piece=piece: _compiles(repeated(piece, MAX_SOURCE))
        yield f"compiles 32k {piece!r}", lambda piece=piece: _compiles(repeated(piece, 32_000))
    yield "untouched", lambda: _meaning({"cell_type": "code", "source": repeated(" \n", MAX_SOURCE)})


def pages() -> Iterator[Case]:
    from grading.submission.coloured_code import MAX_COLOURED, coloured_code
    from grading.submission.markup import clean_html
    from grading.submission.sanitise import MAX_MARKDOWN, inert_markdown, markdown_to_html

    for piece in ("\n ", "+ ", "'''", 'f"{"', "\\", "1", "1.", "0x", "#\n", "'''\\", "e1", "%%a\n", " ", '"""\n'):
        yield f"code {piece!r}", lambda piece=piece: coloured_code(repeated(piece, MAX_COLOURED))
        yield f"code 1M {piece!r}", lambda piece=piece: coloured_code(repeated(piece, MAX_SOURCE))
    tags = ("<b>x", "<p><b title=1>", "<table><tr><td>", "<!--", "<a href='", "&", "<", "</p>",
            "<script>", "<a b='c' d=e>", "<li>", "<p>a<div>", "<svg>", "<b ", "<a a a a ",
            "<img src='data:image/png;base64,", "</style", "<i a=\"")  # fmt: skip
    for piece in tags:
        yield f"html {piece!r}", lambda piece=piece: clean_html(repeated(piece, MAX_TEXT))
    for piece in (
        "<img ",
        "<http://",
        "data ",
        "javascript:",
        "<img src='",
        '<img alt="',
        "\\style",
        "<a",
        "attachment:",
    ):
        yield f"inert {piece!r}", lambda piece=piece: inert_markdown(repeated(piece, MAX_SOURCE))
    signs = ("[", "![", "*", "**a ", "_a", "`a``", ">", "$a", "\\begin{a}", "\\\\(", "\\\\[", "[a](", "[a](<",
             "[a]: b\n", "~~", "<a ", "<!--", "|", "a|b\n-|-\n", " \n", "- ", "\\", "$$", "[[a]", "`*_$",
             "```perl\n", "> - ", "*_", "1. ")  # fmt: skip
    for piece in signs:
        yield f"markdown {piece!r}", lambda piece=piece: markdown_to_html(repeated(piece, MAX_MARKDOWN))
    definition = f"[a]: http://x/{'y' * (MAX_MARKDOWN // 2)}\n\n"
    yield "markdown used often", lambda: markdown_to_html(definition + repeated("[a] ", MAX_MARKDOWN // 2 - 20))
    yield "markdown long", lambda: markdown_to_html(repeated("[", MAX_SOURCE))


def outputs() -> Iterator[Case]:
    from grading.sandbox.outputs import Outputs
    from grading.submission.pictures import still_picture
    from grading.submission.sanitise import clean_outputs

    def shown(kind: str, name: str) -> dict[str, Any]:
        content = {"data": {"text/plain": "x"}, "metadata": {}, "transient": {"display_id": name}}
        return {"type": kind, "content": content}

    def flood() -> None:
        taken = Outputs(1, 1 << 20, "cut")
        for _ in range(1900):
            taken.message(0, shown("display_data", "a"), 100)
        for _ in range(300_000):
            taken.message(0, shown("update_display_data", "a"), 1)

    yield "updates of many outputs", flood
    for key in ("text/html", "text/plain", "image/png", "application/json"):
        one = {"output_type": "display_data", "data": {key: repeated("<b>", MAX_SOURCE)}, "metadata": {}}
        yield f"outputs {key}", lambda one=one: clean_outputs([one] * 8)
    yield "picture", lambda: still_picture("image/jpeg", repeated("/9j/", 8 << 20))


def templates() -> Iterator[Case]:
    from grading.hooks.display_filters import FILTERS

    context = {"cell": {"id": "own-1", "source": ""}, "resources": {}}
    for piece in ("\x1b[1m", "\x1b[31mx", "\x1b[", "\x1b]0;", "\x1b[1;", "\x1b"):
        text = repeated(piece, MAX_TEXT)
        yield f"printed {piece!r}", lambda text=text: [FILTERS["ansi2html"](context, text) for _ in range(8)]
    yield "printed numbers", lambda: FILTERS["ansi2html"](context, "\x1b[" + repeated("1;", MAX_TEXT) + "m")
    yield "a page full of all that it may hold", _page
    yield "files prefix", lambda: FILTERS["strip_files_prefix"](repeated("[", MAX_SOURCE))


def _page() -> None:
    """The largest notebook that is read, with the largest outputs that are kept."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    from grading.hooks.display_filters import BoundedHTML
    from grading.hooks.feedback_page import display_config

    streams = ("\x1b[1mx", "<", "&", '"')
    shown = [new_output("display_data", {"text/html": repeated("<b>x</b>", MAX_TEXT)})] * 5
    shown += [new_output("stream", text=repeated(piece, MAX_TEXT)) for piece in streams]
    cells = [new_code_cell(repeated("+ ", 40_000), id=f"own-{n}", outputs=shown if n < 6 else []) for n in range(50)]
    cells += [new_markdown_cell(repeated("\\\\[", 19_000), id=f"own-{n}") for n in range(50, 150)]
    config = display_config()
    config.HTMLExporter.template_name = "classic"
    page, _ = BoundedHTML(config=config).from_notebook_node(new_notebook(cells=cells))
    assert len(page) < 60_000_000, len(page)


def evidence() -> Iterator[Case]:
    from grading.judging.suspicion import evidence_flags

    many = [{"pid": n * COLLIDING, "round": n} for n in range(100_000)]
    yield "same hashes", lambda: evidence_flags({"runs": many})
    series = {str(n): [float(n + k % 97 + 1) for k in range(20_000)] for n in range(10)}
    yield "many series", lambda: evidence_flags({"runs": [{"round": r, "samples_us": series} for r in range(20)]})
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    yield (
        "deep name",
        lambda: evidence_flags({"runs": [{"round": deep, "samples_us": series}], "created_at": "9" * 10**6}),
    )


def timestamps() -> Iterator[Case]:
    from grading.submission.handed_in import parse_time

    for piece in (",9", "9", "a ", "1m ", "2026-01-01 ", " ", "+02", "/zone"):
        yield f"time {piece!r}", lambda piece=piece: parse_time(repeated(piece, 200))


def main() -> None:
    for family in (notebooks, sources, pages, outputs, templates, evidence, timestamps):
        for place, read in family():
            signal.alarm(SECONDS)
            started = time.monotonic()
            read()
            signal.alarm(0)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(json.dumps({"place": place, "seconds": time.monotonic() - started, "megabytes": peak}), flush=True)
    print(json.dumps({"place": "end", "seconds": 0.0, "megabytes": 0}))


if __name__ == "__main__":
    sys.setrecursionlimit(1000)
    main()
