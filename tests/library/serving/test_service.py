"""The HTTP service, with engines that do as they are told: what is answered, what is refused, and in what order."""

import asyncio
import http.client
import io
import json
import socket
import threading
import time

import numpy as np
import pytest
from PIL import Image

from deep_learning_cases import service
from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.models import artefacts, engines
from deep_learning_cases.serving.predictor import PARTS, Limits
from tests.library.served import Asking, Scripted, address, ask, bomb_png, gauge, png, raw, received, running, until


def test_an_answer_has_class_parts_and_batch_size():
    with running(Scripted()) as started:
        status, headers, answer = ask(started, body=png(7))
    assert status == 200
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert (answer["class"], answer["batch_size"]) == (7, 1)
    assert "logits" not in answer
    parts = answer["latency_ms"]
    assert tuple(parts) == PARTS
    assert all(value >= 0 for value in parts.values())
    assert sum(parts[part] for part in ("decode", "preprocess", "wait", "run")) <= parts["total"] + 0.01


def test_logits_come_when_asked_for():
    with running(Scripted()) as started:
        _, _, answer = ask(started, path="/predict?logits=1", body=png(3))
    assert answer["logits"] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_jpeg_and_colour_are_taken_and_the_image_reaches_the_engine_as_preprocessed():
    seen = []

    def engine(images):
        seen.append(images)
        return np.zeros((len(images), 10), np.float32)

    buffer = io.BytesIO()
    Image.new("RGB", (64, 40), (255, 255, 255)).save(buffer, "JPEG")
    with running(engine) as started:
        assert ask(started, body=buffer.getvalue())[0] == 200
    (images,) = seen
    assert images.dtype == np.float32
    assert images.shape == (1, 1, 8, 8)
    np.testing.assert_allclose(images, 1, atol=0.02)


def test_requests_share_batches_and_everybody_gets_their_own_answer():
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=4) as started:
        first = Asking(started, body=png(9))
        assert engine.entered.acquire(timeout=10)
        others = [Asking(started, body=png(label)) for label in range(6)]
        until(lambda: gauge(started, "dlcases_queue_length") == 6)
        assert gauge(started, "dlcases_batch_running") == 1
        engine.gate.release(100)
        answers = [one.result()[2] for one in (first, *others)]
    assert [answer["class"] for answer in answers] == [9, 0, 1, 2, 3, 4, 5]
    assert sorted(engine.sizes) in ([1, 2, 4], [1, 1, 1, 4])  # the first two may start alone on a busy machine
    assert engine.sizes[:2] == [1, 4]


def test_a_full_batch_goes_at_once_and_a_partial_one_after_the_longest_wait():
    engine = Scripted()
    with running(engine, max_batch=2, max_wait_s=30.0) as started:
        both = [Asking(started, body=png(1)), Asking(started, body=png(2))]
        assert [one.result()[2]["batch_size"] for one in both] == [2, 2]
    with running(engine, max_batch=2, max_wait_s=0.05) as started:
        answer = ask(started, body=png(1))[2]
    assert answer["batch_size"] == 1
    assert answer["latency_ms"]["wait"] >= 49


def test_a_full_queue_refuses_with_503_and_when_to_come_again():
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=2, queue_bound=2) as started:
        runs = Asking(started, body=png(1))
        assert engine.entered.acquire(timeout=10)
        waiting = [Asking(started, body=png(2)) for _ in range(2)]
        until(lambda: gauge(started, "dlcases_queue_length") == 2)
        status, headers, answer = ask(started, body=png(3))
        assert status == 503
        assert int(headers["Retry-After"]) >= 1
        assert "queue is full, 2 images wait" in answer["error"]
        engine.gate.release(100)
        assert [one.result()[0] for one in (runs, *waiting)] == [200, 200, 200]
        assert ask(started, body=png(4))[0] == 200, "there is room again"
    assert sum(engine.sizes) == 4


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not an image"),
        (b"garbage" * 100, "not an image"),
        (png(3)[:-30], "not an image"),
        (png(3)[:40], "not an image"),
        (bomb_png(60_000), "60000 x 60000 pixels"),
        (bomb_png(8000), "8000 x 8000 pixels"),
    ],
    ids=["empty", "garbage", "end cut off", "cut in the head", "bomb", "smaller bomb"],
)
def test_a_bad_image_is_400_with_the_reason_and_leaves_its_place(body, told):
    engine = Scripted()
    with running(engine, queue_bound=4) as started:
        for _ in range(6):
            status, _, answer = ask(started, body=body)
            assert status == 400
            assert told in answer["error"]
        assert gauge(started, "dlcases_queue_length") == 0
        assert ask(started, body=png(1))[0] == 200
    assert engine.sizes == [1], "no bad image reached the model"


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "WEBP"])
def test_other_formats_stay_closed(kind):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, kind)
    with running(Scripted()) as started:
        assert ask(started, body=buffer.getvalue())[0] == 400


