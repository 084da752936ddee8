"""What a library imports and hardly needs is put off, and nobody gets less for it."""

import subprocess
import sys

import pytest

from deep_learning_cases.ground.late_import import FORMAT_CHECKER, put_off

SLOW = """
STARTED.append("slow_module")

def answer(question, more=""):
    return question + "!" + more
"""
USER = """
from slow_module import answer as kept
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """Counts how often ``slow_module`` is really imported; ``user_module`` takes a function from it."""
    started: list[str] = []
    monkeypatch.setattr("builtins.STARTED", started, raising=False)
    (tmp_path / "slow_module.py").write_text(SLOW)
    (tmp_path / "user_module.py").write_text(USER)
    monkeypatch.syspath_prepend(tmp_path)
    yield started
    for name in ("slow_module", "user_module"):
        sys.modules.pop(name, None)


def test_what_was_taken_meanwhile_imports_the_module_when_it_is_called(slow):
    with put_off("slow_module"):
        import user_module
    assert slow == []
    assert "slow_module" not in sys.modules
    assert user_module.kept("yes", more="!") == "yes!!"
    assert slow == ["slow_module"]
    assert user_module.kept("no") == "no!"
    assert slow == ["slow_module"]


def test_it_works_while_the_import_is_still_under_way(slow):
    with put_off("slow_module"):
        import user_module

        assert user_module.kept("yes") == "yes!"
        real = sys.modules["slow_module"]
    assert sys.modules["slow_module"] is real
    assert slow == ["slow_module"]


def test_afterwards_the_module_is_the_real_one(slow):
    with put_off("slow_module"):
        import user_module  # noqa: F401
    import slow_module

    assert slow == ["slow_module"]
    assert slow_module.answer("yes") == "yes!"


@pytest.mark.usefixtures("slow")
def test_a_failing_import_leaves_no_stand_in():
    with pytest.raises(ZeroDivisionError), put_off("slow_module"):
        raise ZeroDivisionError
    assert "slow_module" not in sys.modules


@pytest.mark.usefixtures("slow")
def test_a_module_that_is_there_already_stays():
    import slow_module

    with put_off("slow_module"):
        import user_module
    assert user_module.kept is slow_module.answer


def test_a_module_that_is_not_installed_is_missed_as_ever():
    with put_off("no_such_module"), pytest.raises(ModuleNotFoundError):
        import no_such_module  # noqa: F401


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


LINKS = """
import sys
from jsonschema import Draft202012Validator, FormatChecker
assert "uri" in FormatChecker().checkers and "iri" in FormatChecker().checkers
links = Draft202012Validator({"format": "uri"}, format_checker=FormatChecker())
assert links.is_valid("https://example.org/a") and not links.is_valid("no link")
import rfc3987_syntax
print(rfc3987_syntax.is_valid_syntax("iri", "https://example.org/a"), rfc3987_syntax.__spec__ is not None)
"""


@pytest.mark.slow
def test_whoever_imports_jsonschema_after_us_gets_all_of_it():
    pytest.importorskip(FORMAT_CHECKER)
    ours = (
        "from deep_learning_cases.ground import schemas\n"
        "assert schemas.violations({}, 'release')\n"
        "import sys; assert 'jsonschema' in sys.modules and 'rfc3987_syntax' not in sys.modules\n"
    )
    assert python(ours + LINKS) == python(LINKS) == "True True"
