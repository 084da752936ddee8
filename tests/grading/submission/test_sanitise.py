"""What reaches a browser from a student: text, pictures, harmless tags."""

import base64
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.submission.pictures import clean_attachments
from grading.submission.sanitise import clean_html, clean_outputs, inert_markdown, is_active_file, markdown_to_html

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()

HOSTILE = [
    "<script>window.PWNED = 1</script>",
    "<img src=x onerror='window.PWNED=1'>",
    "<svg onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='jAvA&#115;cript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<form action='https://evil.example'><input name=q></form>",
    "<img src='https://evil.example/seen.png'>",
    "<style>body{background:url(https://evil.example)}</style>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "[x](javascript:alert(1))",
    "<!--><img src=x onerror=alert(1)>-->",
    "<https://a/tabindex=1/autofocus/onfocus=alert(1)>",
]
ACTIVE_TAGS = {"script", "iframe", "svg", "form", "style", "base", "meta", "math", "object", "embed", "link", "input"}


class Harm(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ACTIVE_TAGS:
            self.found.append(tag)
        for name, value in attrs:
            given = (value or "").strip().lower()
            if name.startswith("on") or name in ("style", "srcdoc", "formaction"):
                self.found.append(name)
            if name == "href" and not given.startswith(("http://", "https://", "mailto:", "#")):
                self.found.append(given)
            if name == "src" and not given.startswith("data:image/png;base64,"):
                self.found.append(given)


def harm(html: str) -> list[str]:
    parser = Harm()
    parser.feed(html)
    parser.close()
    return parser.found


def test_the_measure_of_harm_can_fail() -> None:
    assert harm("<p><script>1</script></p>") == ["script"]
    assert harm("<img src=x onerror=1>") == ["x", "onerror"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_html_and_markdown_become_harmless(hostile: str) -> None:
    assert harm(clean_html(hostile)) == []
    assert harm(markdown_to_html(hostile)) == []
    assert harm(markdown_to_html(inert_markdown(hostile))) == []


@given(st.text(alphabet="<>/!?abscriptimg ='\"&#;:()[]`$\\\n", max_size=80))
def test_inert_markdown_starts_no_tag(source: str) -> None:
    import re

    assert not re.search(r"<[A-Za-z/!?]", inert_markdown(source))


def test_inert_markdown_reads_the_same() -> None:
    assert (
        inert_markdown("p50 < p95, $a < b$, `x<y`, <https://numpy.org>")
        == "p50 < p95, $a < b$, `x< y`, https://numpy.org"
    )
    assert "\\href" not in inert_markdown(r"$\href{javascript:alert(1)}{x}$")


def test_tables_of_a_data_frame_stay() -> None:
    html = '<div><table border="1" class="dataframe"><tr><td>12</td></tr></table></div>'
    assert "<td>12</td>" in clean_html(html)


def outputs_of(data: dict[str, object]) -> dict[str, str]:
    return clean_outputs([{"output_type": "display_data", "data": data, "metadata": {"width": '1"><script>'}}])[0][
        "data"
    ]


def test_pictures_stay_and_forged_pictures_go() -> None:
    assert outputs_of({"image/png": PNG, "text/plain": "<Figure>"}) == {"image/png": PNG, "text/plain": "<Figure>"}
    assert "image/png" not in outputs_of({"image/png": 'x"><script>alert(1)</script>'})
    assert "image/png" not in outputs_of({"image/png": base64.b64encode(b"<svg onload=alert(1)>").decode()})


@pytest.mark.parametrize(
    "kind",
    [
        "application/javascript",
        "text/javascript",
        "image/svg+xml",
        "text/markdown",
        "text/latex",
        "application/vnd.jupyter.widget-view+json",
        "text/vnd.mermaid",
    ],
)
def test_active_kinds_leave_a_sentence(kind: str) -> None:
    data = outputs_of({kind: "alert(1)"})
    assert set(data) == {"text/plain"}
    assert kind in data["text/plain"]


def test_metadata_of_outputs_is_dropped() -> None:
    output = {
        "output_type": "display_data",
        "data": {"text/plain": "x"},
        "metadata": {"image/png": {"width": '1"><script>'}},
    }
    assert clean_outputs([output])[0]["metadata"] == {}


def test_outputs_that_are_none_of_the_format_are_dropped() -> None:
    rubbish = [3, None, {"output_type": "update"}, {"output_type": "stream", "name": "<b>", "text": 7}, {"data": {}}]
    assert clean_outputs(rubbish) == [{"output_type": "stream", "name": "stdout", "text": ""}]
    error = clean_outputs([{"output_type": "error", "ename": 3, "traceback": [1, "line"]}])
    assert error == [{"output_type": "error", "ename": "", "evalue": "", "traceback": ["", "line"]}]


@pytest.mark.parametrize(
    "name", ["a.html", "a.HTM", "a.svg", "x/y.xhtml", "a.js", "a.mjs", "a.xml", "a.css", "a.svgz", "a.wasm"]
)
def test_files_a_browser_would_run_are_known(name: str) -> None:
    assert is_active_file(name)


@pytest.mark.parametrize(
    "name", ["data.npz", "benchmark.json", "model.onnx", "notes.md", "a.png", "timestamp.txt", "script.py"]
)
def test_other_files_are_not(name: str) -> None:
    assert not is_active_file(name)


@pytest.mark.parametrize(
    "source", ["![plot](attachment:plot.png)", "![](ATTACHMENT:x.svg)", "![a][b]\n\n[b]: attachment:c"]
)
def test_a_pasted_picture_does_not_cost_the_page(source: str) -> None:
    """Jupyter keeps a picture that is dropped into a cell as an attachment; nbconvert wants every one to be there."""
    svg = {"x.svg": {"image/svg+xml": "<svg/>"}, "c": {"image/png": "PHN2Zy8+"}, "plot.png": "rubbish"}
    for attachments in (None, {}, svg, {7: svg}, "rubbish", [1]):
        page = markdown_to_html(f"before\n\n{source}\n\nafter", attachments)
        assert "see the file that was handed in" in page
        assert "<img" not in page


@pytest.mark.parametrize("name", ["plot.png", "two words.png", "ö%.png"])
def test_a_pasted_picture_is_shown_once(name: str) -> None:
    link = f"![my < plot](attachment:{quote(name)})"
    page = markdown_to_html(f"{link}\n\nand {link}", {name: {"image/png": PNG}})
    assert page.count(f'<img alt="my &lt; plot" src="data:image/png;base64,{PNG}">') == 1
    assert "shown above" in page


def test_a_picture_whose_name_looks_encoded_is_shown_once_as_well() -> None:
    link = "![plot](attachment:a%20b.png)"
    page = markdown_to_html(f"{link}\n\nand {link}", {"a%20b.png": {"image/png": PNG}})
    assert page.count("<img") == 1
    assert "(picture plot: shown above)" in page


@pytest.mark.parametrize(
    "tag",
    [
        '<img src="attachment:two%20words.png" width="300"/>',
        "<IMG width=300 alt='my plot' src='attachment:two words.png'>",
        '<div align="center">\n<img alt="a [b](c) `d" src="attachment:two%20words.png">\n</div>',
    ],
)
def test_a_picture_that_was_resized_in_jupyter_is_shown(tag: str) -> None:
    """Jupyter turns it from Markdown into HTML; the stored notebook, made inert, shows it as well."""
    attachments = {"two words.png": {"image/png": PNG}}
    for source in (tag, inert_markdown(tag)):
        page = markdown_to_html(f"before\n\n{source}\n\nafter", attachments)
        assert page.count(f'src="data:image/png;base64,{PNG}"') == 1
        assert "attachment:" not in page
        assert "img" not in page.replace("<img", "")


@pytest.mark.parametrize("tag", ['<img src="https://example.org/x.png">', "<img src=x onerror=alert(1)>", "<img>"])
def test_other_pictures_in_html_stay_text(tag: str) -> None:
    assert inert_markdown(tag).startswith("< img")


def test_pasted_pictures_are_bounded_and_what_they_say() -> None:
    jpeg = base64.b64encode(b"\xff\xd8\xff" + b"x" * 100).decode()
    assert clean_attachments({"a": {"image/jpeg": jpeg}, "b": {"image/png": jpeg}}) == {"a": {"image/jpeg": jpeg}}
    assert clean_attachments(
        {"a": {"image/svg+xml": "<svg/>", "text/html": "<b>", "image/png": [PNG[:8], PNG[8:]]}}
    ) == {"a": {"image/png": PNG}}
    large = base64.b64encode(b"\xff\xd8\xff" + bytes(3 << 20)).decode()
    assert len(clean_attachments({str(n): {"image/jpeg": large} for n in range(5)})) == 2
    too_large = base64.b64encode(b"\xff\xd8\xff" + bytes(5 << 20)).decode()
    assert clean_attachments({"a": {"image/jpeg": too_large}, "x" * 201: {"image/png": PNG}}) == {}
    assert len(clean_attachments({str(n): {"image/png": PNG} for n in range(50)})) == 20


def test_html_that_would_take_minutes_to_parse_is_not_parsed() -> None:
    hostile = "<div>" * 101
    assert "nested too deeply" in clean_html(hostile)
    assert "nested too deeply" in clean_html("<b></i>" * 101), "a tag that closes nothing does not count"
    rows = "<tr><td>1<td>2</tr>" * 500 + "<p>one<p>two<br>" * 500
    assert "nested too deeply" not in clean_html(f"<table>{rows}</table>" + "<b>x</b>" * 500)


def test_very_long_markdown_is_shown_as_text() -> None:
    page = markdown_to_html("\\begin{a}<b>" * 2000)
    assert page.startswith("<pre>\\begin{a}&lt;b&gt;")
