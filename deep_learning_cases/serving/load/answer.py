"""One HTTP/1 answer out of the bytes of a connection: where it ends, and whether the connection serves another one.

Source: RFC 9112, "HTTP/1.1", sections 6.3 (length of a body), 7.1 (chunks) and 9.3 (persistence).
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["MAX_REPLY_BYTES", "Answer", "NotHTTP", "Reply"]

MAX_REPLY_BYTES = 1 << 20

NO_BODY = (204, 304)
SWITCHED = 101


class NotHTTP(Exception):
    """What came is no answer, or one that is absurdly long."""


class Reply(NamedTuple):
    """The status and body of an answer; or status 0 and in ``failure`` why there is none."""

    status: int
    body: bytes
    failure: str = ""


class _Head(NamedTuple):
    status: int
    length: int | None
    """Of the body; None where chunks or the end of the connection tell."""
    chunked: bool
    keep: bool


class Answer:
    """The answer that is coming in; ``keep`` tells, once it is there, whether the connection may be used again."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()
        self._trailing = False
        self.keep = False

    def feed(self, data: bytes) -> Reply | None:
        """More bytes; the reply once it is whole.  NotHTTP for what is none."""
        self._buffer += data
        while self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                self._check_room()
                return None
            head = _head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if head.status >= 200 or head.status == SWITCHED:  # an interim answer is followed by another one
                self._head = head
        if self._head.chunked:
            return self._take_chunks(self._head)
        if self._head.length is None:
            self._check_room()
            return None
        if self._head.length > MAX_REPLY_BYTES:
            raise NotHTTP
        if len(self._buffer) < self._head.length:
            return None
        return self._whole(self._head, bytes(self._buffer[: self._head.length]), len(self._buffer) > self._head.length)

    def end(self) -> Reply | None:
        """The connection has ended; the reply, where that is what its end means."""
        if self._head is None or self._head.chunked or self._head.length is not None:
            return None
        return Reply(self._head.status, bytes(self._buffer))

    def _take_chunks(self, head: _Head) -> Reply | None:
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                self._check_room()
                return None
            line = bytes(self._buffer[:end])
            if self._trailing:
                del self._buffer[: end + 2]
                if not line:
                    return self._whole(head, bytes(self._chunks), bool(self._buffer))
                continue
            size = _chunk_size(line)
            if size + len(self._chunks) > MAX_REPLY_BYTES:
                raise NotHTTP
            if size == 0:
                self._trailing = True
                del self._buffer[: end + 2]
                continue
            after = end + 2 + size
            if len(self._buffer) < after + 2:
                self._check_room()
                return None
            if self._buffer[after : after + 2] != b"\r\n":
                raise NotHTTP
            self._chunks += self._buffer[end + 2 : after]
            del self._buffer[: after + 2]

    def _whole(self, head: _Head, body: bytes, more: bool) -> Reply:
        self.keep = head.keep and not more
        return Reply(head.status, body)

    def _check_room(self) -> None:
        if len(self._buffer) > 2 * MAX_REPLY_BYTES:
            raise NotHTTP


def _head(head: bytes) -> _Head:
    first, *lines = head.split(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or words[0] not in (b"HTTP/1.0", b"HTTP/1.1") or len(words[1]) != 3 or not words[1].isdigit():
        raise NotHTTP
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise NotHTTP
        fields[name] = fields[name] + b"," + value.strip() if name in fields else value.strip()
    status = int(words[1])
    tokens = _tokens(fields.get(b"connection", b""))
    keep = b"close" not in tokens and (words[0] == b"HTTP/1.1" or b"keep-alive" in tokens) and status != SWITCHED
    if status < 200 or status in NO_BODY:
        return _Head(status, 0, False, keep)
    codings = _tokens(fields.get(b"transfer-encoding", b""))
    if codings:
        chunked = codings[-1] == b"chunked"
        # With both, or in HTTP/1.0, nobody can say where the next answer would begin.
        sure = chunked and b"content-length" not in fields and words[0] == b"HTTP/1.1"
        return _Head(status, None, chunked, keep and sure)
    length = _length(fields)
    return _Head(status, length, False, keep and length is not None)


def _length(fields: Mapping[bytes, bytes]) -> int | None:
    if b"content-length" not in fields:
        return None
    values = set(_tokens(fields[b"content-length"]))
    if len(values) != 1:
        raise NotHTTP
    (value,) = values
    if not value.isdigit() or len(value) > 18:
        raise NotHTTP
    return int(value)


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip().lower() for token in value.split(b",") if token.strip()]


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise NotHTTP
    return int(digits, 16)
