"""Questions with several arguments, and answers that are lists: what goes in, what comes out, what nobody believes."""

import json
from fractions import Fraction

import numpy as np
import pytest

from grading.sandbox import answers
from grading.sandbox.behind_wall import coerce
from grading.sandbox.box import open_box
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call, Cell
from grading.sandbox.wall.plan import IsolationUnavailable


@pytest.fixture(scope="module")
def box():
    try:
        with open_box(Limits(seconds_per_cell=10)) as opened:
            yield opened
    except IsolationUnavailable as reason:
        pytest.skip(str(reason))


def _ask(box, source: str, container: str = "list") -> dict:
    call = Call("a", container=container, function="f", arguments=([1, 0, 2], [1, 1, 2], 3))
    return box.run([Cell("one", source)], None, [call]).answers["a"]


def test_all_arguments_arrive_in_their_order_and_a_list_comes_back(box):
    answer = _ask(box, "def f(p, l, k):\n    return [sum(p), sum(l), k, None, float('nan')]")
    assert answer["items"] == [3, 4, 3, None, None]
    assert answer["returned"] == "list"
    assert answer["samples_after"] == [1, 0, 2, 1, 1, 2]


@pytest.mark.parametrize(("container", "kind"), [("list", "list"), ("tuple", "tuple"), ("numpy_int", "ndarray")])
def test_every_sequence_comes_in_the_container_and_a_number_stays_one(box, container, kind):
    source = "def f(p, l, k):\n    return [type(p).__name__ == '%s' and type(l) is type(p), type(k).__name__ == 'int']"
    answer = _ask(box, source % kind + "\nold = f\nf = lambda p, l, k: [int(x) for x in old(p, l, k)]", container)
    assert answer["items"] == [1, 1]


def test_a_change_of_any_argument_shows(box):
    answer = _ask(box, "def f(p, l, k):\n    l[0] = 7\n    return []")
    assert answer["samples_after"] == [1, 0, 2, 7, 1, 2]


def test_a_question_of_the_older_form_is_asked_as_before(box):
    source = "def latency_stats(samples_us, batch_size):\n    return {'n': len(samples_us) * batch_size}"
    answer = box.run([Cell("one", source)], None, [Call("a", [1.0, 2.0], 4)]).answers["a"]
    assert answer["value"]["n"] == 8
    assert answer["items"] is None


def test_members_become_numbers_nothing_or_the_name_of_their_type():
    values = [1, 2.5, None, float("nan"), float("inf"), "text", True, Fraction(1, 4), np.float32(0.5), [1]]
    assert coerce.items(values) == [1, 2.5, None, None, "inf", "str", "bool", 0.25, 0.5, "list"]
    assert coerce.items(np.array([0.5, np.nan])) == [0.5, None]
    assert coerce.items(np.eye(2)) is None
    for no_list in (3, "abc", {"a": 1}, {1, 2}, None, np.float64(2)):
        assert coerce.items(no_list) is None
    assert len(coerce.items(list(range(5000)))) == coerce.MOST_ITEMS + 1


def test_a_list_cannot_lie_about_its_members():
    class Liar(list):
        def __iter__(self):
            return iter([1.0])

    assert coerce.items(Liar([2, 3])) == [2, 3]


@pytest.mark.parametrize("sent", ["x", 3, {"a": 1}])
def test_items_that_are_no_list_are_dropped_outside(sent):
    line = json.dumps({"ok": True, "returned": "list", "items": sent}).encode()
    assert answers.checked(line, frozenset(), 5)["items"] is None


def test_names_that_the_source_does_not_hold_and_long_lists_are_cut_outside():
    line = json.dumps({"ok": True, "items": ["Secret42", 1, None, [2], *range(9999)]}).encode()
    checked = answers.checked(line, answers.known_names([]), 5)["items"]
    assert checked[:4] == ["a class of its own", 1, None, None]
    assert len(checked) < 1100
