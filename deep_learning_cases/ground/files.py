"""Files are written whole or not at all, read with bounds, and named by their SHA-256.

A measuring process reads its model through this module, and hashlib (with OpenSSL) and tempfile would add 6 MB to the
peak memory that it reports: they are imported where they are used.
"""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, TypedDict

from deep_learning_cases.errors import EvidenceError, FileError

__all__ = [
    "MAX_JSON_BYTES",
    "FileRecord",
    "bytes_record",
    "file_record",
    "json_bytes",
    "open_regular",
    "parse_json",
    "read_bytes",
    "read_json",
    "scratch_folder",
    "sha256_bytes",
    "sha256_file",
    "write_bytes",
    "write_json",
]

MAX_JSON_BYTES = 4 * 1024 * 1024
"""A benchmark record with 1,200 samples is about 40 kB; a hundred times that is a mistake or an attack."""

MAX_JSON_DEPTH = 32

NO_ROOM = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}
"""What the system answers where a temporary folder cannot be made or filled."""


class FileRecord(TypedDict):
    """How the evidence files name each other."""

    file: str
    sha256: str
    bytes: int


def sha256_bytes(content: bytes) -> str:
    """SHA-256 of ``content`` as 64 lower-case hexadecimal digits."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes; FileError where it cannot be read."""
    import hashlib

    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def file_record(path: str | Path) -> FileRecord:
    """Name, hash and size of one file."""
    return bytes_record(Path(path).name, read_bytes(path))


def bytes_record(name: str, content: bytes) -> FileRecord:
    """As :func:`file_record`, of bytes that were read already."""
    return {"file": name, "sha256": sha256_bytes(content), "bytes": len(content)}


def read_bytes(path: str | Path, max_bytes: int | None = None) -> bytes:
    """The whole file; FileError if unreadable, EvidenceError if larger than ``max_bytes``."""
    try:
        with open_regular(path) as stream:
            content = stream.read() if max_bytes is None else stream.read(max_bytes + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if max_bytes is not None and len(content) > max_bytes:
        raise EvidenceError(f"{path} is larger than {max_bytes} bytes: expected a small file; make it again")
    return content


def read_json(path: str | Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Parse a JSON file strictly: bounded size and depth, UTF-8, no NaN or Infinity, no key twice.

    Raises FileError if the file cannot be read and EvidenceError if it is not such JSON.
    """
    return parse_json(read_bytes(path, max_bytes), str(path))


def parse_json(content: bytes, name: str) -> Any:
    """As :func:`read_json`, from bytes; ``name`` stands in the message."""
    try:
        value = json.loads(
            content.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_unique_keys,
        )
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise EvidenceError(
            f"{name} is not valid JSON ({reason}): expected RFC 8259 JSON in UTF-8; make it again"
        ) from error
    if _depth(value) > MAX_JSON_DEPTH:
        raise EvidenceError(
            f"{name} is nested deeper than {MAX_JSON_DEPTH} levels: expected a flat record; make it again"
        )
    return value


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as indented UTF-8 JSON, whole or not at all; ValueError for NaN or Infinity."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """What :func:`write_json` writes; ValueError for NaN or Infinity."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step.

    The bytes go to a neighbour file that is flushed to disk and then renamed, so that a reader, a full disk, Ctrl-C or
    a kill leaves either the old file or the new one, never a part.  Raises FileError, also where a device, pipe or
    folder of that name would have to go.
    """
    import tempfile

    path = Path(path)
    temporary: str | None = None
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a regular file")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with open(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101 - mkstemp makes 0600, and evidence is meant to be handed in
        os.replace(temporary, path)  # noqa: PTH105
        temporary = None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(
            f"cannot write {path} ({reason}): the old file, if any, is untouched; free space or choose another folder"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder that is removed afterwards, whatever happens; FileError where none can be made or filled."""
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="deep-learning-cases-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        if error.errno not in NO_ROOM:  # a failure of what was done with the folder, not of the folder
            raise
        raise FileError(
            f"no room for temporary files ({error.strerror or error}): expected a writable folder with 1 MB free; "
            "free space or set TMPDIR"
        ) from error


def open_regular(path: str | Path, *, links: bool = True) -> BufferedReader:
    """Open for reading; OSError for a folder, pipe or device, and for a symbolic link without ``links``.

    A named pipe would otherwise be waited on for ever, and a link read that somebody handed in.
    """
    if not links and Path(path).is_symlink():
        raise OSError(errno.ELOOP, "a symbolic link", str(path))
    names = ("O_NONBLOCK", "O_BINARY") if links else ("O_NONBLOCK", "O_BINARY", "O_NOFOLLOW")
    handle = os.open(path, sum(getattr(os, name, 0) for name in names))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(handle, "rb")


def _unreadable(path: str | Path, error: OSError) -> FileError:
    return FileError(
        f"cannot read {path} ({error.strerror or type(error).__name__}): expected a readable file; check the path"
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a number")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} stands twice")
    return result


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth
