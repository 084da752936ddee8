"""Answers as servers send them, in one piece and byte by byte; and how many requests a connection serves."""

import contextlib
import json
import socket
import threading

import numpy as np
import pytest

from deep_learning_cases import load
from deep_learning_cases.serving.load.answer import MAX_REPLY_BYTES, Answer, NotHTTP
from deep_learning_cases.serving.predictor import PARTS

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

WHOLE = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), True),
    "the same length twice": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), True),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (200, b""), True),
    "close": (b"HTTP/1.1 200 OK\r\nConnection: TE, Close\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), False),
    "HTTP/1.0 that stays": (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}", (200, b"{}"), True),
    "chunks": (CHUNKED + b"1\r\n{\r\nA;x=y\r\n0123456789\r\n1\r\n}\r\n0\r\n\r\n", (200, b"{0123456789}"), True),
    "no chunk": (CHUNKED + b"000\r\n\r\n", (200, b""), True),
    "trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nX: y\r\nZ: a\r\n\r\n", (200, b"{}"), True),
    "chunks and close": (
        CHUNKED.replace(b"OK", b"OK\r\nConnection: close") + b"2\r\n{}\r\n0\r\n\r\n", (200, b"{}"), False),
    "chunks win over a length": (
        CHUNKED.replace(b"OK", b"OK\r\nContent-Length: 9") + b"2\r\n{}\r\n0\r\n\r\n", (200, b"{}"), False),
    "interim": (
        b"HTTP/1.1 100 A\r\n\r\nHTTP/1.1 103 B\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        (200, b"{}"), True),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b""), True),
    "304 with the length it would have": (b"HTTP/1.1 304 X\r\nContent-Length: 50\r\n\r\n", (304, b""), True),
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 7, 10**6])
@pytest.mark.parametrize("kind", WHOLE)
def test_an_answer_is_whole_with_its_last_byte(kind, step):
    sent, reply, keep = WHOLE[kind]
    answer = Answer()
    pieces = [sent[first : first + step] for first in range(0, len(sent), step)]
    assert [answer.feed(piece) for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert answer.feed(pieces[-1])[:2] == reply
    assert answer.keep is keep
    assert answer.end() is None


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_without_length_the_end_of_the_connection_ends_the_answer(version):
    answer = Answer()
    assert answer.feed(b"HTTP/" + version + b" 200 OK\r\n\r\n{") is None
    assert answer.feed(b"}") is None
    assert answer.end() == (200, b"{}", "")
    assert answer.keep is False


def test_what_comes_after_the_answer_spoils_the_connection():
    answer = Answer()
    assert answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200")[:2] == (200, b"{}")
    assert answer.keep is False


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
        CHUNKED + b"\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"0x2\r\n",
        CHUNKED + b"2\r\n{}}\r\n",
        CHUNKED + b"fffffff\r\n",
        CHUNKED + b"80000\r\n" + bytes(0x80000) + b"\r\n80001\r\n",
        bytes(2 * MAX_REPLY_BYTES + 1),
        CHUNKED + b"1" * (2 * MAX_REPLY_BYTES + 1),
    ],
)
def test_what_is_no_answer_is_not_waited_for(sent):
    answer = Answer()
    with pytest.raises(NotHTTP):
        answer.feed(sent)


@contextlib.contextmanager
def server(head: bytes, requests_a_connection: int, chunked: bool = False):
    """A server that gives right answers under the given head, and closes after so many of them."""
    body = json.dumps({"latency_ms": dict.fromkeys(PARTS, 1.0), "batch_size": 1}).encode()
    if chunked:
        sent = head + b"\r\n\r\n5\r\n" + body[:5] + b"\r\n%x\r\n" % (len(body) - 5) + body[5:] + b"\r\n0\r\n\r\n"
    else:
        sent = head.replace(b"LENGTH", b"%d" % len(body)) + b"\r\n\r\n" + body
    accepted = []

    def serve(connection) -> None:
        with connection, contextlib.suppress(OSError):
            for _ in range(requests_a_connection):
                if not connection.recv(65536):
                    return
                connection.sendall(sent)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted.append(listening.accept()[0])
                threading.Thread(target=serve, args=(accepted[-1],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", accepted
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("head", "chunked", "requests", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: LENGTH", False, 100, 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", True, 100, 1),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: LENGTH", False, 100, 1),
        (b"HTTP/1.0 200 OK\r\nContent-Length: LENGTH", False, 1, 20),
        (b"HTTP/1.0 200 OK", False, 1, 20),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked", True, 1, 20),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: LENGTH", False, 100, 1),
    ],
)
def test_whatever_a_server_does_with_its_connections_no_answer_is_lost(head, chunked, requests, connections):
    with server(head, requests, chunked) as (url, accepted):
        fates = load.send(url, [b"x"], starts_s=np.arange(20) / 200, timeout_s=5)
    assert {one.status for one in fates} == {"200"}
    assert {one.batch_size for one in fates} == {1}
    assert connections <= len(accepted) <= connections + 4, "as few as possible, and one more where answers overlap"
