"""The figures show every sample in words and picture; the page needs no network, no script, and trusts no text."""

import html.parser
import json
import re

import pytest

from deep_learning_cases import release, report
from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.ground.expectation import compare
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.report import plots


@pytest.fixture
def record(real_evidence):
    return json.loads((real_evidence / artefacts.BENCHMARK).read_text())


class Page(html.parser.HTMLParser):
    """Tags, their attributes and ids of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self._open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"style", "title"} & set(self._open):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def test_every_timing_is_drawn_once(record):
    picture = plots.samples_in_order(record, "int8", 32)
    drawn = sorted(
        (float(x), float(y))
        for axes in picture.figure.axes
        for points in axes.collections
        for x, y in points.get_offsets()
    )
    samples = [sample for run in record["runs"] if run["model"] == "int8" for sample in run["samples_us"]["32"]]
    assert drawn == list(enumerate(samples, 1))


def test_rounds_have_their_own_colour_and_shape(record):
    figure = plots.samples_in_order(record, "fp32", 1).figure
    body = figure.axes[-1].collections
    assert len({tuple(points.get_facecolor()[0]) for points in body}) == 3
    assert len({len(points.get_paths()[0].vertices) for points in body}) > 1


def test_a_distribution_ends_at_one_and_passes_p95(record):
    picture = plots.distribution(record, 1)
    for model, line in zip(record["models"], picture.figure.axes[0].lines[::2], strict=False):
        x, y = line.get_data()
        assert y[-1] == 1
        assert len(x) == 301, model
        p95 = record["summary"][model]["1"]["p95_us"]
        assert max(share for at, share in zip(x, y, strict=True) if at <= p95) >= 0.95


def test_alt_texts_tell_the_numbers(record):
    for picture in plots.pictures(record):
        assert re.search(r"\d", picture.alt_text)
        assert len(picture.alt_text) > 60
    text = plots.samples_in_order(record, "fp32", 1).alt_text
    samples = [sample for run in record["runs"] if run["model"] == "fp32" for sample in run["samples_us"]["1"]]
    assert f"slowest {max(samples):.1f}" in text


def test_a_figure_has_the_same_bytes_twice_and_ids_of_its_own(record):
    first, second = plots.distribution(record, 1).svg(), plots.distribution(record, 1).svg()
    assert first == second
    ids = [set(re.findall(r'\bid="([^"]+)"', picture.svg())) for picture in plots.pictures(record)]
    assert sum(map(len, ids)) == len(set.union(*ids))


def test_identical_timings_can_be_drawn(record):
    for run in record["runs"]:
        run["samples_us"] = {size: [20.0] * 100 for size in run["samples_us"]}
    for picture in plots.pictures(record):
        assert "<svg" in picture.svg()


def test_the_page_is_one_file_without_network_or_script(evidence):
    text = report.build(evidence).read_text()
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href"):
                assert value.startswith("#"), (tag, value)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_the_page_says_what_the_reader_needs(evidence):
    words = Page(report.build(evidence).read_text()).words
    record = json.loads((evidence / artefacts.BENCHMARK).read_text())
    for model, sizes in record["summary"].items():
        for row in sizes.values():
            assert f"{row['p50_us']:,.1f}" in words
            assert f"{row['images_per_second']:,.0f}" in words
        assert record["models"][model]["sha256"] in words
        assert f"{record['models'][model]['bytes']:,}" in words
    assert record["boundary"] in words
    for line in json.loads((evidence / artefacts.RELEASE).read_text())["not_claimed"]:
        assert line in words
    parts = (
        "from where to where", "Not claimed", "The numbers", "Every timing",
        "The machine", "The protocol", "The files", "Verdict:",
    )  # fmt: skip
    order = [words.index(part) for part in parts]
    assert order == sorted(order)


def test_every_figure_has_words_and_every_cell_its_column(evidence):
    page = Page(report.build(evidence).read_text())
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(pictures) == 8
    assert all(one["role"] == "img" and len(one["aria-label"]) > 60 for one in pictures)
    assert all("data-label" in attributes for tag, attributes in page.tags if tag == "td")
    identifiers = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))


def test_text_from_the_evidence_is_never_markup(evidence):
    attack = '</p><script>alert(1)</script><img src=x onerror=alert(1)>"\' onload="x'

    def poison(value):
        if isinstance(value, dict):
            return {key: poison(child) for key, child in value.items()}
        if isinstance(value, list):
            return [poison(child) for child in value]
        return attack if isinstance(value, str) else value

    path = evidence / artefacts.BENCHMARK
    record = json.loads(path.read_text())
    record["boundary"] = attack
    record["environment"] = poison(record["environment"]) | {"governors": [attack]}
    record["protocol"]["input"] = attack
    for run in record["runs"]:
        run["peak_rss_source"] = attack
    path.write_text(json.dumps(record))
    path = evidence / artefacts.REGRESSION
    path.write_text(json.dumps(json.loads(path.read_text()) | {"can_show": attack}))
    release.write(evidence, release.make(evidence) | {"not_claimed": [attack, *release.CLAIMS["not_claimed"]]})
    page = Page(report.build(evidence).read_text())
    assert "script" not in {tag for tag, _ in page.tags}
    assert "img" not in {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "alert(1)" in page.words


@pytest.mark.parametrize(
    "place",
    [{}, {"cpu": 3}, {"cpu": {"flags": "avx"}, "libraries": [], "governors": 5, "memory": {"total_bytes": "x"}}],
)
def test_an_unusual_machine_can_be_reported(evidence, place):
    path = evidence / artefacts.BENCHMARK
    path.write_text(json.dumps(json.loads(path.read_text()) | {"environment": place or {"note": None}}))
    assert "The machine" in Page(report.build(evidence).read_text()).words


def test_without_a_decision_the_page_says_so(evidence):
    (evidence / artefacts.RELEASE).unlink()
    words = Page(report.build(evidence).read_text()).words
    assert "No decision yet" in words
    assert "by these numbers: release" in words


def test_contradictions_are_listed_on_top(evidence):
    path = evidence / artefacts.RELEASE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"universally_faster": True}))
    words = Page(report.build(evidence).read_text()).words
    assert words.index("do not hang together") < words.index("The numbers")
    assert "universally_faster" in words


def test_a_record_that_cannot_be_drawn_leaves_the_old_page(evidence):
    before = (evidence / artefacts.REPORT).read_bytes()
    (evidence / artefacts.BENCHMARK).write_text("{}")
    with pytest.raises(EvidenceError, match="cannot be reported"):
        report.build(evidence)
    assert (evidence / artefacts.REPORT).read_bytes() == before
    with pytest.raises(FileError):
        report.build(evidence / "nowhere")


def test_the_same_folder_gives_the_same_page(evidence):
    first = report.build(evidence).read_bytes()
    assert report.build(evidence).read_bytes() == first


def test_an_edited_or_old_page_is_noticed(evidence):
    path = report.build(evidence)
    assert release.check(evidence) == []
    path.write_bytes(path.read_bytes().replace(b"slower", b"faster", 1).replace(b"Release", b"Reject!", 1))
    assert [one.area for one in release.check(evidence)] == ["report"]
    path.write_bytes(b"<html></html>")
    assert "carries no seal" in str(release.check(evidence)[0])
    path.unlink()
    assert release.check(evidence) == []


def test_a_notebook_shows_the_same_parts(evidence, monkeypatch):
    shown = []
    display = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display, "display", shown.append)
    report.show(evidence)
    inside = Page(shown[0].data)
    assert inside.words == Page(report.build(evidence).read_text()).words
    assert "html" not in {tag for tag, _ in inside.tags}
    # A rule that is not bound to the report would change the notebook around it.
    sheet = re.search(r"<style>(.*?)</style>", shown[0].data, re.DOTALL)[1]
    sheet = re.sub(r"/\*.*?\*/|@media[^{]+\{", "", sheet, flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", sheet)
    assert all(part.strip().startswith(".dlc-report") for one in selectors for part in one.split(","))


def test_a_tree_is_compared_leaf_by_leaf():
    expected = {"a": [1, {"b": "x"}], "c": True}
    assert list(compare({"a": [1, {"b": "x"}], "c": True}, expected)) == []
    assert [pointer for pointer, _ in compare({"a": [True, {"b": 1, "z": 0}], "c": 1}, expected)] == [
        "/a/0", "/a/1/b", "/a/1/z", "/c",
    ]  # fmt: skip
