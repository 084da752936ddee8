"""What a site may set, read from the environment: every value checked before the hub starts, each fault in one line."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["SettingError", "Settings", "read"]

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
LEAST_MEMORY_BYTES = 512 * 1024**2
"""Training the network takes 450 MB."""

LEAST_IDLE_SECONDS, MOST_IDLE_SECONDS = 120, 30 * 24 * 3600


class SettingError(ValueError):
    """A variable whose value cannot be meant; the message is one line for the operator."""


@dataclass(frozen=True)
class Settings:
    """The settings of one machine; deploy/README.md says what each means."""

    url: str
    subdomains_of: str
    state: Path
    exchange: Path
    checkout: str
    students: str
    instructors: str
    memory: str
    cores: float
    idle_seconds: int
    proxy: str


def read(environment: Mapping[str, str]) -> Settings:
    """The settings; a variable that is empty counts as not set.  Raises SettingError."""

    def text(name: str, default: str) -> str:
        return environment.get(f"DLCASES_{name}", "").strip() or default

    return Settings(
        url=_address("HUB_URL", text("HUB_URL", "http://127.0.0.1:8000")),
        subdomains_of=_address("SUBDOMAINS_OF", text("SUBDOMAINS_OF", "")),
        state=_folder("HUB_STATE", text("HUB_STATE", "/var/lib/deep-learning-cases")),
        exchange=_folder("EXCHANGE", text("EXCHANGE", "/srv/nbgrader/exchange")),
        checkout=text("CHECKOUT", "deep-learning-cases"),
        students=text("STUDENTS", "dlcases-students"),
        instructors=text("INSTRUCTORS", "dlcases-instructors"),
        memory=_memory(text("MEMORY", "2G")),
        # One thread measures while the server answers the browser: with a single core, the limit would be measured.
        cores=_cores(text("CORES", "2")),
        idle_seconds=_idle_seconds(text("IDLE_SECONDS", "3600")),
        proxy=text("PROXY", "configurable-http-proxy"),
    )


def _fault(name: str, value: str, expected: str) -> SettingError:
    return SettingError(f"DLCASES_{name} is {value!r}: expected {expected}")


def _address(name: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if value and not whole:
        raise _fault(name, value, "an address with its scheme, such as https://hub.example.org")
    return value


def _folder(name: str, value: str) -> Path:
    path = Path(value)
    if not path.is_absolute():
        raise _fault(name, value, "the folder's absolute path")
    if path.exists() and not path.is_dir():
        raise _fault(name, value, "a folder, not a file")
    return path


def _memory(value: str) -> str:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", value)
    if match is None or float(match[1]) * _UNITS[match[2]] < LEAST_MEMORY_BYTES:
        raise _fault("MEMORY", value, "a number with K, M, G or T behind it, 512M or more")
    return value


def _cores(value: str) -> float:
    try:
        cores = float(value)
    except ValueError:
        cores = math.nan
    if not 0.1 <= cores <= 1024:
        raise _fault("CORES", value, "a number of cores from 0.1 to 1024")
    return cores


def _idle_seconds(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not LEAST_IDLE_SECONDS <= int(value) <= MOST_IDLE_SECONDS:
        raise _fault(
            "IDLE_SECONDS",
            value,
            f"whole seconds from {LEAST_IDLE_SECONDS} (use is reported every 30 s at best) to {MOST_IDLE_SECONDS}",
        )
    return int(value)
