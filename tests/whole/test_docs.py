"""The guide: every page is reached, every link leads somewhere, every picture says what it shows."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def _links(page: Path) -> list[tuple[bool, str, str]]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [(mark == "!", words, target) for mark, words, target in LINK.findall(text)]


def test_the_index_leads_to_every_page():
    targets = {target for _, _, target in _links(ROOT / "docs/index.md")}
    assert {page.name for page in PAGES} - {"index.md"} <= targets


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", *ROOT.glob("deploy/*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere_and_pictures_have_words(page):
    for picture, words, target in _links(page):
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target.split("#")[0]).resolve()
        assert place.exists(), f"{page.name} names {target}"
        assert not picture or len(words.split()) > 5, f"{page.name} shows {target} without saying what it is"


def test_pictures_are_small_and_all_are_shown():
    shown = {target.split("/")[-1] for page in [*PAGES, ROOT / "README.md"] for _, _, target in _links(page)}
    for picture in (ROOT / "docs/images").iterdir():
        assert picture.suffix in {".png", ".svg"}
        assert picture.stat().st_size < 100_000
        assert picture.name in shown


def test_commands_in_the_guide_exist():
    from deep_learning_cases import cli
    from grading.cli import COMMANDS

    text = "\n".join(page.read_text(encoding="utf-8") for page in [*PAGES, *ROOT.glob("deploy/*.md")])
    assert set(re.findall(r"python -m grading ([a-z-]+)", text)) <= set(COMMANDS)
    for name in set(re.findall(r"^(?:\.venv/bin/)?dlcases ([a-z]+)", text, flags=re.MULTILINE)):
        with pytest.raises(SystemExit) as stopped:
            cli.main([name, "--help"])
        assert stopped.value.code == 0


def test_every_attack_of_the_tests_stands_in_a_table_with_what_it_costs():
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    cases = ROOT / "tests/submissions/attacks"
    attacks = {f"{path.parent.name}/{path.stem}": path for path in cases.glob("*/*.py")}
    rows = dict(re.findall(r"^\| (\w+/\w+)(?: \*)? \| (.*)$", text, flags=re.MULTILINE))
    assert set(rows) == set(attacks)
    for name, path in attacks.items():
        lost = re.search(r"fails: (\w+)", path.read_text(encoding="utf-8"))
        assert not lost or f"`{lost[1]}`" in rows[name], name
