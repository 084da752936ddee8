"""A submission that imitates the page around it, in a real browser: feedback as students get it, and formgrader's page.

Skipped, with the reason, where Chromium or Playwright is missing.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from tests.grading.classroom import ASSIGNMENT, FakeBackend, FakeBox, grade, hand_in, make_course

pytestmark = pytest.mark.slow

OVERLAY = """<div class="navbar navbar-fixed-top" style="position:fixed;top:0;z-index:9999" id="toc"><div class="panel">
<div class="panel-heading">stats (Score: 12.0 / 12.0)</div></div></div><div class="modal-backdrop in"></div></div></div>
</div></div></div></div><ul><li><div><li></div></li></ul></div><h4>stats (Score: 12.0 / 12.0)</h4><b><a href="#top">"""
MARKDOWN = (
    f"# stats (Score: 12 / 12)\n\n{OVERLAY}\n\n| a | b |\n|---|---|\n| 1 | $x^2$ |\n\n"
    "```python\nfor i in x: pass\n```\n"
)
WIDE = f'<table border="1" class="dataframe"><tbody><tr><th>0</th><td>{"x" * 3000}</td></tr></tbody></table>'
BOXES = '[...document.querySelectorAll("div")].filter(one => one.style.contain && one.style.isolation === "isolate")'


class Imitating(FakeBox):
    """Shows what the hostile cell would have."""

    def run(self, cells: Any, files: Any, calls: Any) -> Any:
        run = super().run(cells, files, calls)
        for cell in cells:
            if cell["source"] == "imitate":
                data = [{"text/html": html} for html in (OVERLAY, WIDE)]
                run["outputs"][cell["id"]] = [{"output_type": "display_data", "data": d, "metadata": {}} for d in data]
        return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from nbgrader.server_extensions.formgrader import formgrader, handlers

    from grading.commands import feedback
    from grading.course_config import course_config

    course = make_course(tmp_path_factory.mktemp("imitating"))

    def mutate(notebook: Any) -> None:
        notebook.cells.insert(0, new_code_cell("imitate"))
        notebook.cells.append(new_markdown_cell(MARKDOWN))

    hand_in(course, "mallory", mutate=mutate, scope=MARKDOWN)
    grade(course, FakeBackend(box=Imitating()))
    feedback.generate(course, ASSIGNMENT)
    config = course_config(course)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    exporter = formgrader.HTMLExporter(config=config)
    names = ("assignment_id", "notebook_id", "submission_id", "base_url", "student", "notebook_path")
    resources = dict.fromkeys(names, "") | {"index": 0, "total": 1, "last_name": None, "first_name": None}
    source = course / "autograded" / "mallory" / ASSIGNMENT / "stats.ipynb"
    page, _ = exporter.from_filename(str(source), resources=resources)
    (course / "formgrader.html").write_text(
        page.replace("/formgrader/static/", Path(handlers.static_path).as_uri() + "/"), encoding="utf-8"
    )
    return {
        "feedback": course / "feedback" / "mallory" / ASSIGNMENT / "stats.html",
        "formgrader": course / "formgrader.html",
    }


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


@pytest.fixture(params=["feedback", "formgrader"])
def page(request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1100, "height": 800}, bypass_csp=True)
    context.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
    opened = context.new_page()
    opened.goto(pages[request.param].as_uri(), wait_until="load")
    yield opened
    context.close()


def test_what_a_student_made_stays_where_it_is(page: Any) -> None:
    """In a box of its own, nothing in it is placed freely, wider than the box, or of the page's looks."""
    assert page.evaluate(f"{BOXES}.length") >= 5
    inside = f'{BOXES}.flatMap(box => [...box.querySelectorAll("*")])'
    assert set(page.evaluate(f"{inside}.map(one => getComputedStyle(one).position)")) == {"static"}
    assert page.evaluate(f"{inside}.filter(one => one.id || one.getAttribute('name')).length") == 0
    looks = page.evaluate(f"{inside}.map(one => one.className).filter(one => /nav|panel|modal/.test(one))")
    assert looks == []
    assert page.evaluate(f"{inside}.filter(one => one.tagName === 'A').length") == 0
    whole = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert whole, "a wide table scrolls in its box"
    ours = page.evaluate('[...document.querySelectorAll("h4")].filter(one => !one.closest("[style*=isolate]")).length')
    assert ours == 1, "no heading of a student's stands beside ours"


def test_even_a_fixed_bar_in_the_box_would_not_cover_the_page(page: Any) -> None:
    """The box holds by itself, should a style ever slip through: planted here, and seen where the heading is."""
    page.evaluate(
        f"""{BOXES}.forEach(box => {{ const bar = document.createElement("div"); bar.className = "planted";
        bar.style = "position: fixed; inset: 0; width: 100vw; height: 100vh; z-index: 99999; background: red";
        box.append(bar) }})"""
    )
    found = page.evaluate(
        """(() => { const at = document.querySelector("h4").getBoundingClientRect();
        return document.elementFromPoint(at.x + 5, at.y + at.height / 2).className })()"""
    )
    assert "planted" not in found
    page.evaluate('document.body.insertAdjacentHTML("beforeend", document.querySelector(".planted").outerHTML)')
    assert page.evaluate("document.elementFromPoint(50, 30).className") == "planted", "the look can see a cover"


def test_tables_code_and_words_are_still_there(page: Any) -> None:
    assert page.locator("table.dataframe td").count() == 1
    assert page.locator(".rendered_html table td", has_text="$x^2$").count() == 2
    assert page.locator("div.highlight span.k", has_text="for").count() >= 2


def test_the_attack_that_was_seen(pages: dict[str, Path]) -> None:
    text = pages["feedback"].read_text(encoding="utf-8")
    assert '<div class="navbar' not in text
