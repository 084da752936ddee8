"""The load generator: when requests are meant to start, what counts as latency, and that every request has an end."""

import asyncio
import contextlib
import signal
import socket
import threading
import time

import numpy as np
import pytest

from deep_learning_cases import load
from deep_learning_cases.batching.service_times import read_measured
from deep_learning_cases.errors import InputError
from deep_learning_cases.ground import files
from deep_learning_cases.latency import over_http
from deep_learning_cases.serving.load import report, starts
from deep_learning_cases.serving.load.client import target
from deep_learning_cases.serving.load.send import Fate
from deep_learning_cases.serving.predictor import PARTS
from tests.library.served import Scripted, png, running


def fate(intended_s, sent_s, done_s, status="200", batch_size=1):
    parts = dict.fromkeys(PARTS, 0.5) if status == "200" else {}
    return Fate(intended_s, sent_s, done_s, status, batch_size if parts else None, parts)


# When requests start


def test_constant_starts_are_a_metronome():
    assert starts.intended_starts_s("constant", 4, 1.5).tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


@pytest.mark.parametrize("arrivals", ["poisson", "bursts", "bursts:50"])
def test_random_starts_are_seeded_in_order_and_about_as_many_as_asked(arrivals):
    times = starts.intended_starts_s(arrivals, 500, 40, seed=3)
    assert abs(len(times) - 20_000) < 6 * np.sqrt(20_000 * (50 if arrivals == "bursts:50" else 10))
    assert (np.diff(times) >= 0).all()
    assert times[-1] < 40
    assert np.array_equal(times, starts.intended_starts_s(arrivals, 500, 40, seed=3))
    assert not np.array_equal(times[:9], starts.intended_starts_s(arrivals, 500, 40, seed=4)[:9])


def test_bursts_come_together():
    times = starts.intended_starts_s("bursts:7", 100, 10)
    assert set(np.unique(times, return_counts=True)[1]) == {7}


def test_starts_from_a_file(tmp_path):
    (tmp_path / "starts.txt").write_text("# recorded on Monday\n0\n0.5  # first\n\n0.5\n7.25\n")
    assert starts.intended_starts_s(str(tmp_path / "starts.txt"), None, 60).tolist() == [0, 0.5, 0.5, 7.25]
    assert starts.intended_starts_s(str(tmp_path / "starts.txt"), None, 7).tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("text", ["", "0\nx\n", "1\n0.5\n", "-1\n", "nan\n", "\xff\n"])
def test_a_file_that_holds_no_starts_is_one_line(tmp_path, text):
    (tmp_path / "starts.txt").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"starts\.txt holds"):
        starts.intended_starts_s(str(tmp_path / "starts.txt"), None, 60)


@pytest.mark.parametrize(
    ("arrivals", "rate", "seconds", "told"),
    [
        ("poisson", None, 1, "there is no rate"),
        ("poisson", 0, 1, "rate"),
        ("poisson", float("nan"), 1, "rate"),
        ("constant", 5, 0, "seconds"),
        ("constant", 5, 1e9, "seconds is 1000000000.0: .* at most 3600"),
        ("constant", 1e6, 3600, "expected at most 1000000 requests"),
        ("bursts:x", 5, 1, "bursts:SIZE"),
        ("bursts:0", 5, 1, "burst size"),
        ("poisson:3", 5, 1, "expected poisson, constant"),
        ("weekly", 5, 1, "an existing file"),
    ],
)
def test_nonsense_is_refused_with_the_reason(arrivals, rate, seconds, told):
    with pytest.raises(InputError, match=told):
        starts.intended_starts_s(arrivals, rate, seconds)


# Where it may go


@pytest.mark.parametrize("url", ["http://127.0.0.1:80", "http://localhost:1234/", "http://[::1]:5", "http://127.9.9.9"])
def test_loopback_targets_are_taken(url):
    with contextlib.suppress(OSError):  # a machine without IPv6
        assert target(url).path == "/predict"


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "http://0.0.0.0:80", "http://10.0.0.1/predict"])
def test_another_machine_is_refused_before_anything_is_sent(url):
    with pytest.raises(InputError, match=r"not this machine.*--allow-remote"):
        load.send(url, [b"x"], concurrency=1)
    assert target(url, allow_remote=True).port == 80


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "https://127.0.0.1", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999",
            "http://user@127.0.0.1", "http://127.0.0.1/a\r\nHost: x", "http://127.0.0.1/a b"],
)  # fmt: skip
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="the URL is"):
        target(url)


def test_a_path_of_ones_own_is_kept():
    assert target("http://127.0.0.1:80/v1/predict?logits=1").path == "/v1/predict?logits=1"


# What is sent


def test_an_open_loop_sends_every_request_and_knows_its_fate():
    engine = Scripted()
    with running(engine, max_batch=4, queue_bound=100) as started:
        starts_s = starts.intended_starts_s("poisson", 200, 0.5, 1)
        fates = load.send(started.url, [png(1), png(2)], starts_s=starts_s)
    assert [one.intended_s for one in fates] == starts_s.tolist()
    assert {one.status for one in fates} == {"200"}
    assert sum(engine.sizes) == len(fates)
    for one in fates:
        assert one.intended_s <= one.sent_s + 1e-6
        assert one.sent_s < one.done_s
        assert set(one.server_ms) == set(PARTS)
        assert 1 <= one.batch_size <= 4


