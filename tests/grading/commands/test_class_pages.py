"""Feedback, class report and exports: complete, readable, and safe to open."""

import base64
import csv
import io
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_markdown_cell

from deep_learning_cases.errors import FileError, InputError
from grading.cli import main
from grading.commands import class_report, export, feedback
from grading.hooks.feedback_page import readable
from tests.grading.classroom import ASSIGNMENT, INTERPOLATED, FakeBackend, FakeBox, grade, hand_in, make_course

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
WRITTEN = r"""My <b>written</b> answer <script>alert(1)</script> with $\frac{a}{b}$, [a link](https://example.org/) and
![my plot](attachment:plot.png) ![a drawing](attachment:drawing.svg) ![elsewhere](https://example.org/seen.png)"""
CHECKOUT = Path(__file__).resolve().parents[3]


def paste(notebook: Any) -> None:
    """Pictures in the written answer and in a cell of the student's own, as Jupyter keeps them."""
    pasted = {"plot.png": {"image/png": PNG}, "drawing.svg": {"image/svg+xml": "<svg onload='alert(1)'/>"}}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "scope":
            cell.attachments = pasted
            notebook.cells.append(new_markdown_cell("mine: ![own plot](attachment:plot.png)", attachments=pasted))
            break


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    course = make_course(tmp_path_factory.mktemp("pages"))
    hand_in(course, "ada", scope=WRITTEN, mutate=paste)
    for student in ("ben", "cleo"):
        hand_in(course, student, answer=INTERPOLATED)
    hand_in(course, "blank", answer=None, twice=None)
    hand_in(course, "lost")
    hand_in(course, "=1+1", twice=None)
    grade(course, FakeBackend(fail={"lost": RuntimeError("<b>worker</b> died")}))
    return course


class Tags(HTMLParser):
    """Counts tags and collects text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_feedback_shows_message_and_points_and_no_hidden_test(course: Path) -> None:
    pages = feedback.generate(course, ASSIGNMENT, force=True)
    assert len(pages) == 10
    page = (course / "feedback" / "ben" / ASSIGNMENT / "stats.html").read_text()
    assert "interpolat" in page
    assert "Score: 0.0 / 3.0" in page
    assert not re.search(r"<pre>\s*0\.0\s*</pre>", page), "the number behind the score is for the gradebook alone"
    hidden = (course / "feedback" / "ben" / ASSIGNMENT / "double.html").read_text()
    assert "-317" not in hidden
    assert "This test passed." in hidden


def test_the_list_at_the_top_names_the_cells_and_tables_have_lines(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    page = (course / "feedback" / "ada" / ASSIGNMENT / "stats.html").read_text()
    contents, _, cells = page.partition('<div class="panel-body">')
    lines = re.findall(r'<li><a href="#([^"]+)">(.*?)</a>', contents)
    assert {words for _, words in lines} == {
        f"{'Written response' if name == 'scope' else 'Test cell'} <code>{name}</code>" for name, _ in lines
    }
    assert len(lines) == 6
    assert "Grade cell: <code>stats_p95</code>" in cells
    assert re.search(r"\.rendered_html th, \.rendered_html td \{ border: 1px .* padding: 0\.", page)


def test_a_line_that_looks_like_the_lists_stays_as_a_student_wrote_it() -> None:
    line = '<li><a href="#x">Task</a></li>'
    page = f'<html><head></head><body>{line}<div class="panel-body">{line}</div></body></html>'
    assert readable(page).endswith(
        f'<a href="#x">Task <code>x</code></a></li><div class="panel-body">{line}</div></body></html>'
    )


def test_feedback_runs_nothing_of_the_student(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    page = (course / "feedback" / "ada" / ASSIGNMENT / "stats.html").read_text()
    assert "alert(1)" in page, "the text is shown"
    assert "<script>alert" not in page
    assert "<b>written" not in page


class Loads(HTMLParser):
    """What a browser would ask somebody for when it opens the page, or would run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._style = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        if tag in ("script", "iframe", "object", "embed", "base", "video", "audio", "source", "form"):
            self.found.append(tag)
        for name, value in attrs:
            loads = name in ("src", "srcset", "poster", "background", "data") or (tag == "link" and name == "href")
            if loads and not (value or "").startswith("data:"):
                self.found.append(f"{tag} {name}={value}")
            if name == "style":
                self._css(value or "")

    def handle_data(self, data: str) -> None:
        if self._style:
            self._css(data)

    def _css(self, text: str) -> None:
        self.found += re.findall(r"@import[^;]*|url\((?!['\"]?data:)[^)]*\)", text)


def test_what_a_browser_loads_is_seen() -> None:
    """The reader above finds what nbconvert's own page has, or it could find nothing anywhere."""
    page = "<style>@font-face{src:url(../f.woff)}</style><script src='https://cdn'></script><img src='https://e/x.png'>"
    assert Loads(page).found == ["url(../f.woff)", "script", "script src=https://cdn", "img src=https://e/x.png"]


