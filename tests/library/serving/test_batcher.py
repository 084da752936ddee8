"""When a batch starts: the rule in scripted time, and the thread that follows it."""

import io
import threading

import numpy as np
import pytest

from deep_learning_cases.batching.queueing import Policy
from deep_learning_cases.serving.batcher import Batcher, delay_s
from deep_learning_cases.serving.reasons import reason
from tests.library.served import Scripted, until

IMAGE = np.zeros((1, 8, 8), np.float32)


@pytest.mark.parametrize(
    ("ready", "oldest_s", "now_s", "draining", "expected"),
    [
        (0, 0.0, 9.0, False, None),
        (0, 0.0, 9.0, True, None),
        (1, 5.0, 5.0, False, 0.5),
        (3, 5.0, 5.25, False, 0.25),
        (3, 5.0, 5.5, False, 0.0),
        (1, 5.0, 7.0, False, -1.5),
        (4, 5.0, 5.0, False, 0.0),
        (9, 5.0, 5.0, False, 0.0),
        (1, 5.0, 5.0, True, 0.0),
    ],
)
def test_a_batch_starts_when_full_or_when_its_oldest_has_waited(ready, oldest_s, now_s, draining, expected):
    assert delay_s(Policy(4, 0.5, 16), ready, oldest_s, now_s, draining) == expected


class _Collected:
    def __init__(self, engine, policy, **options) -> None:
        self.done: list = []
        self.batcher = Batcher(engine, policy, self.done.extend, **options)

    def add(self, context=None):
        request = self.batcher.admit(context)
        self.batcher.ready(request, IMAGE)
        return request

    def finish(self) -> None:
        self.batcher.close()
        assert self.batcher.join(10)


def test_a_full_batch_starts_at_once_however_long_the_wait():
    engine = Scripted()
    run = _Collected(engine, Policy(3, 1000.0, 16))
    for name in "abc":
        run.add(name)
    until(lambda: len(run.done) == 3)
    assert engine.sizes == [3]
    assert [request.context for request, _ in run.done] == ["a", "b", "c"]
    run.finish()


def test_a_partial_batch_waits_for_its_time_and_not_longer():
    now = [10.0]
    engine = Scripted()
    run = _Collected(engine, Policy(3, 5.0, 16), clock=lambda: now[0])
    run.add("early")
    now[0] = 14.9
    run.add("late")  # notices nothing: the oldest has waited 4.9 of 5 s
    assert not engine.entered.acquire(timeout=0.05)
    now[0] = 15.0
    with run.batcher._changed:
        run.batcher._changed.notify()  # what the timeout of the wait does in real time
    until(lambda: len(run.done) == 2)
    assert engine.sizes == [2]
    assert all(outcome.started_s == 15.0 for _, outcome in run.done)
    run.finish()


def test_while_a_batch_runs_the_next_one_gathers_in_order():
    engine = Scripted(open_gate=False)
    run = _Collected(engine, Policy(4, 0.0, 16))
    run.add(0)
    assert engine.entered.acquire(timeout=10)
    for number in range(1, 7):
        run.add(number)
    assert (run.batcher.waiting, run.batcher.running) == (6, 1)
    engine.gate.release(10)
    until(lambda: len(run.done) == 7)
    assert engine.sizes == [1, 4, 2]
    assert [request.context for request, _ in run.done] == list(range(7))
    run.finish()


def test_the_bound_counts_who_waits_and_not_who_runs():
    engine = Scripted(open_gate=False)
    run = _Collected(engine, Policy(1, 0.0, 2))
    run.add()
    assert engine.entered.acquire(timeout=10)
    first, second = run.batcher.admit(), run.batcher.admit()
    assert first is not None
    assert second is not None
    assert run.batcher.admit() is None
    assert run.batcher.withdraw(first)
    third = run.batcher.admit()
    assert third is not None
    assert not run.batcher.withdraw(first), "a place is given back once"
    engine.gate.release(10)
    run.batcher.withdraw(second)
    run.batcher.withdraw(third)
    run.finish()


def test_a_withdrawn_request_does_not_run():
    engine = Scripted(open_gate=False)
    run = _Collected(engine, Policy(4, 0.0, 16))
    running = run.add("running")
    assert engine.entered.acquire(timeout=10)
    gone, stays = run.add("gone"), run.add("stays")
    assert run.batcher.withdraw(gone)
    assert not run.batcher.withdraw(running), "its batch already runs"
    engine.gate.release(10)
    until(lambda: len(run.done) == 2)
    assert engine.sizes == [1, 1]
    assert [request for request, _ in run.done] == [running, stays]
    run.finish()


def test_closing_serves_whoever_was_admitted_without_waiting_for_more():
    engine = Scripted()
    run = _Collected(engine, Policy(8, 1000.0, 16))
    undecoded = run.batcher.admit("undecoded")
    run.add("ready")
    run.batcher.close()
    assert run.batcher.admit() is None
    until(lambda: len(run.done) == 1)
    run.batcher.ready(undecoded, IMAGE)
    assert run.batcher.join(10)
    assert [request.context for request, _ in run.done] == ["ready", "undecoded"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (np.full((1, 10), np.nan, np.float32), "not finite"),
        (np.zeros((2, 10), np.float32), "shape"),
        (np.zeros(10, np.float32), "shape"),
        ("nonsense", "could not convert"),
    ],
)
def test_a_wrong_answer_of_the_engine_is_an_error_and_not_the_end(answer, told):
    answers = [answer, np.zeros((1, 10), np.float32)]
    run = _Collected(lambda _images: answers.pop(0), Policy(1, 0.0, 4))
    run.add()
    run.add()
    until(lambda: len(run.done) == 2)
    (_, broken), (_, fine) = run.done
    assert broken.logits is None
    assert told in broken.error
    assert fine.error is None
    run.finish()


def test_logits_survive_an_engine_that_uses_its_buffer_again():
    buffer = np.zeros((1, 10), np.float32)

    def engine(_images):
        buffer[...] += 1
        return buffer

    run = _Collected(engine, Policy(1, 0.0, 4))
    run.add()
    run.add()
    run.finish()
    assert [outcome.logits[0] for _, outcome in run.done] == [1, 2]


def test_no_thread_is_left():
    before = threading.active_count()
    run = _Collected(Scripted(), Policy(1, 0.0, 4))
    assert threading.active_count() == before + 1
    run.finish()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("out of\n memory"), "out of memory"),
        (ValueError(f"cannot read {object()!r} here"), "cannot read (a object) here"),
        (ValueError(repr(io.BytesIO())), "(a _io.BytesIO)"),
        (OSError("fault at 0x7fd5bf3d9650"), "fault at (an address)"),
        (RuntimeError(), "RuntimeError"),
        (RuntimeError("x" * 1000), "x" * 197 + "..."),
    ],
)
def test_what_an_exception_says_is_one_line_without_addresses(error, told):
    assert reason(error) == told
