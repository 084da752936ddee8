"""Length-prefixed JSON between the grader and the inside of the wall; standard library only."""

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")


class Closed(Exception):
    """The other side went away."""


def send(sock: socket.socket, value: Any, fds: tuple[int, ...] = ()) -> None:
    """Send one value, with file descriptors if any."""
    body = json.dumps(value).encode()
    frame = _LENGTH.pack(len(body)) + body
    sent = socket.send_fds(sock, [frame], list(fds)) if fds else 0
    sock.sendall(frame[sent:])


def receive(sock: socket.socket, max_bytes: int = 1 << 20, max_fds: int = 4) -> tuple[Any, list[int]]:
    """Receive one value of at most ``max_bytes``, and the descriptors that came with it."""
    head, fds, _, _ = socket.recv_fds(sock, _LENGTH.size, max_fds)
    while head and len(head) < _LENGTH.size:
        head += _more(sock, _LENGTH.size - len(head))
    if not head:
        raise Closed
    (length,) = _LENGTH.unpack(head)
    if length > max_bytes:
        raise Closed
    return json.loads(read_exactly(sock, length)), list(fds)


def read_exactly(sock: socket.socket, length: int) -> bytes:
    """Exactly ``length`` bytes; Closed if the stream ends before."""
    parts = bytearray()
    while len(parts) < length:
        parts += _more(sock, min(1 << 20, length - len(parts)))
    return bytes(parts)


def _more(sock: socket.socket, size: int) -> bytes:
    part = sock.recv(size)
    if not part:
        raise Closed
    return part