def test_an_image_above_the_pixel_limit_is_400():
    with running(Scripted(), pixels=100) as started:
        assert ask(started, body=png(1, side=10))[0] == 200
        assert ask(started, body=png(1, side=11))[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/predict", 405, "POST"),
        ("PUT", "/predict", 405, "POST"),
        ("DELETE", "/healthz", 405, "GET"),
        ("POST", "/metrics", 405, "GET"),
        ("BREW", "/predict", 405, "POST"),
        ("GET", "/", 404, None),
        ("POST", "/predict/more", 404, None),
    ],
)
def test_wrong_methods_and_pages(method, path, status, allow):
    with running(Scripted()) as started:
        got, headers, answer = ask(started, method, path, body=b"x" if method in ("POST", "PUT") else None)
    assert got == status
    assert headers["Allow"] == allow
    assert set(answer) == {"error"}


def test_a_form_is_415_and_says_how_to_send():
    with running(Scripted()) as started:
        status, _, answer = ask(started, body=png(1), headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert status == 415
    assert "--data-binary" in answer["error"]


@pytest.mark.parametrize("factor", [1.01, 3, 20])
def test_a_body_above_the_cap_is_413_announced_or_not(factor):
    body = bytes(int(factor * 100_000))

    def parts():
        for first in range(0, len(body), 4096):
            yield body[first : first + 4096]

    with running(Scripted(), body_bytes=100_000) as started:
        for sent in (body, parts()):  # the second one goes in chunks, without a length
            connection = http.client.HTTPConnection(*address(started), timeout=20)
            try:
                connection.request("POST", "/predict", sent)
                assert connection.getresponse().status == 413
            except (BrokenPipeError, ConnectionResetError):
                assert factor == 20, "a body that is not absurd is read to its end"
            finally:
                connection.close()
        assert ask(started, body=png(1))[0] == 200
        assert gauge(started, "dlcases_queue_length") == 0


def test_a_body_of_exactly_the_cap_is_taken():
    image = png(5)
    with running(Scripted(), body_bytes=len(image)) as started:
        assert ask(started, body=image)[2]["class"] == 5


def test_all_bodies_together_are_bounded():
    with running(Scripted(), body_bytes=60_000, bodies_bytes=100_000) as started, raw(started) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + bytes(59_000))
        time.sleep(0.1)
        status, headers, answer = ask(started, body=bytes(50_000))
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "too many bodies" in answer["error"]
        slow.close()
        until(lambda: ask(started, body=bytes(50_000))[0] == 400)


def test_a_slow_body_is_408_and_holds_no_place():
    with running(Scripted(), queue_bound=4, body_timeout_s=0.2) as started, raw(started) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + bytes(10))
        assert ask(started, body=png(1))[0] == 200
        assert gauge(started, "dlcases_queue_length") == 0
        assert b"408" in received(slow).split(b"\r\n")[0]


def test_bytes_that_are_no_http_end_their_connection_only():
    with running(Scripted()) as started:
        for nonsense in (
            b"\x00\x01\x02\r\n\r\n",
            b"GET\r\n\r\n",
            b"POST /predict HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        ):
            with raw(started) as connection:
                connection.sendall(nonsense)
                assert b"200 OK" not in received(connection)
        with raw(started) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40_000 + b"\r\n\r\n")
            assert b"200 OK" not in received(connection)
        assert ask(started, "GET", "/healthz")[0] == 200


