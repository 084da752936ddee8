"""Draw both houses from their real imports: ``python docs/rooms.py`` writes the picture and the tables of the page.

Rows are the layers that import-linter checks, read from ``pyproject.toml``.  An arrow is an import from one room to
another that does not already follow from other arrows.  Imports under ``TYPE_CHECKING`` do not count.
"""

import ast
import functools
import html
import itertools
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "images" / "rooms.svg"
HOUSES = ("deep_learning_cases", "grading")
LEFT_OUT = {"grading": {"__init__", "masters"}, "deep_learning_cases": {"__init__"}}
"""Masters are notebooks in another form; they import what a student imports."""

# Where a room stands in its row, so that arrows go straight down: 0 is the left edge of its house, 1 the right.
COLUMNS = {
    "latency": 0.14, "serving": 0.14, "batching": 0.14, "quantizing": 0.38, "release": 0.62, "target_kit": 0.62,
    "doctor": 0.86, "noise": 0.86, "bench": 0.62, "notebook_figures": 0.86,
    "commands": 0.5, "nbgrader_config": 0.78, "sandbox": 0.24, "submission": 0.58, "course": 0.78,
    "quick_imports": 0.3, "late": 0.78,
}  # fmt: skip
WIDTH, BOX, HEIGHT, STEP, TOP = 700, 160, 46, 74, 64

Arrows = set[tuple[str, str]]


def modules(house: str) -> dict[str, Path]:
    """Dotted name -> file of every module of a house; a room's own name stands for its ``__init__``."""
    found = {}
    for path in sorted((ROOT / house).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[1] not in LEFT_OUT[house]:
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(house: str) -> Arrows:
    """(importing, imported) module of every import inside a house, also those in functions."""
    known = modules(house)
    return {(name, other) for name, path in known.items() for other in _imported(path, known) if other != name}


def _imported(path: Path, known: dict[str, Path]) -> set[str]:
    found = set()
    for node in _import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in known else node.module)
    return found & set(known)


@functools.cache
def _import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All of a file but those that only a type checker reads."""
    found, level = [], [ast.parse(path.read_text(encoding="utf-8"))]
    while level:
        node = level.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            level += node.orelse
        else:
            level += ast.iter_child_nodes(node)
    return found


def room_of(module: str) -> str:
    """The room, or the module at the door, that a dotted name belongs to."""
    return module.split(".")[1]


def room_arrows(house: str) -> Arrows:
    """(room, room it imports) of a house."""
    pairs = {(room_of(one), room_of(other)) for one, other in imports(house)}
    return {(one, other) for one, other in pairs if one != other}


def reduced(arrows: Arrows) -> Arrows:
    """Without the arrows that follow from others: what a reader can see without a bundle of lines."""
    return {
        (one, other)
        for one, other in arrows
        if not any(first == one and middle != other and _leads(arrows, middle, other) for first, middle in arrows)
    }


def _leads(arrows: Arrows, start: str, end: str) -> bool:
    seen, level = {start}, [start]
    while level:
        level = [two for one, two in arrows if one in level and two not in seen]
        seen |= set(level)
    return end in seen


def rows(house: str) -> list[list[str]]:
    """The layers of a house from the top, as import-linter checks them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers" and one["containers"] == [house])
    return [[name.strip() for name in re.split(r"[|:]", layer)] for layer in layers]


def purpose(house: str, room: str) -> str:
    """The first line of a room's docstring, or of a module's at the door."""
    folder = ROOT / house / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def picture() -> str:
    """Both houses side by side as one SVG."""
    tallest = max(len(rows(house)) for house in HOUSES)
    size = (2 * WIDTH, TOP + tallest * STEP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" role="img" aria-labelledby="t d">',
        '<title id="t">The rooms of both houses</title>',
        f'<desc id="d">{html.escape(in_words())}</desc>',
        _STYLE,
    ]
    for number, house in enumerate(HOUSES):
        parts += _house(house, number * WIDTH)
    return "\n".join([*parts, "</svg>\n"])


