"""What axe-core finds in the pages we make: the report, the class report and a feedback page, in a real browser.

Needs Debian's Chromium; Playwright and axe-core come with the ``classroom`` extra.  Skipped, with the reason, where one
of them is missing.
"""

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

NOT_OURS = {
    "region": "nbgrader's feedback template has its list of scores outside any landmark",
}
"""What nbgrader's own page lacks around our text, in feedback only."""


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: the classroom extra")
    return (resources.files(package) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def graded(real_evidence, tmp_path_factory) -> Path:
    """A sample course, graded, with its class report and its feedback."""
    from grading.commands import autograde, class_report, feedback, sample

    course = sample.build_class(tmp_path_factory.mktemp("class") / "course", real_evidence)
    autograde.autograde(course, sample.ASSIGNMENT, student="chen")
    feedback.generate(course, sample.ASSIGNMENT, student="chen")
    class_report.build(course, sample.ASSIGNMENT)
    return course


def _violations(browser: Any, axe: str, page: Path, scheme: str, width: int = 1200) -> list[str]:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    # Nothing is fetched: feedback asks a CDN for MathJax.
    context.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
    try:
        opened = context.new_page()
        opened.goto(page.resolve().as_uri(), wait_until="load")
        opened.evaluate(axe)
        found = opened.evaluate("async () => (await axe.run()).violations")
        return [
            f"{one['id']}: {node['html'][:120]}: {node['failureSummary']}" for one in found for node in one["nodes"]
        ]
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_the_report(browser, axe, real_evidence, scheme, width):
    assert _violations(browser, axe, real_evidence / "report.html", scheme, width) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_class_report(browser, axe, graded, scheme):
    assert _violations(browser, axe, graded / "report-release.html", scheme) == []


def test_the_feedback(browser, axe, graded):
    page = graded / "feedback/chen/release/step7_latency_stats.html"
    found = _violations(browser, axe, page, "light")
    assert [line for line in found if line.split(":")[0] not in NOT_OURS] == []


def test_a_planted_fault_is_found(browser, axe, tmp_path):
    text = '<html lang="en"><title>x</title><main><h1>x</h1><p style="color:#ccc;background:#fff">grey</p><img src="x">'
    (tmp_path / "bad.html").write_text(text)
    rules = {line.split(":")[0] for line in _violations(browser, axe, tmp_path / "bad.html", "light")}
    assert rules >= {"color-contrast", "image-alt"}


def test_the_keyboard_reaches_every_link_in_order_and_is_never_trapped(browser, real_evidence):
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto((real_evidence / "report.html").resolve().as_uri())
        wanted = page.evaluate(
            "document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]').length"
        )
        seen = []
        for _ in range(wanted):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
        assert not [one for one in seen if one.startswith("<body")]
        assert (
            page.evaluate('document.querySelectorAll(\'[tabindex]:not([tabindex="0"]):not([tabindex="-1"])\').length')
            == 0
        )
    finally:
        context.close()