def test_a_client_that_leaves_gives_its_place_back():
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=1, queue_bound=1) as started:
        runs = Asking(started, body=png(1))
        assert engine.entered.acquire(timeout=10)
        with raw(started) as leaving:
            image = png(2)
            leaving.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(image) + image)
            until(lambda: gauge(started, "dlcases_queue_length") == 1)
        until(lambda: gauge(started, "dlcases_queue_length") == 0)
        stays = Asking(started, body=png(3))
        until(lambda: gauge(started, "dlcases_queue_length") == 1)
        engine.gate.release(100)
        assert [one.result()[2]["class"] for one in (runs, stays)] == [1, 3]
        assert 'code="499"} 1' in ask(started, "GET", "/metrics")[2]
    assert engine.sizes == [1, 1], "what nobody waits for is not run"


def test_no_answer_in_time_is_504_and_is_not_run_later():
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=1, request_timeout_s=0.2) as started:
        runs = Asking(started, body=png(1))
        assert engine.entered.acquire(timeout=10)
        status, headers, answer = ask(started, body=png(2))
        assert status == 504
        assert headers["Retry-After"] == "1"
        assert "0.2 s" in answer["error"]
        assert runs.result()[0] == 504, "its batch still runs, but nobody waits for ever"
        engine.gate.release(100)
        assert ask(started, body=png(3))[2]["class"] == 3
    assert engine.sizes == [1, 1]


def test_a_failing_engine_is_500_for_its_batch_and_the_next_one_runs():
    engine = Scripted()
    engine.failure = RuntimeError("out of\nmemory")
    with running(engine) as started:
        status, _, answer = ask(started, body=png(1))
        assert status == 500
        assert answer == {"error": "the model failed: out of memory"}
        engine.failure = None
        assert ask(started, body=png(1))[0] == 200


def test_decoding_and_running_do_not_block_the_other_pages():
    engine = Scripted(open_gate=False)
    with running(engine) as started:
        waiting = Asking(started, body=png(1))
        assert engine.entered.acquire(timeout=10)
        assert ask(started, "GET", "/healthz")[2] == {"status": "ok"}
        engine.gate.release(100)
        assert waiting.result()[0] == 200


def test_metrics_are_valid_prometheus_text_and_count_what_happened():
    parser = pytest.importorskip("prometheus_client.parser", reason="the reference parser comes with Jupyter")
    with running(Scripted()) as started:
        for label in range(5):
            ask(started, body=png(label))
        ask(started, body=b"garbage")
        _, headers, text = ask(started, "GET", "/metrics")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    answers = {sample.labels["code"]: sample.value for sample in families["dlcases_requests"].samples}
    assert answers == {"200": 5, "400": 1}
    latency = families["dlcases_latency_seconds"]
    assert latency.type == "histogram"
    for part in PARTS:
        buckets = [s.value for s in latency.samples if s.name.endswith("_bucket") and s.labels["part"] == part]
        assert buckets == sorted(buckets)
        assert buckets[-1] == 5
    (count,) = [s.value for s in families["dlcases_batch_size"].samples if s.name.endswith("_count")]
    assert count == 5
    assert families["process_resident_memory_bytes"].samples[0].value > 1e6
    for line in text.splitlines():
        assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2


def test_stopping_answers_whoever_was_accepted_and_refuses_the_rest():
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=2, max_wait_s=30.0) as started:
        accepted = [Asking(started, body=png(label)) for label in (1, 2, 3)]
        assert engine.entered.acquire(timeout=10)
        until(lambda: gauge(started, "dlcases_queue_length") == 1)
        kept = http.client.HTTPConnection(*address(started), timeout=20)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        loop = started.predictor._loop
        stopping = asyncio.run_coroutine_threadsafe(started.stop(), loop)
        until(lambda: started.predictor.stopping)
        kept.request("POST", "/predict", png(4))
        refused = kept.getresponse()
        assert refused.status == 503
        assert refused.headers["Connection"] == "close"
        assert "stopping" in json.loads(refused.read())["error"]
        with pytest.raises(OSError):
            socket.create_connection(address(started), timeout=5)
        engine.gate.release(100)
        assert sorted(one.result()[2]["class"] for one in accepted) == [1, 2, 3]
        assert stopping.result(20) is True
    assert engine.sizes == [2, 1], "the last one did not wait 30 s for company"


