"""The rooms of both houses as their imports are, not as somebody drew them once; and that the checks can fail."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import deep_learning_cases
from docs import rooms

ROOT = Path(__file__).resolve().parents[3]
LINTER = Path(sys.executable).with_name("lint-imports")
VAGUE = {"work", "run", "runner", "checks", "commands", "try_", "one_box", "utils", "helpers", "misc", "common"}
houses = pytest.mark.parametrize("house", rooms.HOUSES)


def folders(house: str) -> dict[Path, list[str]]:
    """Every folder with code -> the names of its modules."""
    found: dict[Path, list[str]] = {}
    for path in rooms.modules(house).values():
        found.setdefault(path.parent, [])
        if path.stem != "__init__":
            found[path.parent].append(path.stem)
    return found


@houses
def test_ten_rooms_at_most_and_a_dozen_files_in_each(house):
    listed = folders(house)
    assert len([folder for folder in listed if folder.parent == ROOT / house]) <= 10
    assert {folder.name: len(names) for folder, names in listed.items() if len(names) > 12} == {}


@houses
def test_every_room_and_module_says_in_one_line_what_it_is_for(house):
    for path in rooms.modules(house).values():
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
        assert 10 < len(first) <= 120, path


@houses
def test_no_module_is_called_by_what_it_does_to_everything(house):
    names = [path.stem for path in rooms.modules(house).values() if path.stem != "__init__"]
    assert set(names) & VAGUE == set()


def test_one_case_and_one_answers():
    names = [path.stem for house in rooms.HOUSES for path in rooms.modules(house).values()]
    assert names.count("case") == names.count("answers") == 1


@houses
def test_no_import_goes_upwards(house):
    height = {room: -number for number, row in enumerate(rooms.rows(house)) for room in row}
    upwards = [(one, two) for one, two in rooms.room_arrows(house) if height[two] >= height[one]]
    assert upwards == []


@houses
def test_nothing_imports_in_a_circle(house):
    arrows = rooms.imports(house)
    faces = {name for name, path in rooms.modules(house).items() if path.stem == "__init__"}
    left = {name for pair in arrows for name in pair}
    while ends := left - {one for one, two in arrows if one in left and two in left}:
        left -= ends
    assert left - faces == set()
    assert not left


def test_a_circle_would_be_found(tmp_path, monkeypatch):
    (tmp_path / "deep_learning_cases" / "ground").mkdir(parents=True)
    package = tmp_path / "deep_learning_cases"
    (package / "ground" / "one.py").write_text("from deep_learning_cases.ground import two\n")
    (package / "ground" / "two.py").write_text("def f():\n    from deep_learning_cases.ground.one import g\n")
    (package / "bench.py").write_text("if TYPE_CHECKING:\n    from deep_learning_cases.ground import one\n")
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    place = "deep_learning_cases.ground"
    assert rooms.imports("deep_learning_cases") == {(f"{place}.one", f"{place}.two"), (f"{place}.two", f"{place}.one")}
    with pytest.raises(AssertionError):
        test_nothing_imports_in_a_circle("deep_learning_cases")


def test_the_picture_and_the_page_are_those_of_the_real_imports():
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), "python docs/rooms.py draws it anew"
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page(), "python docs/rooms.py writes the tables anew"
    drawn = rooms.PICTURE.read_text(encoding="utf-8")
    for house in rooms.HOUSES:
        for one, two in rooms.reduced(rooms.room_arrows(house)):
            assert f'data-arrow="{one} {two}"' in drawn


def test_an_arrow_that_follows_from_others_is_left_out_and_no_other():
    assert rooms.reduced({("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")}) == {("a", "b"), ("b", "c"), ("d", "c")}


def test_no_module_of_the_library_takes_a_name_that_is_handed_out_lazily():
    """import-linter cannot see through ``__getattr__``: such an import could go upwards unseen."""
    real = {path.stem for path in (ROOT / "deep_learning_cases").iterdir()} | {"__version__", "lazily"}
    for path in rooms.modules("deep_learning_cases").values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "deep_learning_cases":
                assert {alias.name for alias in node.names} <= real, path


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert (
        modules_after("import deep_learning_cases") & {"numpy", "torch", "matplotlib", "onnxruntime", "argparse"}
        == set()
    )


def test_the_measuring_side_carries_no_pytorch_no_plots_no_schema_checker():
    loaded = modules_after("from deep_learning_cases import bench, timing, engines, data, machine")
    assert loaded & {"torch", "matplotlib", "sklearn", "onnx", "jsonschema", "deep_learning_cases.cli"} == set()


def test_every_public_name_exists():
    for name in deep_learning_cases.__all__:
        assert getattr(deep_learning_cases, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = deep_learning_cases.no_such_name


def test_editors_and_type_checkers_see_the_very_names_that_are_handed_out():
    tree = ast.parse((ROOT / "deep_learning_cases" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: f"{node.module}.{alias.name}".removeprefix("deep_learning_cases.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("deep_learning_cases")
        for alias in node.names
    }
    handed_out = {name: place.replace(":", ".") for name, place in deep_learning_cases._PLACES.items()}
    assert seen == {name: place for name, place in handed_out.items() if name != place}


@pytest.mark.slow
def test_mypy_knows_a_public_name(tmp_path):
    program = tmp_path / "use.py"
    program.write_text("from deep_learning_cases import stats\nreveal_type(stats.nearest_rank)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--follow-imports=silent", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert "def (n: int, level: fractions.Fraction) -> int" in done.stdout, done.stdout + done.stderr


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINTER, "--no-cache"], capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": str(folder)}
    )


@pytest.fixture(scope="module")
def copies(tmp_path_factory) -> Path:
    """Both houses, to plant something in, with a clean bill."""
    folder = tmp_path_factory.mktemp("houses")
    for name in rooms.HOUSES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb", "*.db"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    clean = lint(folder)
    assert clean.returncode == 0, clean.stdout
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "line", "complaint"),
    [
        ("deep_learning_cases/errors.py", "from deep_learning_cases.ground import files", "deep_learning_cases.errors"),
        (
            "deep_learning_cases/latency/view.py",
            "import deep_learning_cases.release.gate",
            "deep_learning_cases.latency",
        ),
        ("grading/course/places.py", "from grading.judging import items", "grading.course"),
        ("grading/sandbox/lines.py", "from grading.submission import stage", "grading.sandbox"),
        ("deep_learning_cases/ground/files.py", "from grading import late", "deep_learning_cases"),
    ],
)
def test_a_planted_import_is_found(copies, place, line, complaint):
    path = copies / place
    before = path.read_text()
    path.write_text(f"{before}\n{line}\n")
    try:
        planted = lint(copies)
    finally:
        path.write_text(before)
    assert planted.returncode == 1
    assert f"{complaint} is not allowed to import" in planted.stdout


def test_every_room_stands_in_a_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [one for one in contracts if one["type"] == "layers"]
    assert [(one["containers"], one["exhaustive"]) for one in layers] == [([house], True) for house in rooms.HOUSES]