def test_a_feedback_page_is_whole_by_itself(course: Path) -> None:
    pages = feedback.generate(course, ASSIGNMENT, force=True)
    for page in pages:
        text = page.read_text()
        assert Loads(text).found == [], page
        assert "Content-Security-Policy" in text.partition("<title>")[0], "before anything that it is about"
        assert "cdnjs" not in text
    page = (course / "feedback" / "ada" / ASSIGNMENT / "stats.html").read_text()
    assert r"$\frac{a}{b}$" in page, "a formula is readable as it was written"
    assert 'href="https://example.org/"' in page, "a link is no request"


def test_a_pasted_picture_is_in_the_feedback_and_a_pasted_drawing_is_not(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    page = (course / "feedback" / "ada" / ASSIGNMENT / "stats.html").read_text()
    for name in ("my plot", "own plot"):
        assert re.search(f'<img alt="{name}" src="data:image/png;base64,{re.escape(PNG)}"/?>', page), name
    assert "(picture a drawing: see the file that was handed in)" in page
    assert "svg onload" not in page
    stored = json.loads((course / "autograded" / "ada" / ASSIGNMENT / "stats.ipynb").read_text())
    kept = [cell["attachments"] for cell in stored["cells"] if "attachments" in cell]
    assert kept == [{"plot.png": {"image/png": PNG}}] * 2


def test_the_instructors_record_is_not_in_feedback(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    assert list((course / "feedback").rglob(".grading.json")) == []
    assert list((course / "autograded").rglob(".grading.json")) != []


def test_feedback_of_nothing_is_one_line(course: Path) -> None:
    with pytest.raises(InputError, match="nothing autograded"):
        feedback.generate(course, "other")
    with pytest.raises(FileError, match="no course folder"):
        feedback.generate(course / "nowhere", ASSIGNMENT)


def test_release_without_an_exchange_is_one_line(course: Path) -> None:
    feedback.generate(course, ASSIGNMENT, force=True)
    with pytest.raises(InputError, match="did not release"):
        feedback.release(course, ASSIGNMENT)


def test_a_submission_placed_by_hand_does_not_keep_the_others_from_their_feedback(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "course"
    shutil.copytree(course, own)
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    with (own / "nbgrader_config.py").open("a") as config:
        config.write(f"c.Exchange.root = {str(exchange)!r}\nc.CourseDirectory.course_id = 'course101'\n")
    for student in ("ada", "ben"):
        (own / "autograded" / student / ASSIGNMENT / feedback.SECRET).write_text(f"secret of {student}")
    assert main(["feedback", ASSIGNMENT, "--force", "--release", "--course", str(own)]) == 0
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "not released: =1+1, blank, cleo, whose" in said.err
    assert "ada" not in said.err
    released = list((exchange / "course101" / "feedback").glob("*.html"))
    assert len(released) == sum(len(list((own / "feedback" / s).rglob("*.html"))) for s in ("ada", "ben"))


def test_the_class_report_counts_and_names(course: Path) -> None:
    facts = class_report.collect(course, ASSIGNMENT)
    assert facts.mistakes["stats_p95", "interpolated"] == ["ben", "cleo"] or any(
        who == ["ben", "cleo"] for (item, _), who in facts.mistakes.items() if item == "stats_p95"
    )
    assert list(facts.failed) == ["lost"]
    assert "RuntimeError: <b>worker</b> died" in facts.failed["lost"]
    assert facts.scores["ada"][2] is True
    assert facts.isolation == {"fake": 5}


def test_the_class_report_is_one_safe_page(course: Path) -> None:
    page = class_report.build(course, ASSIGNMENT).read_text()
    tags = Tags(page)
    assert not {"script", "iframe", "img", "link", "b"} & set(tags.tags)
    for part in ("Scores", "Items", "Mistakes", "Flags", "Isolation", "Time per submission", "ben, cleo"):
        assert part in tags.text
    assert "http://" not in page
    assert "https://" not in page


def test_the_report_of_nothing_is_one_line(course: Path) -> None:
    with pytest.raises(InputError, match="nothing graded"):
        class_report.build(course, "other")


def rows(course: Path, form: str) -> list[list[str]]:
    path = course / f"{form}.csv"
    export.export(course, form, path)
    return list(csv.reader(io.StringIO(path.read_text())))


def test_the_table_has_every_student_once(course: Path) -> None:
    header, *body = rows(course, "csv")
    found = {row[header.index("student_id")]: row for row in body}
    assert set(found) == {"ada", "ben", "cleo", "blank", "'=1+1"} | ({"lost"} & set(found))
    assert found["ada"][header.index("score")] == "12.0"
    assert found["ada"][header.index("max_score")] == "15.0"
    assert found["ada"][header.index("needs_manual_grade")] == "True"


def test_canvas_and_moodle_headers_and_scores(course: Path) -> None:
    header, possible, *body = rows(course, "canvas")
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", ASSIGNMENT]
    assert possible[0].strip() == "Points Possible"
    assert float(possible[-1]) == 15.0
    assert {row[3]: row[-1] for row in body}["ben"] == "9.0"
    header, *body = rows(course, "moodle")
    assert header[0] == "username"
    assert {row[0]: row[-1] for row in body}["cleo"] == "9.0"


def test_a_name_that_starts_like_a_formula_is_text(course: Path) -> None:
    assert not any(value.startswith("=") for row in rows(course, "csv") for value in row)


@pytest.mark.parametrize("unset", [[""], ["--assignment", ""], ["--assignment="]])
def test_export_of_a_variable_that_is_not_set_writes_nothing(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], unset: list[str]
) -> None:
    """The whole gradebook is asked for without an argument, and only so."""
    assert main(["export", *unset, "--course", str(course), "--to", str(tmp_path / "x.csv")]) != 0
    assert re.fullmatch(r"[^\n]*the assignment's name is empty[^\n]*\n", capsys.readouterr().err)
    assert not (tmp_path / "x.csv").exists()


def test_export_of_an_unknown_assignment_is_one_line(course: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected one of: small"):
        export.export(course, "csv", tmp_path / "x.csv", "nope")


def test_the_plugins_of_nbgrader_write_the_same(course: Path, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    plugin = export.CanvasExportPlugin()
    plugin.to = str(tmp_path / "canvas.csv")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        plugin.export(gradebook)
    export.export(course, "canvas", tmp_path / "ours.csv")
    assert (tmp_path / "canvas.csv").read_text() == (tmp_path / "ours.csv").read_text()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "grading", *arguments]
    return subprocess.run(call, cwd=CHECKOUT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "arguments",
    [
        ("autograde", "nope"),
        ("feedback", "nope"),
        ("report", "nope"),
        ("export", "--assignment", "nope"),
        ("export", "nope"),
        ("export", ASSIGNMENT, "--assignment", "nope"),
    ],
)
def test_commands_end_in_one_line(course: Path, arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--course", str(course)]) in (1, 2)
    said = capfd.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "nope" in said


@pytest.mark.slow
def test_a_process_of_its_own_says_that_line_and_nothing_else(course: Path) -> None:
    done = command("export", "nope", "--course", str(course))
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert "nope" in done.stderr


def test_export_of_one_assignment_and_of_all(course: Path, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    shutil.copyfile(course / "gradebook.db", tmp_path / "gradebook.db")
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("second")
    found = {}
    for chosen in ((), (ASSIGNMENT,), ("--assignment", ASSIGNMENT)):
        assert main(["export", *chosen, "--course", str(tmp_path)]) == 0
        lines = list(csv.DictReader(io.StringIO((tmp_path / "grades-csv.csv").read_text())))
        found[chosen] = {line["assignment"] for line in lines}
    assert found.pop(()) == {ASSIGNMENT, "second"}
    assert all(assignments == {ASSIGNMENT} for assignments in found.values())


@pytest.mark.slow
def test_the_command_prints_json_for_machines(course: Path) -> None:
    done = command("autograde", ASSIGNMENT, "--course", str(course), "--student", "ada", "--json")
    value = json.loads(done.stdout)
    assert (value["graded"], value["skipped"], value["failed"]) == (0, 1, {})
    assert done.stderr == "", "no progress bar where there is no terminal"


class GradedByANumber(FakeBox):
    """Every test of the student's own process ends in a number, as nbgrader allows: that many points."""

    def run(self, *arguments: Any) -> Any:
        run = super().run(*arguments)
        number = {"output_type": "execute_result", "data": {"text/plain": "0.5"}, "metadata": {}, "execution_count": 1}
        run["outputs"] = {cell: [number] for cell in run["outputs"]}
        return run


def test_a_test_cell_that_ends_in_a_number_is_no_mistake_and_its_class_has_a_report(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    hand_in(course, "ada")
    grade(course, FakeBackend(box=GradedByANumber()))
    record = json.loads((course / "autograded" / "ada" / ASSIGNMENT / ".grading.json").read_text())
    items = {item["id"]: (item["points"], item["mistake"]) for item in record["notebooks"]["double"]["items"]}
    assert items == {"double": (0.5, None), "double_negative": (0.5, None)}
    assert [flag["id"] for flag in record["flags"]] == ["checked-inside"]
    page = class_report.build(course, ASSIGNMENT).read_text()
    assert "checked-inside" in page
    # What an earlier version recorded of such a cell must not keep a class from its report.
    result = course / ".results" / ASSIGNMENT / "students" / "ada.json"
    entry = json.loads(result.read_text())
    entry["result"]["notebooks"]["double"]["items"][0]["mistake"] = {"id": "checked-inside", "reason": "some tests"}
    result.write_text(json.dumps(entry))
    assert class_report.build(course, ASSIGNMENT).read_text() == page
