"""What a site may set for its hub: good values pass, and every other is one line before the hub starts."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_settings", DEPLOY / "site_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "site_settings", module)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def test_without_any_variable_the_defaults_are_those_of_the_table(site: ModuleType) -> None:
    settings = site.read({})
    table = (DEPLOY / "README.md").read_text()
    for name, value in (
        ("HUB_URL", settings.url),
        ("HUB_STATE", settings.state),
        ("EXCHANGE", settings.exchange),
        ("CHECKOUT", settings.checkout),
        ("IDLE_SECONDS", settings.idle_seconds),
        ("PROXY", settings.proxy),
    ):
        assert f"| `DLCASES_{name}` | `{value}` |" in table
    assert f"`DLCASES_CORES` | `{settings.memory}`, `{settings.cores:g}` |" in table
    assert f"`DLCASES_INSTRUCTORS` | `{settings.students}`, `{settings.instructors}` |" in table


def test_an_empty_variable_is_none(site: ModuleType) -> None:
    names = ("HUB_URL", "HUB_STATE", "EXCHANGE", "MEMORY", "CORES", "IDLE_SECONDS", "STUDENTS", "PROXY")
    assert site.read({f"DLCASES_{name}": "" for name in names}) == site.read({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY", "512M"), ("MEMORY", "2.5G"), ("MEMORY", "4294967296"), ("CORES", "0.5"), ("CORES", "16"),
        ("IDLE_SECONDS", "120"), ("HUB_URL", "http://10.0.0.1:8000/jupyter"), ("SUBDOMAINS_OF", "https://hub.example.org"),
        ("HUB_STATE", "/srv/new/hub"),
    ],
)  # fmt: skip
def test_a_value_that_can_be_meant_is_taken(site: ModuleType, name: str, value: str) -> None:
    assert site.read({f"DLCASES_{name}": value}) != site.read({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY", "banana"), ("MEMORY", "2g"), ("MEMORY", "2"), ("MEMORY", "-1G"), ("MEMORY", "511M"), ("MEMORY", "0"),
        ("CORES", "x"), ("CORES", "-1"), ("CORES", "0"), ("CORES", "nan"), ("CORES", "inf"), ("CORES", "1e9"),
        ("IDLE_SECONDS", "abc"), ("IDLE_SECONDS", "1e9"), ("IDLE_SECONDS", "119"), ("IDLE_SECONDS", "-120"),
        ("IDLE_SECONDS", "99999999999"), ("IDLE_SECONDS", "\u0661\u0662\u0663\u0664"),
        ("HUB_URL", "foo"), ("HUB_URL", "127.0.0.1:8000"), ("HUB_URL", "http://x:port"), ("HUB_URL", "http://"),
        ("SUBDOMAINS_OF", "hub.example.org"), ("HUB_STATE", "state"), ("HUB_STATE", "/etc/passwd"), ("EXCHANGE", "."),
    ],
)  # fmt: skip
def test_any_other_is_one_line_with_the_name_the_value_and_what_was_expected(
    site: ModuleType, name: str, value: str
) -> None:
    with pytest.raises(site.SettingError) as caught:
        site.read({f"DLCASES_{name}": value})
    message = str(caught.value)
    assert message.startswith(f"DLCASES_{name} is {value!r}: expected ")
    assert "\n" not in message