def test_one_connection_more_than_the_bound_is_told_503():
    with running(Scripted(), connections=2) as started:
        with raw(started) as one, raw(started) as two:
            for connection in (one, two):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"200 OK" in connection.recv(4096)
            status, headers, answer = ask(started, body=bytes(200_000))
            assert (status, headers["Retry-After"]) == (503, "1")
            assert "too many connections" in answer["error"]
        until(lambda: ask(started, body=png(1))[0] == 200)


def test_nothing_is_left_running():
    before = {thread.name for thread in threading.enumerate()}
    with running(Scripted()) as started:
        ask(started, body=png(1))
        assert started.url.startswith("http://127.0.0.1:")
    until(lambda: {thread.name for thread in threading.enumerate()} <= before)
    with pytest.raises(OSError):
        ask(started, "GET", "/healthz")


def test_a_queue_without_bound_and_a_taken_port_are_one_line():
    with pytest.raises(InputError, match="no bound: expected one"), service.running(Scripted(), service.Policy(1)):
        pass
    with pytest.raises(FileError, match=r"cannot listen on 192\.0\.2\.1 port 0 \(.*\): expected a free port"):
        service.running(Scripted(), service.Policy(1, 0, 1), host="192.0.2.1").__enter__()


def test_limits_are_checked():
    with pytest.raises(InputError, match="body_bytes"):
        Limits(body_bytes=0)
    with pytest.raises(InputError, match="request_timeout_s"):
        Limits(request_timeout_s=0)


def test_every_batch_size_is_run_once_before_the_first_request():
    engine = Scripted()
    with service.running(engine, service.Policy(3, 0, 8)):
        assert engine.sizes == [1, 2, 3]


def test_twice_the_load_loses_nobody():
    engine = Scripted(open_gate=False)
    stop = threading.Event()

    def pace() -> None:
        while not stop.wait(0.01):  # a batch of two every 10 ms at most
            engine.gate.release()

    pacer = threading.Thread(target=pace)
    pacer.start()
    try:
        with running(engine, max_batch=2, queue_bound=4) as started:
            asking = [Asking(started, body=png(number % 10)) for number in range(80)]
            results = [one.result() for one in asking]
            after = ask(started, body=png(1))[0]
    finally:
        stop.set()
        pacer.join()
        engine.gate.release(100)
    statuses = [status for status, _, _ in results]
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) == sum(engine.sizes) - 1
    for number, (status, _, answer) in enumerate(results):
        assert status == 503 or answer["class"] == number % 10
    assert after == 200


def test_the_helper_image_has_its_class():
    assert [int(np.argmax(Scripted()(np.full((1, 1, 8, 8), label / 10, np.float32)))) for label in range(10)] == list(
        range(10)
    )
    assert png(0) != png(1)


def test_the_answer_is_the_engines_own(random_models):
    pixels = np.random.default_rng(4).integers(0, 17, (12, 8, 8)).astype(np.uint8)
    engine = engines.open_engine(random_models / artefacts.FP32)
    shown = np.rint(pixels * (255 / 16)).astype(np.uint8)
    expected = engine.run((shown[:, None] / np.float32(255)).astype(np.float32))
    assert len(set(expected.argmax(axis=1))) > 1
    with running(engine.run) as started:
        for image, logits in zip(shown, expected, strict=True):
            buffer = io.BytesIO()
            Image.fromarray(image).save(buffer, "PNG")
            _, _, answer = ask(started, path="/predict?logits=1", body=buffer.getvalue())
            np.testing.assert_allclose(answer["logits"], logits, rtol=1e-4, atol=1e-4)
            assert answer["class"] == logits.argmax()


def test_it_listens_where_it_is_told():
    with service.running(Scripted(), service.Policy(1, 0, 4), warm_up=False, host="localhost") as started:
        assert ask(started, "GET", "/healthz")[0] == 200
