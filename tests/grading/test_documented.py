"""Whoever reads the grader finds out what each public part is for without reading its body."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

import grading

ROOT = Path(grading.__file__).parent
LEFT_OUT = {"masters", "source", "release"}
NAMES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))]

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def silent(source: str) -> Iterator[str]:
    """Names of the public functions, classes and methods of a module without a docstring, and the module itself."""
    module = ast.parse(source)
    if not ast.get_docstring(module):
        yield "the module"
    inside = [each for node in module.body if isinstance(node, ast.ClassDef) and _public(node) for each in node.body]
    yield from (node.name for node in [*module.body, *inside] if _public(node) and not ast.get_docstring(node))


def _public(node: ast.stmt) -> TypeGuard[Documented]:
    return isinstance(node, Documented) and not node.name.startswith("_")


@pytest.mark.parametrize("name", [name for name in NAMES if name.parts[0] not in LEFT_OUT], ids=str)
def test_everything_public_says_what_it_is_for(name: Path) -> None:
    assert list(silent((ROOT / name).read_text())) == []


def test_what_says_nothing_is_found() -> None:
    source = 'def a(): pass\nclass B:\n    """B."""\n    async def c(self): pass\n    def _d(self): pass\n'
    assert list(silent(source)) == ["the module", "a", "c"]