def test_an_open_loop_does_not_wait_for_answers_and_a_closed_one_does():
    def open_late(engine) -> threading.Thread:
        def wait() -> None:
            assert engine.entered.acquire(timeout=10)
            time.sleep(0.5)
            engine.gate.release(1000)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    with running(engine := Scripted(open_gate=False), max_batch=1, queue_bound=50) as started:
        opener = open_late(engine)
        starts_s = np.arange(20) / 100  # all are due long before the gate opens
        fates = load.send(started.url, [png(1)], starts_s=starts_s)
        opener.join()
    assert max(one.sent_s for one in fates) < min(one.done_s for one in fates)

    with running(engine := Scripted(open_gate=False), max_batch=1, queue_bound=50) as started:
        opener = open_late(engine)
        fates = load.send(started.url, [png(1)], starts_s=starts_s, concurrency=2)
        opener.join()
    summary = report.summary(fates)
    assert sum(one.sent_s < min(other.done_s for other in fates) for one in fates) == 2
    # Eighteen requests were due while both clients waited: the intended start knows it, the time of sending does not.
    assert summary["latency_ms"]["p50"]["value"] > 250
    assert summary["latency_from_send_ms"]["p50"]["value"] < 250
    assert summary["kept_up"] is False


@pytest.mark.slow
def test_a_closed_loop_has_so_many_requests_under_way_and_ends_in_time():
    with running(Scripted(), queue_bound=50) as started:
        fates = load.send(started.url, [png(1)], concurrency=3, seconds=0.3)
    assert {one.intended_s for one in fates} == {None}
    events = sorted([(one.sent_s, 1) for one in fates] + [(one.done_s, -1) for one in fates])
    assert max(np.cumsum([step for _, step in events])) <= 3
    assert max(one.sent_s for one in fates) < 0.3


@pytest.mark.slow
def test_progress_counts_what_has_ended(monkeypatch):
    monkeypatch.setattr(load, "PROGRESS_S", 0.05)
    told = []
    with running(Scripted(), queue_bound=50) as started:
        fates = load.send(started.url, [png(1)], concurrency=1, seconds=0.5, progress=told.append)
    assert told == sorted(told)
    assert 1 <= told[-1] <= len(fates)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop", [{"starts_s": np.array([0.0, 0.01, 30.0])}, {"concurrency": 2}], ids=["open", "closed"]
)
def test_ctrl_c_keeps_what_was_sent_and_what_became_of_it(loop):
    engine = Scripted(open_gate=False)
    with running(engine, max_batch=1) as started:
        answered = threading.Event()

        def interrupt():
            engine.gate.release()  # one request is answered, the others never
            assert answered.wait(20)
            signal.raise_signal(signal.SIGINT)

        def told(ended):
            if ended:
                answered.set()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(load.LoadInterrupted) as stopped:
            load.send(started.url, [png(1)], progress=told, **loop)
        thread.join()
        engine.gate.release(100)
    kinds = [one.status for one in stopped.value.fates]
    assert kinds.count("200") == 1
    assert kinds.count(load.INTERRUPTED) >= 1
    assert set(kinds) == {"200", load.INTERRUPTED}
    assert all(one.done_s >= one.sent_s for one in stopped.value.fates)
    summary = report.summary(stopped.value.fates, interrupted=True)
    assert summary["latency_ms"]["n"] == 1


def test_ctrl_c_before_anything_was_sent_is_only_ctrl_c(monkeypatch):
    async def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("deep_learning_cases.serving.load.client.Client.connect", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        load.send("http://127.0.0.1:9", [b"x"], concurrency=1)
    assert type(stopped.value) is KeyboardInterrupt


def test_refusals_timeouts_and_bad_images_are_fates_too():
    with running(engine := Scripted(open_gate=False), max_batch=1, queue_bound=1) as started:
        fates = load.send(
            started.url, [png(1), png(1), png(1), b"x"], starts_s=np.array([0, 0.1, 0.2, 0.3]), timeout_s=0.5
        )
        engine.gate.release(100)
    assert [one.status for one in fates] == ["timeout", "timeout", "503", "503"]
    with running(Scripted()) as started:
        assert load.send(started.url, [b"x"], starts_s=np.zeros(1))[0].status == "400"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", "connection lost"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "not an answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "connection lost"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "not HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "connection lost"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "503"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "204"),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n", "304"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "not an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", "connection lost"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", "302"),
    ],
)
def test_whatever_answers_the_request_has_an_end(answer, status):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):  # the first connection is opened beforehand and used; the loop ends with the server
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    connection.recv(4096)
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        fates = load.send(f"http://127.0.0.1:{server.getsockname()[1]}", [b"x"], starts_s=np.zeros(1), timeout_s=5)
    assert [one.status for one in fates] == [status]


