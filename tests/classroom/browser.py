"""What people do in their browser: log in, open a notebook, type, run, save, hand in; Debian's Chromium underneath."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.classroom.machine import CHROMIUM

__all__ = ["Person", "chromium"]

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # A feedback page asks a CDN for MathJax; nothing here may leave the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
_AXE = """async selector => (await axe.run([...document.querySelectorAll(selector)])).violations"""
_PATIENCE_MS = 180_000
_UNSAVED = ".lm-TabBar-tab.jp-mod-dirty"
_PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """One browser; every person gets a context, that is, cookies, of their own."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody with a browser window at the hub."""

    def __init__(self, browser: Browser, url: str, user: str, password: str, pictures: Path) -> None:
        self.context: BrowserContext = browser.new_context(
            viewport={"width": 1300, "height": 1000}, accept_downloads=True
        )
        self.context.set_default_timeout(_PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.url, self.user, self.password, self.pictures = url, user, password, pictures
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)[:300]))

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text[:300]} ({message.location.get('url', '')[:120]})")

    def close(self) -> None:
        """Close the window; the server goes on."""
        self.context.close()

    def photograph(self, name: str, page: Page | None = None, whole: bool = False) -> None:
        """Keep a picture of what is on the screen now."""
        (page or self.page).screenshot(path=self.pictures / f"{name}.png", full_page=whole)

    def log_in(self) -> None:
        """By user name and password, and wait for JupyterLab."""
        self.page.goto(f"{self.url}/hub/login")
        self.page.fill("#username_input", self.user)
        self.page.fill("#password_input", self.password)
        self.page.click("#login_submit")
        self.page.wait_for_url("**/lab**")
        self._lab_is_there()

    def _lab_is_there(self) -> None:
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")
        self.page.wait_for_selector(".lm-MenuBar-item >> text=File")

    def address(self, path: str) -> str:
        """A path on this person's own server."""
        return f"{self.url}/user/{self.user}{path}"

    def menu(self, name: str, item: str) -> None:
        """Choose from the menu bar."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{name}$")).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile(f"^{item}$")).click()

    # Notebooks

    def open_notebook(self, path: str) -> None:
        """Open one notebook alone, and wait for its kernel."""
        self.page.goto(self.address(f"/lab/tree/{path}?reset"))
        self._lab_is_there()
        self.page.wait_for_selector(f"{_PANEL} .jp-CodeCell .cm-content")
        self._idle()

    def _idle(self) -> None:
        """Until the kernel waits for work, as server and page both say; before that, Run would ask for a kernel."""
        deadline = time.monotonic() + _PATIENCE_MS / 1000
        name = self.page.url.split("?")[0].rsplit("/", 1)[-1]
        while True:
            sessions = self.page.request.get(self.address("/api/sessions")).json()
            states = [one["kernel"]["execution_state"] for one in sessions if one["name"] == name]
            if states == ["idle"]:
                break
            assert time.monotonic() < deadline, f"no idle kernel for {name}: {sessions}"
            time.sleep(0.3)
        self.page.wait_for_selector(f"{_PANEL} .jp-Notebook-ExecutionIndicator[data-status='idle']")
        self.page.locator(f"{_PANEL} .jp-KernelName", has_text="Python 3").first.wait_for()

    def cell(self, text: str) -> Locator:
        """The first cell that shows this text."""
        return self.page.locator(f"{_PANEL} .jp-Notebook .jp-Cell", has_text=text).first

    def type_into(self, text: str, source: str) -> None:
        """Replace the source of the cell that shows ``text``, as somebody would: select all, type."""
        cell = self.cell(text)
        cell.scroll_into_view_if_needed()
        if "jp-MarkdownCell" in (cell.get_attribute("class") or ""):
            cell.dblclick()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        expect(self.page.locator(_UNSAVED)).to_have_count(1, timeout=_PATIENCE_MS)

    def run_all(self, seconds: float = 300) -> None:
        """Run > Run All Cells, and wait until no cell waits any more."""
        self._run(lambda: self.menu("Run", "Run All Cells"), seconds)

    def run_with_the_keyboard(self, cells: int, seconds: float = 300) -> None:
        """Shift-Enter from the first cell to the last and no mouse, and wait until no cell waits any more."""

        def keys() -> None:
            for key in ("Escape", "Control+Home", *(["Shift+Enter"] * cells)):
                self.page.keyboard.press(key)

        self._run(keys, seconds)

    def _run(self, act: Callable[[], None], seconds: float) -> None:
        prompts = self.page.locator(f"{_PANEL} .jp-CodeCell .jp-InputPrompt")
        before = prompts.all_text_contents()
        act()
        deadline = time.monotonic() + seconds
        choice = self.page.locator(".jp-Dialog", has_text="Select Kernel")
        while (now := prompts.all_text_contents()) == before or any("*" in text for text in now):
            if choice.count():
                choice.get_by_role("button", name="Select", exact=True).click()
            assert time.monotonic() < deadline, f"cells still run after {seconds} s: {now}"
            time.sleep(0.5)
        self._idle()
        assert re.search(r"\d", "".join(now)), f"nothing ran: {now}"

    def complaints_of_axe(self) -> list[str]:
        """What axe-core finds in the texts, tables and pictures of the open notebook, not in JupyterLab's own frame."""
        source = resources.files("axe_playwright_python") / "axe.min.js"
        self.page.evaluate(source.read_text(encoding="utf-8"))
        found = self.page.evaluate(_AXE, f"{_PANEL} .jp-RenderedHTMLCommon, {_PANEL} .jp-OutputArea-output")
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]

    def failures(self) -> list[str]:
        """The last line of every error that the notebook shows."""
        shown = self.page.locator(f"{_PANEL} .jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")
        return [text.strip().splitlines()[-1] for text in shown.all_text_contents() if "Traceback" in text]

    def save(self) -> None:
        """Control-S, until the tab shows no more dot: what is handed in is the file on the disk."""
        for _ in range(6):
            self.page.keyboard.press("Escape")
            self.page.keyboard.press("Control+s")
            with contextlib.suppress(AssertionError):
                expect(self.page.locator(_UNSAVED)).to_have_count(0, timeout=_PATIENCE_MS / 6)
                return
        raise AssertionError("the notebook stays unsaved")

    def validate(self) -> str:
        """The Validate button of the notebook; returns what its dialog says."""
        self.page.locator(f"{_PANEL} .jp-Toolbar").get_by_text("Validate").click()
        dialog = self.page.locator(".jp-Dialog")
        dialog.get_by_text("Validation Results").wait_for()
        return str(dialog.inner_text())

    def dismiss(self) -> None:
        """Close the dialog on the screen."""
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.page.locator(".jp-Dialog").wait_for(state="detached")

    def picture_of_output(self, text: str, name: str) -> None:
        """Scroll to the output of a cell and photograph it."""
        output = self.cell(text).locator(".jp-OutputArea").first
        output.scroll_into_view_if_needed()
        time.sleep(0.3)  # a picture takes its room after it is drawn
        (output.locator("img").or_(output)).last.evaluate("shown => shown.scrollIntoView({block: 'center'})")
        time.sleep(0.3)
        self.photograph(name)

    # nbgrader for students

    def assignments(self) -> Locator:
        """The assignment list, opened from its menu."""
        self.page.goto(self.address("/lab?reset"))
        self._lab_is_there()
        self.menu("Nbgrader", "Assignment List")
        listed = self.page.locator("#assignments")
        listed.locator("#released_assignments_list_loading").wait_for(state="hidden")
        return listed

    def fetch(self, assignment: str) -> None:
        """Fetch an assignment; it stands among the downloaded ones afterwards."""
        listed = self.assignments()
        row = listed.locator("#released_assignments_list .list_item", has_text=assignment)
        row.get_by_role("button", name="Fetch").click()
        listed.locator("#fetched_assignments_list .item_name", has_text=assignment).first.wait_for()

    def submit(self, assignment: str) -> None:
        """Hand in; it stands among the submitted ones afterwards."""
        listed = self.assignments()
        row = listed.locator("#fetched_assignments_list .list_item", has_text=assignment).first
        row.get_by_role("button", name="Submit").click()
        listed.locator("#submitted_assignments_list .item_name", has_text=assignment).first.wait_for()

    # formgrader

    def formgrader(self, path: str) -> None:
        """One of formgrader's pages, on its own."""
        self.page.goto(self.address(f"/formgrader/{path}"))
        self.page.wait_for_load_state("networkidle")

    def press(self, row: str, column: str) -> str:
        """Press formgrader's button in a row's column; returns what its window says, and closes it."""
        line = self.page.locator("tr", has=self.page.locator("td", has_text=re.compile(rf"^\s*{row}\s*$")))
        line.locator(f"td.{column} a").first.click()
        window = self.page.locator(".modal.in")
        window.locator(".modal-title").wait_for(timeout=2 * _PATIENCE_MS)
        text = str(window.inner_text())
        window.locator(".modal-footer button", has_text="OK").click()
        self.page.locator(".modal-backdrop").wait_for(state="detached")
        return text
