"""The judge of the latency lab's evidence, with findings that are made up and one box that fails."""

from dataclasses import asdict

import pytest

from deep_learning_cases.latency.policy_record import AREAS, check
from grading.judging.evidence import LATENCY
from grading.judging.items import POLICY_ITEMS
from grading.sandbox.box import ComputeFailed


class _Box:
    """Answers as a box would: each entry of ``answers`` in turn, raised if it is an exception."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def compute(self, name, folder):
        self.asked.append((name, folder))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _finding(area, message="is wrong"):
    return {"area": area, "file": "policy.json", "pointer": "/verdict", "message": message, "redo": "look again"}


def test_the_items_are_the_areas_of_the_check():
    assert list(POLICY_ITEMS) == list(AREAS)


def test_nothing_found_earns_everything_with_a_sentence_each():
    items = LATENCY.items_for([])
    assert {item.id: item.points for item in items} == POLICY_ITEMS
    assert all(item.passed and len(item.message) > 40 for item in items)


@pytest.mark.parametrize("area", AREAS)
def test_a_finding_costs_its_own_item_only(area):
    items = LATENCY.items_for([_finding(area)])
    assert [item.id for item in items if not item.passed] == [area]
    lost = next(item for item in items if item.id == area)
    assert lost.points == 0
    assert lost.message == "policy.json at /verdict: is wrong; look again."


def test_messages_are_one_bounded_line_whatever_the_file_says():
    items = LATENCY.items_for([_finding("policy_claims", "x\n\x1b[31m" * 999)] * 5)
    message = next(item.message for item in items if item.id == "policy_claims")
    assert message.isprintable()
    assert len(message) < 1400
    assert message.endswith("And 2 more like this.")


def test_a_folder_is_checked_behind_the_wall(tmp_path):
    box = _Box([_finding("policy_claims")])
    assert sum(item.points for item in LATENCY.judge(tmp_path, box)[0]) == 6
    assert box.asked == [("deep_learning_cases.latency.policy_record:check", tmp_path)]


def test_a_box_that_was_lost_once_is_asked_again(tmp_path):
    box = _Box(ComputeFailed("gone"), [])
    assert sum(item.points for item in LATENCY.judge(tmp_path, box)[0]) == 8


@pytest.mark.parametrize("answer", [ComputeFailed("it hung"), None, {"a": 1}, ["text"]])
def test_no_answer_earns_nothing(tmp_path, answer):
    items, _ = LATENCY.judge(tmp_path, _Box(answer, answer))
    assert sum(item.points for item in items) == 0
    assert all("could not be checked" in item.message for item in items)


def test_no_folder_earns_nothing_and_asks_nobody(tmp_path):
    items, _ = LATENCY.judge(tmp_path / "none", _Box())
    assert sum(item.points for item in items) == 0


def test_findings_of_the_real_check_fit_the_judge(tmp_path):
    items = LATENCY.items_for([asdict(finding) for finding in check(tmp_path)])
    assert [item.points for item in items] == [0, 0, 0]
