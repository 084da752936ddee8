"""A small HTTP client that costs little: the generator of a load should not be what limits it.

One request at a time per connection, connections kept open, no redirects, no proxies.
"""

import asyncio
import contextlib
import ipaddress
import select
import selectors
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from deep_learning_cases.errors import InputError
from deep_learning_cases.serving.load.answer import Answer, NotHTTP, Reply

__all__ = ["Client", "Target", "event_loop", "target"]


@dataclass(frozen=True)
class Target:
    """Where to send: an address that is already resolved, so that it stays the one that was checked."""

    ip: str
    port: int
    host: str
    path: str

    def request(self, body: bytes) -> bytes:
        """The bytes of one POST of ``body``."""
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body


def target(url: str, allow_remote: bool = False) -> Target:
    """Check and resolve the URL of a service; without a path /predict is meant.

    InputError unless it is http and, without ``allow_remote``, only loopback addresses: a load generator that points at
    somebody else's machine is an attack.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 80
        plain = parts.scheme == "http" and parts.hostname and not parts.username and url.isascii() and url.isprintable()
    except ValueError:
        plain = False
    if not plain or " " in url:
        raise InputError(f"the URL is {url[:100]!r}: expected http://HOST:PORT; take the one that dlcases serve prints")
    host = str(parts.hostname)
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise InputError(f"the host {host!r} is unknown ({error}): expected this machine; check the URL") from error
    if not allow_remote and not all(ipaddress.ip_address(ip).is_loopback for ip in found):
        raise InputError(
            f"{host} is not this machine: expected a loopback address such as 127.0.0.1; a load on another machine"
            " needs its owner's consent, and then --allow-remote"
        )
    path = (parts.path if parts.path not in ("", "/") else "/predict") + (f"?{parts.query}" if parts.query else "")
    return Target(min(found, key=lambda ip: ":" in ip), port, parts.netloc, path)


class _Connection(asyncio.Protocol):
    """One connection, for one request after the other; ``keep`` tells whether it is good for another one."""

    def __init__(self) -> None:
        self.open = False
        self.keep = True
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._answer = Answer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        whole = self._answer.end() if exc is None else None
        self._settle(whole or Reply(0, b"", "connection lost"), keep=False)

    def send(self, request: bytes) -> "asyncio.Future[Reply]":
        self._answer = Answer()
        self._reply = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.open:
            self._settle(Reply(0, b"", "connection lost"), keep=False)
        else:
            self._transport.write(request)
        return self._reply

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():  # nobody has asked
            self.keep = False
            self.abort()
            return
        try:
            reply = self._answer.feed(data)
        except NotHTTP:
            self._settle(Reply(0, b"", "not HTTP"), keep=False)
            self.abort()
            return
        if reply is not None:
            self._settle(reply, self._answer.keep)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _settle(self, reply: Reply, keep: bool) -> None:
        self.keep = self.keep and keep
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)


class Client:
    """Sends to one target; opens connections as they are needed and uses them again."""

    def __init__(self, where: Target, timeout_s: float) -> None:
        self._target, self._timeout_s = where, timeout_s
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    async def connect(self, count: int) -> None:
        """Have ``count`` connections open and idle; InputError where nobody listens."""
        try:
            self._idle += [await self._connection() for _ in range(count - len(self._idle))]
        except OSError as error:
            where = f"{self._target.ip} port {self._target.port}"
            raise InputError(
                f"nobody answers at {where} ({error.strerror or error}): expected a running service; start one with:"
                " dlcases serve DIR"
            ) from error

    async def send(self, request: bytes) -> Reply:
        """The reply to one request; never raises: a failure is a reply with status 0."""
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                while self._idle and connection is None:
                    candidate = self._idle.pop()
                    connection = candidate if candidate.open else None
                connection = connection or await self._connection()
                reply = await connection.send(request)
        except TimeoutError:
            reply = Reply(0, b"", "timeout")
        except OSError as error:
            reply = Reply(
                0, b"", "connection refused" if isinstance(error, ConnectionRefusedError) else "no connection"
            )
        if connection is not None:
            if reply.status and connection.keep and connection.open:
                self._idle.append(connection)
            else:
                connection.abort()
                self._all.discard(connection)
        return reply

    def close(self) -> None:
        """Drop all connections."""
        for connection in self._all:
            connection.abort()

    async def _connection(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._target.ip, self._target.port)
        self._all.add(connection)
        return connection


def event_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose timers are precise.

    epoll's own timeout counts milliseconds and asyncio rounds it up, so that a request would start up to 1 ms late;
    select(2) on epoll's descriptor counts microseconds.  Elsewhere than on Linux the default loop is precise enough.
    """
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()

    class Precise(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                with contextlib.suppress(ValueError):  # a descriptor above select's 1023: asyncio's rounding remains
                    select.select([self.fileno()], [], [], timeout)
                    timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(Precise())
