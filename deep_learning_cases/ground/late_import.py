"""Modules that another library imports at once and hardly ever needs: put off until something in them is called."""

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["FORMAT_CHECKER", "put_off"]

FORMAT_CHECKER = "rfc3987_syntax"
"""jsonschema imports it to check links: nine tenths of the second that ``import jsonschema`` then takes."""


@contextlib.contextmanager
def put_off(name: str = FORMAT_CHECKER) -> Iterator[None]:
    """Around an import: a function that is taken from the module ``name`` meanwhile imports it when it is called.

    So nothing is lost: jsonschema still checks links for whoever asks it to, and ``import rfc3987_syntax`` is the real
    one again afterwards.  Nothing happens where the module is not installed or has been imported already.
    """
    if name in sys.modules or importlib.util.find_spec(name) is None:
        yield
        return
    stand_in = _Later(name)
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


class _Later(ModuleType):
    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("__"):  # what the import system asks every module for
            raise AttributeError(function)

        def call(*arguments: Any, **named: Any) -> Any:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(importlib.import_module(self.__name__), function)(*arguments, **named)

        return call
