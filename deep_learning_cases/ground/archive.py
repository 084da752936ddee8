"""Zip archives with reproducible bytes, and zip archives from anybody, read with bounds."""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from deep_learning_cases.errors import EvidenceError, one_line
from deep_learning_cases.ground import files

__all__ = ["MAX_MEMBERS", "MAX_UNPACKED_BYTES", "MAX_ZIP_BYTES", "is_plain", "read_zip", "zip_bytes"]

MAX_ZIP_BYTES = 64 * 1024 * 1024
MAX_UNPACKED_BYTES = 128 * 1024 * 1024
MAX_MEMBERS = 500

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,120}(/[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,120}){0,7}")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """A zip whose bytes depend on names and contents alone: sorted, without times, compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, date_time=_EPOCH)
            info.create_system = 3  # the default depends on the operating system
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, members[name])
    return buffer.getvalue()


def read_zip(path: str | Path) -> dict[str, bytes]:
    """Every file of a zip by its name, without unpacking anything to disk.

    FileError if the file cannot be read.  EvidenceError for: no zip, bytes around it, a damaged or encrypted member, a
    name twice, a name that is absolute, leaves the folder or is not plain, a link, more than ``MAX_MEMBERS`` members,
    more than ``MAX_ZIP_BYTES`` packed or ``MAX_UNPACKED_BYTES`` unpacked (counted while reading: what the zip says of
    itself is not believed).
    """
    content = files.read_bytes(path, MAX_ZIP_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_ends(path, content)
            members = [info for info in archive.infolist() if not info.is_dir()]
            _check_names(path, members)
            return _read_members(path, archive, members)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise EvidenceError(
            f"{path} is not a sound zip ({one_line(error)}): expected one made by dlcases pack"
        ) from error


def _check_ends(path: str | Path, content: bytes) -> None:
    """No byte before the first member and none after the directory, where readers differ about what the file is."""
    if not content.startswith((b"PK\x03\x04", b"PK\x05\x06")) or content[-22:-18] != b"PK\x05\x06":
        raise EvidenceError(f"{path} holds other bytes before or after its members: expected a zip and nothing else")


def _check_names(path: str | Path, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MAX_MEMBERS:
        raise EvidenceError(f"{path} holds {len(members)} files: expected at most {MAX_MEMBERS}")
    seen = set()
    for info in members:
        name = info.filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not _NAME.fullmatch(name) or kind not in (0, stat.S_IFREG):
            raise EvidenceError(f"{path} holds {name[:80]!r}: expected regular files with plain names inside a folder")
        # Two names that differ only in case are one file on some systems.
        if name.casefold() in seen:
            raise EvidenceError(f"{path} holds {name[:80]!r} twice: expected each file once")
        seen.add(name.casefold())


def _read_members(path: str | Path, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    left = MAX_UNPACKED_BYTES
    for info in members:
        with archive.open(info) as stream:
            content = stream.read(left + 1)
        left -= len(content)
        if left < 0:
            raise EvidenceError(f"{path} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes: expected a few megabytes")
        contents[info.filename] = content
    return contents


def is_plain(name: str) -> bool:
    """A name that :func:`read_zip` takes back."""
    return _NAME.fullmatch(name) is not None
