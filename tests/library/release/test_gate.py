"""The gate is a pure function: numbers and limits in, a decision with reasons out."""

import math

import pytest

from deep_learning_cases import release
from deep_learning_cases.errors import InputError

GOOD = {"model_bytes": 27_436, "loss_pp": -0.2, "loss_interval_pp": {"low": -1.1, "high": 0.6}}


def outcomes(facts, limits=release.LIMITS):
    return {reason.quantity: reason.outcome for reason in release.decide(facts, limits).reasons}


def test_both_limits_met_releases():
    verdict = release.decide(GOOD)
    assert (verdict.decision, verdict.outcome) == ("release", "pass")
    assert [reason.redo for reason in verdict.reasons] == ["", ""]


@pytest.mark.parametrize(
    ("changed", "decision"),
    [
        ({"model_bytes": 32_768}, "release"),
        ({"model_bytes": 32_769}, "reject"),
        ({"loss_pp": 100 * (0.990 - 0.980)}, "release"),  # 5 of 500 images: exactly one point, a little more in floats
        ({"loss_pp": 1.2}, "reject"),
        ({"loss_pp": math.nan}, "reject"),
        ({"loss_pp": None}, "reject"),
        ({"model_bytes": True}, "reject"),
        ({"model_bytes": "27436"}, "reject"),
    ],
)
def test_the_decision_at_and_around_the_limits(changed, decision):
    assert release.decide(GOOD | changed).decision == decision


def test_an_empty_fact_is_a_limit_not_met():
    assert outcomes({}) == {"model_bytes": "fail", "loss_pp": "fail"}


def test_a_reason_names_value_limit_and_unit_and_what_to_redo():
    size, loss = release.decide({"model_bytes": 40_000, "loss_pp": 2.4}).reasons
    assert (size.value, size.limit, size.unit) == (40_000, 32_768, "bytes")
    assert "40,000 bytes" in size.message
    assert "32,768" in size.message
    assert "regression and measuring again" in size.redo
    assert (loss.value, loss.limit, loss.unit) == (2.4, 1.0, "percentage points")
    assert "a new hash is not enough" in loss.redo


def test_an_interval_around_the_limit_is_inconclusive_and_the_measured_loss_decides():
    around = {"low": 0.1, "high": 1.4}
    verdict = release.decide(GOOD | {"loss_pp": 0.6, "loss_interval_pp": around})
    assert (verdict.decision, verdict.outcome) == ("release", "inconclusive")
    assert outcomes(GOOD | {"loss_pp": 1.2, "loss_interval_pp": around}) == {
        "model_bytes": "pass", "loss_pp": "fail", "loss_interval_pp": "inconclusive",
    }  # fmt: skip
    assert "loss_interval_pp" not in outcomes(GOOD | {"loss_interval_pp": {"low": 1.01, "high": 3.0}})


def test_the_limits_are_arguments():
    assert outcomes(GOOD, {"model_bytes_limit": 100, "loss_limit_pp": -1.0}) == {
        "model_bytes": "fail",
        "loss_pp": "fail",
    } | {"loss_interval_pp": "inconclusive"}
    with pytest.raises(InputError, match="loss_limit_pp"):
        release.decide(GOOD, {"model_bytes_limit": 100})


def test_the_facts_stay_as_they_were():
    facts = {"model_bytes": 1, "loss_pp": 0.0, "loss_interval_pp": {"low": 0.0, "high": 1.0}}
    before = repr(facts)
    release.decide(facts)
    assert repr(facts) == before


def test_the_verdict_is_json():
    assert release.decide(GOOD).as_json()["reasons"][0]["quantity"] == "model_bytes"
