"""Connections on which every request gets an answer, also one that Tornado would hang up on.

Tornado closes a connection without a word where a header is too long, comes too slowly, or where the other side ends in
the middle of a request; and it closes while the client still sends, which makes many a system throw the answer away.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from http.client import responses
from typing import Any

from tornado import httputil, iostream

__all__ = ["LINGER_S", "Lingering", "Stream", "Told", "answer"]

LINGER_S = 1.0
MOST_LINGERING = 256

_TORNADOS_400 = b"HTTP/1.1 400 Bad Request\r\n\r\n"
_NO_HTTP = "this is no HTTP/1.1: expected a request line, headers, and a body of known length; see the documentation"


def answer(status: int, message: str, *headers: str) -> bytes:
    """A whole answer, for where no handler can give one; the connection ends with it."""
    body = json.dumps({"error": message}).encode() + b"\n"
    lines = [
        f"HTTP/1.1 {status} {responses[status]}",
        *headers,
        "Content-Type: application/json; charset=utf-8",
        "Connection: close",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


class Lingering:
    """Sockets whose last answer is sent and that wait for the other side to close; each for a second at most.

    Closing a socket on which something is unread makes the other side's system drop what it has received.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False

    def add(self, connection: socket.socket) -> None:
        """Take over ``connection``: nothing more is sent, what comes is dropped, and it is closed."""
        if self.closed or len(self._tasks) >= MOST_LINGERING:
            connection.close()
            return
        task = asyncio.ensure_future(_drop(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for all of them."""
        self.closed = True
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _drop(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError, OSError):
        try:
            async with asyncio.timeout(LINGER_S):
                connection.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(connection, 1 << 16):
                    pass
        finally:
            connection.close()


class Stream(iostream.IOStream):
    """A connection that says why before it is closed on a request without an answer.

    ``counted`` is called with the status of every answer that no handler gave.
    """

    def __init__(
        self, connection: socket.socket, counted: Callable[[int], object], lingering: Lingering, **options: Any
    ):
        super().__init__(connection, **options)
        self._counted, self._lingering = counted, lingering
        self._ended = False
        self.next_request()

    def next_request(self) -> None:
        """Whatever comes from now on belongs to a new request."""
        self._asked = self._whole = self._answered = False
        self._heard = bool(self._unread().strip())

    def asked(self) -> None:
        """The header of the request is here."""
        self._asked = True

    def whole(self) -> None:
        """All of the request is here."""
        self._whole = True

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        """Tornado's own; notes that something came, and that the other side has nothing more to send.

        A header may be taken from the buffer already and not be looked at yet when the end is found behind it.
        """
        count = super().read_from_fd(buf)
        self._ended = self._ended or count == 0
        self._heard = self._heard or bool(count and bytes(buf[:count]).strip())
        return count

    def write(self, data: bytes | memoryview) -> "asyncio.Future[None]":
        """Tornado's own, but its bare 400 becomes an answer that says why."""
        if data == _TORNADOS_400:
            if self._answered:
                data = b""
            else:
                self._counted(400)
                data = answer(400, _NO_HTTP)
        if data and not bytes(data[:10]).startswith(b"HTTP/1.1 1"):
            self._answered = True
        return super().write(data)

    def close(self, exc_info: Any = False) -> None:
        """Tornado's own, after an answer to a request that was under way."""
        if not self.closed():
            under_way = self._asked or self._heard
            if under_way and not self._answered:
                self._say_why(exc_info)
            if under_way and not (self._ended or self._whole):
                with contextlib.suppress(OSError):
                    self._lingering.add(self.socket.dup())
        super().close(exc_info)

    def _say_why(self, cause: Any) -> None:
        """Send the last words past the buffer, which is about to be dropped; if they cannot be sent, nobody listens."""
        status, message = self._why(cause)
        if not self._whole:  # otherwise the handler counts
            self._counted(status)
        self._answered = True
        with contextlib.suppress(OSError):
            self.socket.send(answer(status, message))

    def _why(self, cause: Any) -> tuple[int, str]:
        if self._whole:
            if self._ended:
                return 400, "the connection was closed before its answer: expected it to stay open until then"
            return 503, "the service is stopping: it takes no new images; try another one"
        if isinstance(cause, iostream.UnsatisfiableReadError):
            if self._asked:
                return 400, _NO_HTTP
            if b"\n" not in self._unread().lstrip():
                return 414, "the address is too long: expected a few hundred characters; shorten it"
            return 431, "the header is too long: expected at most 16 kB; send fewer or shorter lines"
        part = "body" if self._asked else "header"
        if self._ended:
            return 400, f"the connection ended in the middle of the {part}: expected all of it; send it again"
        return 408, f"the {part} did not arrive in time: send it faster"

    def _unread(self) -> bytes:
        return bytes(self._read_buffer)


class Told(httputil.HTTPMessageDelegate):
    """Passes a request on, and tells its connection how far it has come."""

    def __init__(self, delegate: httputil.HTTPMessageDelegate, stream: Stream) -> None:
        self._delegate, self._stream = delegate, stream
        stream.next_request()

    def headers_received(
        self, start_line: httputil.RequestStartLine | httputil.ResponseStartLine, headers: httputil.HTTPHeaders
    ) -> Awaitable[None] | None:
        """Tornado's own; a request is under way from here on."""
        self._stream.asked()
        return self._delegate.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Handed on."""
        return self._delegate.data_received(chunk)

    def finish(self) -> None:
        """Handed on; the request has arrived whole."""
        self._stream.whole()
        self._delegate.finish()

    def on_connection_close(self) -> None:
        """Handed on."""
        self._delegate.on_connection_close()