def test_nobody_there_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(InputError, match=r"nobody answers at 127\.0\.0\.1 port .*: expected a running service"):
        load.send(f"http://127.0.0.1:{port}", [b"x"], concurrency=1, seconds=1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"concurrency": 0},
        {"concurrency": 10_000},
        {"concurrency": 1, "timeout_s": 0},
        {"concurrency": 1, "seconds": -1},
    ],
)
def test_a_load_that_makes_no_sense_is_refused(options):
    with pytest.raises(InputError):
        load.send("http://127.0.0.1:9", [b"x"], **options)


def test_the_precise_event_loop_keeps_timers_and_sockets():
    async def main():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.getsockname()[1])
        connection, _ = server.accept()
        loop = asyncio.get_running_loop()
        loop.call_later(0.003, connection.sendall, b"x")
        assert await asyncio.wait_for(reader.read(1), 10) == b"x"
        begun = loop.time()
        await asyncio.sleep(0.0035)
        assert loop.time() - begun >= 0.0035
        connection.close()
        writer.close()

    from deep_learning_cases.serving.load.client import event_loop

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(main())


# What the numbers say


def test_latency_counts_from_the_intended_start():
    fates = [fate(0.0, 0.0, 0.010), fate(0.1, 0.3, 0.310), fate(0.2, 0.2, 0.204, "503")]
    summary = report.summary(fates)
    assert summary["requests"] == 3
    assert summary["answered"] == 2
    assert summary["status"] == {"200": 2, "503": 1}
    assert summary["latency_ms"]["p95"]["value"] == pytest.approx(210)
    assert summary["latency_from_send_ms"]["p95"]["value"] == pytest.approx(10)
    assert summary["latency_ms"]["n"] == 2, "a refusal is quick, and no answer"
    assert summary["lateness_ms"]["max"] == pytest.approx(200)
    assert "1 of 3 requests were sent more than 5 ms late, the latest by 200.0 ms" in summary["warning"]


def test_a_generator_that_kept_up_is_not_warned_about():
    latencies = np.random.default_rng(0).exponential(0.002, 400).tolist()
    summary = report.summary([fate(k / 100, k / 100, k / 100 + latencies[k]) for k in range(400)])
    assert summary["kept_up"] is True
    assert summary["warning"] is None
    assert summary["intended_rate_per_s"] == pytest.approx(100)
    assert summary["latency_ms"]["p50"]["low"] is not None
    assert not [line for line in report.lines(summary) if "warning" in line]


def test_percentiles_of_too_few_requests_have_no_interval_and_the_table_says_why():
    summary = report.summary([fate(k / 10, k / 10, k / 10 + 0.01 * (1 + k % 3)) for k in range(30)])
    assert summary["latency_ms"]["p95"]["low"] is None
    (line,) = [line for line in report.lines(summary) if line.startswith("from the intended start")]
    assert "no interval: 30 requests" in line
    assert line.endswith("400 needed; send for longer")


def test_one_percent_late_is_let_pass_and_more_is_not():
    def one(late):
        return report.summary([fate(float(k), k + (0.1 if k < late else 0), k + 0.2) for k in range(100)])["kept_up"]

    assert one(1) is True
    assert one(2) is False


def test_a_load_without_answers_has_no_percentiles():
    summary = report.summary([fate(0.0, 0.0, 1.0, "timeout")])
    assert summary["latency_ms"] is None
    assert report.lines(summary)


def test_the_record_keeps_every_request_and_feeds_the_policy(tmp_path):
    fates = [fate(k / 10, k / 10, k / 10 + 0.05, batch_size=1 + k % 2) for k in range(10)]
    fates.append(fate(2.0, 2.0, 2.1, "503"))
    record = report.record(fates, {"seed": 1})
    files.write_json(tmp_path / "load.json", record)
    assert record["summary"]["interrupted"] is False
    assert {len(column) for column in record["requests"].values()} == {11}
    assert record["requests"]["batch_size"][-1] is None
    measured = read_measured(tmp_path / "load.json")["model"]
    assert {size: len(times) for size, times in measured.samples_s.items()} == {1: 5, 2: 5}
    assert measured.samples_s[1][0] == pytest.approx(0.0005)


# The boundary of the latency record


def test_the_service_boundary_gives_rows_of_the_record():
    class Engine:
        def run(self, images):
            return np.zeros((len(images), 10), np.float32)

    part = over_http.measure_service([1, 3], 16, "jpeg", warmups=2, trials=4, engine=Engine())
    assert set(part) == {"boundary", "image", "service", "results"}
    for size in (1, 3):
        row = part["results"][size]
        assert (row["warmups"], row["trials"], len(row["samples_ms"])) == (2, 4, 4)
        assert row["images_per_second"] > 0
        assert set(part["service"]["median_parts_ms"][str(size)]) == set(PARTS)


def test_the_service_boundary_in_a_process_of_its_own_leaves_nothing_behind():
    import psutil

    part = over_http.measure_service([2], 16, warmups=1, trials=2, engine="numpy")
    assert part["results"][2]["trials"] == 2
    assert not [child for child in psutil.Process().children() if "service_process" in " ".join(child.cmdline())]