def in_words() -> str:
    """What the picture shows, for whoever cannot see it."""
    return " ".join(
        f"{house}: " + "; ".join(f"{one} imports {two}" for one, two in sorted(reduced(room_arrows(house)))) + "."
        for house in HOUSES
    )


def _house(house: str, left: int) -> list[str]:
    places = {
        room: (left + WIDTH * _column(room, place, len(names)), TOP + row * STEP)
        for row, names in enumerate(rows(house))
        for place, room in enumerate(names)
    }
    parts = [f'<text class="house" x="{left + WIDTH / 2}" y="36">{house}</text>']
    for one, two in sorted(reduced(room_arrows(house))):
        parts.append(_arrow(one, two, *places[one], *places[two]))
    for room, (x, y) in places.items():
        kind = "room" if (ROOT / house / room).is_dir() else "door"
        parts += [
            f'<rect class="{kind}" x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="8"/>',
            f'<text class="name" x="{x:.0f}" y="{y + 20}">{room}</text>',
            f'<text class="for" x="{x:.0f}" y="{y + 36}">{html.escape(_in_short(house, room))}</text>',
        ]
    return parts


def _column(room: str, place: int, count: int) -> float:
    return COLUMNS.get(room, (place + 0.5) / count)


def _arrow(one: str, two: str, x: float, y: float, to_x: float, to_y: float) -> str:
    start, end = y + HEIGHT, to_y - 7
    bend = min(40.0, (end - start) / 2)
    path = f"M{x:.0f} {start} C{x:.0f} {start + bend:.0f} {to_x:.0f} {end - bend:.0f} {to_x:.0f} {end}"
    if to_y - y > 3 * STEP and x > to_x:  # past everything in between, along the wall of the house
        wall, middle = x + BOX / 4, to_y + HEIGHT / 2
        path = f"M{wall:.0f} {start} V{middle - 12} Q{wall:.0f} {middle} {wall - 12:.0f} {middle}"
        path += f" H{to_x + BOX / 2 + 7:.0f}"
    return f'<path class="arrow" data-arrow="{one} {two}" d="{path}" marker-end="url(#tip)"/>'


def _in_short(house: str, room: str) -> str:
    text = re.split(r"[:,;.(]", purpose(house, room).replace("`", ""))[0]
    return text if len(text) <= 28 else text[:27].rsplit(" ", 1)[0] + " …"


_STYLE = """<style>
  svg { --ink: #1d2229; --soft: #59636f; --card: #eef4fa; --edge: #0072b2; --door: #fdf3e3; --door-edge: #b06a00;
        font-family: system-ui, sans-serif; background: #fff; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e8eaed; --soft: #aab2bd; --card: #18293a; --edge: #5cb3f0;
        --door: #33291a; --door-edge: #f0b45a; background: #14171c; } }
  text { text-anchor: middle; fill: var(--ink); }
  .house { font-size: 20px; font-weight: 600; }
  .name { font-size: 15px; font-weight: 600; }
  .for { font-size: 10px; fill: var(--soft); }
  .room { fill: var(--card); stroke: var(--edge); stroke-width: 1.5; }
  .door { fill: var(--door); stroke: var(--door-edge); stroke-width: 1.5; stroke-dasharray: 5 3; }
  .arrow { fill: none; stroke: var(--soft); stroke-width: 1.6; }
  #tip path { fill: var(--soft); }
</style>
<defs><marker id="tip" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 L10 5 L0 10 z"/></marker></defs>"""


def table(house: str) -> str:
    """One line a room, from the ground up, as its own docstring has it."""
    lines = ["| room | what it is for |", "|---|---|"]
    for room in itertools.chain.from_iterable(reversed(rows(house))):
        place = f"{house}/{room}/" if (ROOT / house / room).is_dir() else f"{house}/{room}.py"
        lines.append(f"| [`{room}`](../{place}) | {purpose(house, room).replace('``', '`')} |")
    return "\n".join(lines)


def page() -> str:
    """The page with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for house in HOUSES:
        start, end = f"<!-- rooms of {house} -->\n", f"<!-- end of {house} -->"
        before, _, rest = text.partition(start)
        text = before + start + table(house) + "\n" + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
