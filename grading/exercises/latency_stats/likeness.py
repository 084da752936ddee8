"""How alike a student's function is to the library's own: a copy by hand cannot be told from work, but be pointed out.

Both are compared as syntax trees in which the names of arguments and variables are numbered and texts are left out.
"""

import ast
import difflib
import inspect
from functools import cache

from grading.judging.flags import Flag

__all__ = ["likeness_flags"]

_MOST_CHARACTERS = 20_000
_ALIKE = 0.6
_FEWEST_PARTS = 60


def likeness_flags(source: str) -> list[Flag]:
    """A flag for a text that holds most of one of the library's functions, statement by statement."""
    if len(source) > _MOST_CHARACTERS:
        return []
    share = max((_share(ours, theirs) for ours in _functions(source) for theirs in _library()), default=0.0)
    if share < _ALIKE:
        return []
    reason = f"but for names and texts a function is {share:.0%} the library's own summary (copied, or written alike)"
    return [Flag("like-the-library", reason, "source")]


def _share(ours: list[str], theirs: list[str]) -> float:
    return difflib.SequenceMatcher(None, ours, theirs, autojunk=False).ratio()


@cache
def _library() -> list[list[str]]:
    from deep_learning_cases.measuring import stats

    return _functions(inspect.getsource(stats.latency_summary))


def _functions(source: str) -> list[list[str]]:
    """The shape of each function of some size in a text; nothing where it is no Python."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    shapes = [_shape(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [shape for shape in shapes if len(shape) > _FEWEST_PARTS]


def _shape(function: ast.FunctionDef) -> list[str]:
    numbers: dict[str, int] = {}
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stored |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    shape = []
    for node in _in_order(function):
        if isinstance(node, ast.Name):
            known = node.id in stored
            shape.append(f"name {numbers.setdefault(node.id, len(numbers)) if known else node.id}")
        elif isinstance(node, ast.Attribute):
            shape.append(f"attribute {node.attr}")
        elif isinstance(node, ast.Constant):
            shape.append("text" if isinstance(node.value, str) else f"constant {node.value!r:.20}")
        elif not isinstance(node, ast.expr_context | ast.JoinedStr | ast.FormattedValue):
            shape.append(type(node).__name__)
    return shape


def _in_order(node: ast.AST) -> list[ast.AST]:
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += reversed(list(ast.iter_child_nodes(one)))
    return found
