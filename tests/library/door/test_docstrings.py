"""Everything public says what it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import deep_learning_cases

LIBRARY = Path(deep_learning_cases.__file__).parent


def undocumented(body: list[ast.stmt], place: str) -> Iterator[str]:
    """Public functions and classes of a module, and the public methods of those classes, that have no docstring."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield f"{place}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{place}{node.name}.")


def test_everything_public_has_a_docstring():
    trees = {path: ast.parse(path.read_text()) for path in LIBRARY.rglob("*.py")}
    assert len(trees) > 100
    found = [name for path, tree in trees.items() for name in undocumented(tree.body, f"{path.name}: ")]
    assert found == []
    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_the_walk_finds_what_is_missing():
    planted = "class A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    'd'\n    def e(): ...\n"
    assert list(undocumented(ast.parse(planted).body, "")) == ["A", "A.b"]
