"""Requests that are broken, slow or expensive: each gets its status, and an honest client beside it notices nothing."""

import contextlib
import re
import socket
import threading
import time

import pytest

from deep_learning_cases.errors import InputError
from deep_learning_cases.serving import images, predictor
from tests.library.served import Scripted, ask, gauge, png, raw, running, until
from tests.library.serving import hostile_images

IMAGE = png(3)
POST = b"POST /predict HTTP/1.1\r\nHost: x\r\n"
WHOLE = POST + b"Content-Length: %d\r\n\r\n" % len(IMAGE) + IMAGE
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
HALF = b"(half-closed)"
"""Not sent: the client closes its sending side here."""

BROKEN: dict[str, tuple[bytes, list[int]]] = {
    "a header of 20 kB": (GET + b"X: " + b"y" * 20_000 + b"\r\n\r\n", [431]),
    "a header of 2 MB": (GET + b"X: " + b"y" * 2_000_000 + b"\r\n\r\n", [431]),
    "a thousand header lines": (GET + b"X: yyyyyyyyyyyyyyy\r\n" * 1000 + b"\r\n", [431]),
    "an address of 5 kB": (GET.replace(b"/healthz", b"/" + b"a" * 5000) + b"\r\n", [414]),
    "an address of 200 kB": (GET.replace(b"/healthz", b"/" + b"a" * 200_000) + b"\r\n", [414]),
    "half a header": (GET + HALF, [400]),
    "half a body": (POST + b"Content-Length: 1000\r\n\r\nabc" + HALF, [400]),
    "no body where one was announced": (POST + b"Content-Length: 1000\r\n\r\n" + HALF, [400]),
    "half a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n10\r\nabc" + HALF, [400]),
    "a slow header": (GET[:20], [408]),
    "a slow body": (POST + b"Content-Length: 1000\r\n\r\nabc", [408]),
    "a slow body for no page": (b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc", [408]),
    "an honest request": (WHOLE, [200]),
    "chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(IMAGE), IMAGE), [200]),
    "bad chunk size": (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", [400]),
    "negative chunk size": (POST + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n0\r\n\r\n", [400]),
    "endless chunk size": (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 5000, [400]),
    "another transfer coding": (POST + b"Transfer-Encoding: gzip\r\n\r\nabc", [400]),
    "length and chunks": (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
    "negative length": (POST + b"Content-Length: -5\r\n\r\n", [400]),
    "a length that is no number": (POST + b"Content-Length: many\r\n\r\nabc", [400]),
    "two lengths": (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", [400]),
    "a length of 10^30": (POST + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\nabc", [413]),
    "a body that is too large": (POST + b"Content-Length: 9000000\r\n\r\n" + bytes(9_000_000), [413]),
    "no length": (POST + b"\r\n", [400]),
    "no Host": (b"GET /healthz HTTP/1.1\r\n\r\n", [400]),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", [400]),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", [400]),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", [200]),
    "continue": (POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(IMAGE) + IMAGE, [100, 200]),
    "continue with too much": (POST + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", [413]),
    "another expectation": (POST + b"Expect: wonders\r\nContent-Length: 3\r\n\r\nabc", [417]),
    "an unknown method": (b"BREW /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", [405]),
    "a wrong method": (b"DELETE /predict HTTP/1.1\r\nHost: x\r\n\r\n", [405]),
    "CONNECT": (b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n", [405]),
    "a form": (POST + b"Content-Type: Multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\nabc", [415]),
    "a coded body": (POST + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", [415]),
    "header bytes beyond ASCII": (GET + b"X-\xff: \xfe\xfd\r\n\r\n", [400]),
    "header values beyond ASCII": (GET + b"X: \xfe\xfd\xc3\xa4\r\n\r\n", [200]),
    "an address beyond ASCII": (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", [404]),
    "a query that is no text": (WHOLE.replace(b"/predict", b"/predict?logits=%ff"), [400]),
    "a control byte in a header": (GET + b"X: a\x00b\r\n\r\n", [400]),
    "three requests at once": (WHOLE * 2 + GET + b"Connection: close\r\n\r\n", [200, 200, 200]),
    "an honest and a broken one at once": (WHOLE + POST + b"Content-Length: x\r\n\r\n", [200, 400]),
    "half a request after a whole one": (WHOLE + GET + HALF, [200, 400]),
}


def statuses(answers: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"^HTTP/1\.[01] (\d{3})", answers, re.MULTILINE)]


def exchanged(started, sent: bytes, expected: int) -> bytes:
    """What comes back, until so many answers are there or the other side closes."""
    got = b""
    with raw(started) as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(sent.removesuffix(HALF))
        if sent.endswith(HALF):
            connection.shutdown(socket.SHUT_WR)
        while not (len(statuses(got)) >= expected and got.endswith(b"\n")) and (more := connection.recv(65536)):
            got += more
    return got


@contextlib.contextmanager
def honest(started):
    """A client that asks all the time; at the end every answer has to be right, and none late."""
    stop, found = threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            begun = time.monotonic()
            status, _, answer = ask(started, body=png(len(found) % 10))
            found.append((status, answer.get("class"), time.monotonic() - begun))
            time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
    assert [(status, label) for status, label, _ in found] == [(200, number % 10) for number in range(len(found))]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if "for no page" in kind else kind for kind in BROKEN]
)
def test_every_request_gets_its_status(kind, hostile_service):
    sent, expected = BROKEN[kind]
    got = exchanged(hostile_service, sent, len(expected))
    assert statuses(got) == expected
    assert b" at 0x" not in got
    if expected[-1] >= 400:
        assert b'{"error": "' in got


@pytest.mark.parametrize("kind", hostile_images.IMAGES)
def test_every_image_gets_its_status(kind, hostile_service):
    content, expected = hostile_images.IMAGES[kind]
    status, _, answer = ask(hostile_service, body=content)
    assert status in expected, answer
    if status == 200:
        assert answer["class"] == 7
    else:
        assert "\n" not in answer["error"]
        assert " at 0x" not in answer["error"]


@pytest.fixture(scope="module")
def hostile_service():
    """One service for all of them, with an honest client beside."""
    with running(Scripted(), body_timeout_s=0.3, idle_timeout_s=0.5) as started, honest(started):
        yield started


def test_the_header_limits_hold_for_unread_data_too():
    """The answer reaches a client that is still sending, though the service does not read all of it."""
    with running(Scripted(), body_bytes=1000) as started:
        for _ in range(5):
            got = exchanged(started, POST + b"Content-Length: 900000\r\n\r\n" + bytes(900_000), 1)
            assert statuses(got) == [413]


def test_large_images_wait_for_each_other_and_nobody_for_them(monkeypatch):
    gate, begun = threading.Event(), threading.Semaphore(0)
    decode = images.decode_plain

    def slow(found):
        if found.work > predictor.LARGE_WORK:
            begun.release()
            assert gate.wait(20)
        return decode(found)

    monkeypatch.setattr(images, "decode_plain", slow)
    large = hostile_images.png(side=1600)
    with running(Scripted(), queue_bound=8) as started:
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(raw(started)) for _ in range(4)]
            for connection in waiting:
                connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(large) + large)
            assert begun.acquire(timeout=10)
            until(lambda: gauge(started, "dlcases_queue_length") == 4)
            with honest(started) as found:
                until(lambda: len(found) > 10)
                status, headers, answer = ask(started, body=large)
                assert (status, headers["Retry-After"]) == (503, "1")
                assert "too many large images" in answer["error"]
            gate.set()
            for connection in waiting:
                assert b" 200 " in connection.recv(4096)
        assert ask(started, body=large)[2]["class"] == 7


@pytest.mark.slow
def test_scan_bombs_cost_others_nothing():
    bomb = hostile_images.scans(4000, 57)  # just allowed
    with running(Scripted(), queue_bound=64) as started, honest(started) as found, contextlib.ExitStack() as stack:
        until(lambda: len(found) > 10)
        for _ in range(12):
            connection = stack.enter_context(raw(started))
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(bomb) + bomb)
        before = len(found)
        until(lambda: len(found) > before + 50, 30)
        assert max(seconds for _, _, seconds in found) < 5


def test_the_limits_of_an_image_are_told_before_it_is_decoded():
    for content, told in (
        (hostile_images.scans(64, 100), "more than 64 scans"),
        (hostile_images.png(*[hostile_images.chunk(b"tEXt", b"a\0")] * 10_001), "more than 10000 chunks"),
    ):
        with pytest.raises(InputError, match=told):
            images.examine(content)
