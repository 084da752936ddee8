"""Claims against the raw samples of the same record: what follows earns all, tampering costs the right item."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.quantizing.comparison import claims_record
from grading.judging.evidence import QUANTIZATION
from grading.judging.items import COMPARISON_ITEMS
from grading.sandbox.box import ComputeFailed
from tests.grading import quantization_evidence


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Path:
    return quantization_evidence.make(tmp_path_factory.mktemp("quantization") / "evidence")


@pytest.fixture
def folder(real, tmp_path) -> Path:
    return Path(shutil.copytree(real, tmp_path / "evidence"))


class _Box:
    """Runs the check in this process; the first ``failures`` calls fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    def compute(self, name, folder):
        self.failures -= 1
        if self.failures >= 0:
            raise ComputeFailed("the sandbox was lost")
        assert name == QUANTIZATION.check
        return [vars(finding) for finding in claims_record.check(folder)]


def _points(folder: Path) -> dict[str, float]:
    return {item.id: item.points for item in QUANTIZATION.judge(folder, _Box())[0]}


def _lost(folder: Path) -> dict[str, float]:
    points = _points(folder)
    return {item: most - points[item] for item, most in COMPARISON_ITEMS.items() if points[item] != most}


def _change(folder: Path, name: str, *path, value) -> None:
    """Set one place of a JSON file; ``value`` may be a function of what stood there."""
    whole = part = json.loads((folder / name).read_text())
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value(part[path[-1]]) if callable(value) else value
    (folder / name).write_text(json.dumps(whole))


def _relink(folder: Path) -> None:
    """Bind the claims to the record as it is now, as somebody would who repairs the hash."""
    from deep_learning_cases.ground.files import sha256_file

    _change(folder, "claims.json", "record", "sha256", value=sha256_file(folder / "quantization.json"))


def test_what_follows_earns_everything(folder):
    items = QUANTIZATION.judge(folder, _Box())[0]
    assert {item.id: item.points for item in items} == COMPARISON_ITEMS, items
    assert all(len(item.message) > 40 for item in items)


@pytest.mark.parametrize("config", ["dynamic", "qat", "onnx_int8"])
def test_any_int8_version_may_be_chosen(folder, config):
    claims_record.write(folder, config, quantization_evidence.claims(folder, config))
    assert _lost(folder) == {}


def test_the_made_up_times_give_both_verdicts(folder):
    found = claims_record.expected(json.loads((folder / "quantization.json").read_text()), "static", 1)
    assert {name: claim["verdict"] for name, claim in found.items() if "faster" in name} == {
        "faster at batch 1": "false",
        "faster at batch 32": "true",
    }
    assert found["faster at batch 1"]["evidence"]["ratio"] == pytest.approx(2, rel=0.01)


def test_numbers_typed_from_a_table_and_python_truth_values_are_fine(folder):
    claims = quantization_evidence.claims(folder, "static")
    for claim in claims.values():
        claim["evidence"] = {
            key: round(value, 2) if isinstance(value, float) else value for key, value in claim["evidence"].items()
        }
        claim["verdict"] = {"true": True, "false": False}.get(claim["verdict"], claim["verdict"])
    claims_record.write(folder, "static", claims)
    assert _lost(folder) == {}


@pytest.mark.parametrize("name", claims_record.CLAIMS)
def test_a_wrong_verdict_costs_one_claim_and_the_message_asks_back(folder, name):
    turned = {"true": "false", "false": "true", "inconclusive": "true"}
    _change(folder, "claims.json", "claims", name, "verdict", value=lambda old: turned[old])
    assert _lost(folder) == {"claims_verdicts": 1}
    message = next(i.message for i in QUANTIZATION.judge(folder, _Box())[0] if i.id == "claims_verdicts")
    assert name in message
    assert "?" in message or "compare" in message


@pytest.mark.parametrize(("name", "key"), [(name, keys[0]) for name, keys in claims_record.EVIDENCE.items()])
def test_a_number_that_is_not_the_records_costs_half_a_point(folder, name, key):
    _change(folder, "claims.json", "claims", name, "evidence", key, value=lambda old: old * 1.05 + 0.1)
    assert _lost(folder) == {"claims_evidence": 0.5}


def test_speed_that_is_said_to_need_no_new_measurement_elsewhere(folder):
    _change(folder, "claims.json", "claims", "faster at batch 1", "scope", "measure_again_elsewhere", value=False)
    assert _lost(folder) == {"claims_scope": 0.5}


@pytest.mark.parametrize("words", ["", "yes", "always and everywhere"])
def test_a_scope_in_a_word_or_two_says_too_little(folder, words):
    _change(folder, "claims.json", "claims", "smaller", "scope", "not_for", value=words)
    assert _lost(folder) == {"claims_scope": 0.5}


