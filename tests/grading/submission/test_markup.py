"""A student's HTML stays in its box, however a browser mends what is nested wrongly."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.submission.markup import MAX_DEPTH, clean_html

NAMES = """div p b a li ul ol dl dd dt table tbody thead tr td th caption colgroup col h1 h3 pre details summary br hr
img blockquote span code i form select option button nobr body html template svg math style marquee center font"""
TAGS = st.sampled_from(NAMES.split())
PIECES = st.one_of(
    TAGS.map(lambda name: f"<{name}>"),
    TAGS.map(lambda name: f"</{name}>"),
    TAGS.map(lambda name: f'<{name} class="navbar dataframe" id="top" style="position:fixed" href="http://a">'),
    st.sampled_from(["x", " ", "&lt;", "&", "<", ">", '"', "'", "<!--", "-->", "<!", "<?", "</", "<a b='", "/>"]),
)


def _bodies(markup: str) -> Any:
    from bleach._vendor import html5lib

    page = (
        f'<!DOCTYPE html><html><body><div id="box">{markup}<hr id="end"></div><div id="after">ours</div></body></html>'
    )
    return html5lib.parse(page, namespaceHTMLElements=False).find("body")


def assert_contained(markup: str) -> None:
    """In a parser that follows the standard, the box holds all of it, and what follows the box still follows it."""
    body = _bodies(markup)
    assert [child.get("id") for child in body] == ["box", "after"], markup
    assert "".join(body[1].itertext()) == "ours", markup
    assert body[0][-1].get("id") == "end", markup
    for element in body[0].iter():
        assert element.get("style") is None
        assert element in (body[0], body[0][-1]) or element.get("id") is None
        assert set((element.get("class") or "dataframe").split()) == {"dataframe"}


def test_the_measure_can_fail() -> None:
    with pytest.raises(AssertionError):
        assert_contained("<ul><li><div><li></li></div></li></ul></div>")
    with pytest.raises(AssertionError):
        assert_contained("<ul><li><div><li></li></div></li></ul>")


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_nesting_leaves_the_box(given: str) -> None:
    cleaned = clean_html(given)
    assert_contained(cleaned)
    assert clean_html(cleaned) == cleaned, "what was cleaned once may be cleaned again"


@pytest.mark.parametrize(
    "given",
    [
        "<ul><li><div><li></div></li></ul></div></div>",
        "<dl><dd><div><dd></div></dl></div>",
        "<table><tr><td><div><td></div></table></div>",
        "<p><b><div>x</p></b></div></div>",
        "</td></tr></table></div></body></html>",
        "<table><caption><div><tr></div></table></div>",
        "<h1><div><h2></h1></div></div>",
        "<a href='http://a'><div><a href='http://b'></div></a></div>",
        "<!-- a box </div></div>",
        "<style></div>",
    ],
)
def test_known_ways_out_of_a_box_are_closed(given: str) -> None:
    assert_contained(clean_html(given))


def test_names_and_looks_of_the_page_are_not_for_students() -> None:
    bar = '<div class="navbar navbar-fixed-top" id="toc" style="position:fixed"><a href="#stats_p50">Score</a></div>'
    assert clean_html(bar) == "<div>Score</div>"
    assert clean_html('<a href="/formgrader/api/x">x</a><a name="top">y</a>') == "xy"
    assert clean_html('<td colspan="9">x</td>') == "x", "no cell outside a table"
    assert clean_html('<table width="9000"><tr><td colspan="65000">x</table>') == ("<table><tr><td>x</td></tr></table>")
    assert clean_html("<h4>Score: 17</h4>") == "<h4>Score: 17</h4>", "words cannot be forbidden; their place is marked"


def test_what_data_frames_and_answers_hold_stays() -> None:
    table = (
        '<div><table border="1" class="dataframe">\n<thead><tr style="text-align: right;"><th></th><th>a</th></tr>'
        "</thead><tbody><tr><th>0</th><td>1 &lt; 2 &amp; 3</td></tr></tbody></table><p>1 rows</p></div>"
    )
    wanted = table.replace(' border="1"', "").replace(' style="text-align: right;"', "")
    assert clean_html(table) == wanted
    assert clean_html("<style>td {color: red}</style><p>a<p>b") == "<p>a</p><p>b</p>"
    assert clean_html("p50 < p95 & x") == "p50 &lt; p95 &amp; x"
    assert clean_html('<a href="https://numpy.org/doc?a=1&b=2">x</a>').startswith(
        '<a href="https://numpy.org/doc?a=1&amp;b=2" rel='
    )


def test_size_follows_from_the_size_of_the_text() -> None:
    for piece in ("<p><b title=1>", "<b>", "&", "<", "<a href='", "<li>", "<table><tr><td>"):
        text = piece * (200_000 // len(piece))
        assert len(clean_html(text)) <= 6 * len(text) + 20 * MAX_DEPTH
