"""Evidence folders, whole and tampered with: which items they earn."""

import importlib.util
import json
from pathlib import Path

import pytest

from grading.cli import main
from grading.judging.evidence import RELEASE
from grading.judging.items import EVIDENCE_ITEMS

ATTACKS = sorted((Path(__file__).parents[2] / "submissions" / "attacks" / "evidence").glob("*.py"))


def finding(area, **more):
    return {
        "area": area,
        "file": "benchmark.json",
        "pointer": "/a/0",
        "message": "is 3: expected 4",
        "redo": "redo",
    } | more


def points(items):
    return {item.id: item.points for item in items}


def test_no_finding_earns_every_point():
    items, flags = RELEASE.judge_record([], {"runs": []})
    assert points(items) == EVIDENCE_ITEMS
    assert flags == []


@pytest.mark.parametrize("area", [*EVIDENCE_ITEMS, "regression"])
def test_a_finding_costs_the_item_of_its_area_and_no_other(area):
    items, _ = RELEASE.judge_record([finding(area)], {"runs": []})
    lost = {item.id for item in items if not item.points}
    assert lost == {"release_limits" if area == "regression" else area}
    message = next(item.message for item in items if not item.points)
    assert message == "benchmark.json at /a/0: is 3: expected 4; redo."


@pytest.mark.parametrize("area", ["weights", "report", "target_benchmark", "package", None])
def test_files_beside_the_evidence_cost_nothing(area):
    assert points(RELEASE.judge_record([finding(area)], {"runs": []})[0]) == EVIDENCE_ITEMS


def test_many_findings_stay_readable():
    found = [finding("benchmark_record", message=f"number {k}\n\x1b[31m" + "x" * 5000) for k in range(50)]
    message = RELEASE.judge_record(found, {"runs": []})[0][0].message
    assert len(message) < 1400
    assert message.endswith("And 47 more like this.")
    assert message.isprintable()


def test_a_record_that_cannot_be_read_earns_nothing_even_if_nothing_was_found():
    items, _ = RELEASE.judge_record([], None)
    assert {item.id for item in items if item.points} == {"release_linkage", "release_limits", "release_claims"}


class Box:
    """Stands in for the sandbox: each call of compute takes the next answer."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def compute(self, _name, _folder):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_lost_sandbox_is_tried_again(tmp_path):
    from grading.sandbox.box import ComputeFailed

    (tmp_path / "benchmark.json").write_text(json.dumps({"runs": []}))
    items, flags = RELEASE.judge(tmp_path, Box(ComputeFailed("lost"), []))
    assert points(items) == EVIDENCE_ITEMS
    assert flags == []


def test_evidence_that_ends_every_check_earns_nothing_and_is_flagged(tmp_path):
    from grading.sandbox.box import ComputeFailed

    items, flags = RELEASE.judge(tmp_path, Box(ComputeFailed("it hung"), ComputeFailed("it hung")))
    assert set(points(items).values()) == {0}
    assert [flag.id for flag in flags] == ["evidence-not-checked"]
    items, flags = RELEASE.judge(tmp_path, Box("text", [1, 2]))
    assert set(points(items).values()) == {0}


def test_without_a_folder_nothing_is_earned(tmp_path):
    items, _ = RELEASE.judge(tmp_path / "none", Box())
    assert set(points(items).values()) == {0}
    assert "no evidence folder" in items[0].message


# --- behind the wall -------------------------------------------------------------------------------------------------


def check(folder, capsys):
    assert main(["check-evidence", str(folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_real_evidence_earns_everything_without_a_flag(real_evidence, capsys):
    answer = check(real_evidence, capsys)
    assert {item["id"]: item["points"] for item in answer["items"]} == EVIDENCE_ITEMS
    assert (answer["points"], answer["max_points"]) == (16, 16)
    assert answer["isolation"]["kind"] in ("bubblewrap", "landlock")
    record = json.loads((real_evidence / "benchmark.json").read_text())
    assert RELEASE.judge_record([], record)[1] == []


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_tampered_evidence_loses_the_item_that_its_case_names(path, evidence, capsys):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.tamper(evidence)
    answer = check(evidence, capsys)
    failed = {item["id"] for item in answer["items"] if not item["passed"]}
    assert module.__doc__.split("fails: ")[1].strip() in failed
    if path.stem == "string_booleans":
        assert failed == {"release_claims"}
    assert not list(Path.cwd().glob("PLANTED*"))


@pytest.mark.slow
def test_an_empty_folder_earns_nothing(tmp_path, capsys):
    answer = check(tmp_path, capsys)
    assert answer["points"] == 0
    assert all(item["message"] for item in answer["items"])


def test_a_submission_that_holds_the_folder_will_do(evidence, capsys):
    assert check(evidence.parent, capsys)["points"] == 16


@pytest.mark.parametrize("make", [lambda _: None, lambda path: path.write_text("x")], ids=["missing", "a file"])
def test_no_folder_is_one_line(tmp_path, capsys, make):
    path = tmp_path / "evidence"
    make(path)
    assert main(["check-evidence", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