def test_one_sentence_for_all_four_is_no_scope(folder):
    for name in claims_record.CLAIMS:
        _change(folder, "claims.json", "claims", name, "scope", "not_for", value="every other machine there is")
    assert _lost(folder) == {"claims_scope": 2}


def test_a_verdict_that_is_no_verdict_leaves_the_rest_alone(folder):
    _change(folder, "claims.json", "claims", "smaller", "verdict", value="probably")
    assert _lost(folder) == {"claims_verdicts": 1}


def test_claims_from_another_record_are_stale(folder):
    _change(folder, "quantization.json", "created_at", value="2020-01-01T00:00:00Z")
    assert _lost(folder) == {"claims_evidence": 2}


def _slower(values):
    return [3 * value for value in values]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("runs", 3, "samples_us", "1", 5), -1.0),
        (("runs", 3, "samples_us", "1"), lambda old: old[:-1]),
        (("runs", 3, "samples_us", "1"), _slower),
        (("runs", 3, "round"), 2),
        (("runs", 3, "pid"), 1001),
        (("runs",), lambda old: old[:-1]),
        (("runs",), lambda old: [old[1], old[0], *old[2:]]),
        (("partial",), True),
        (("methodology", "rounds"), 2),
        (("summary", "static", "1", "32", "p50_us"), 1.0),
        (("speed", "static", "1", "1", "verdict"), "faster"),
        (("memory", "fp32", "1", "rss_max_bytes"), 1),
        (("claims", "static", "faster at batch 1", "verdict"), "true"),
        (("configs", "static", "accuracy", "top1"), 1.0),
        (("configs", "static", "accuracy", "top5"), 0.1),
        (("configs", "static", "accuracy", "predictions"), lambda old: [(old[0] + 1) % 10, *old[1:]]),
        (("configs", "static", "accuracy", "per_class", 3, "correct"), 1),
        (("configs", "static", "loss", "lost"), 400),
        (("configs", "static", "size", "file_bytes"), 9),
        (("configs", "static", "size", "state_dict_bytes"), 99),
        (("configs", "onnx_int8", "state_sha256"), "0" * 64),
        (("configs", "static", "size", "file"), "../claims.json"),
        (("data", "labels"), lambda old: old[:-1]),
    ],
    ids=lambda part: "/".join(map(str, part)) if isinstance(part, tuple) else "",
)
def test_a_record_that_was_changed_is_found_though_the_hash_was_repaired(folder, path, value):
    _change(folder, "quantization.json", *path, value=value)
    _relink(folder)
    assert _points(folder)["comparison_record"] == 0


def test_a_model_that_was_exchanged_is_found(folder):
    model = folder / "models" / "static.pt"
    model.write_bytes(model.read_bytes() + b"\0")
    assert _lost(folder) == {"comparison_record": 3}


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"schema": 1}', b'{"a": NaN}', b"[" * 99_999, b"\xff\xfe"])
@pytest.mark.parametrize("name", ["claims.json", "quantization.json"])
def test_rubbish_earns_nothing_for_it_and_raises_nothing(folder, name, content):
    (folder / name).write_bytes(content)
    points = _points(folder)
    assert points["claims_verdicts"] == points["claims_evidence"] == 0
    assert sum(points.values()) <= COMPARISON_ITEMS["claims_scope"] + COMPARISON_ITEMS["comparison_record"]


def test_a_record_without_claims_earns_nothing(folder):
    (folder / "claims.json").unlink()
    assert set(_points(folder).values()) == {0}


def test_links_are_not_followed(folder, tmp_path):
    (folder / "claims.json").rename(tmp_path / "elsewhere.json")
    (folder / "claims.json").symlink_to(tmp_path / "elsewhere.json")
    assert set(_points(folder).values()) == {0}


def test_claims_about_a_version_that_is_not_there_are_refused_when_written(folder):
    with pytest.raises(EvidenceError, match="baseline"):
        claims_record.write(folder, "int4", quantization_evidence.claims(folder, "static"))
    with pytest.raises(EvidenceError, match="baseline"):
        claims_record.write(folder, "fp32", quantization_evidence.claims(folder, "static"))
    with pytest.raises(FileError):
        claims_record.write(folder / "none", "static", {})


def test_an_unfinished_claim_is_refused_and_the_old_file_stays(folder):
    before = (folder / "claims.json").read_bytes()
    claims = quantization_evidence.claims(folder, "static")
    claims["smaller"]["verdict"] = None
    with pytest.raises(EvidenceError, match="smaller/verdict"):
        claims_record.write(folder, "static", claims)
    assert (folder / "claims.json").read_bytes() == before


def test_a_box_that_was_lost_once_is_asked_again(folder):
    assert sum(item.points for item in QUANTIZATION.judge(folder, _Box(1))[0]) == 11
    assert sum(item.points for item in QUANTIZATION.judge(folder, _Box(2))[0]) == 0
    assert sum(item.points for item in QUANTIZATION.judge(folder / "none", _Box())[0]) == 0
