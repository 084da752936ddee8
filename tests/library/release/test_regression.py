"""The paired comparison against brute force and hand arithmetic; regression.json against the files it speaks of."""

import itertools
import math
import sys

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep_learning_cases.errors import (
    DeepLearningCasesError,
    EvidenceError,
    FileError,
    InputError,
    MeasurementError,
    ModelError,
)
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.models import artefacts, engines
from deep_learning_cases.release import regression


def one_hot(classes):
    return np.eye(10, dtype=np.float32)[classes]


# --- the comparison -----------------------------------------------------------------------------------------------


def test_five_images_worked_by_hand():
    labels = np.array([0, 0, 1, 2, 2], np.uint8)
    baseline = one_hot([0, 0, 1, 2, 3])  # right: yes yes yes yes no
    candidate = one_hot([0, 5, 1, 2, 4]) * 2  # right: yes no yes yes no
    result = regression.compare_logits(baseline, candidate, labels)
    assert result["images"] == 5
    assert result["accuracy"] == {"fp32": 0.8, "int8": 0.6}
    assert result["loss_pp"] == 20.0
    assert result["agreement"] == 0.6  # the last image is wrong both times, and in different ways
    # Rows that agree differ by 1 in one of ten entries, the two others by 1 and 2 in two of them: 3 + 6 of 50.
    assert result["logit_difference"] == {"largest": 2.0, "mean": pytest.approx(9 / 50)}
    assert result["per_class"][0] == {"label": 0, "images": 2, "fp32": 1.0, "int8": 0.5}
    assert result["per_class"][2] == {"label": 2, "images": 2, "fp32": 0.5, "int8": 0.5}
    assert result["per_class"][9] == {"label": 9, "images": 0, "fp32": None, "int8": None}


def test_a_gain_is_a_negative_loss():
    labels = np.zeros(4, np.uint8)
    result = regression.compare_logits(one_hot([1, 1, 0, 0]), one_hot([0, 0, 0, 0]), labels)
    assert result["loss_pp"] == -50.0
    assert result["loss_interval_pp"]["low"] < -50.0 < result["loss_interval_pp"]["high"]


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 9), min_size=n, max_size=n)] * 3)))
def test_the_parts_of_a_comparison_fit_together(lists):
    labels, baseline, candidate = (np.array(classes, np.uint8) for classes in lists)
    result = regression.compare_logits(one_hot(baseline), one_hot(candidate), labels)
    accuracy = result["accuracy"]
    assert result["loss_pp"] == pytest.approx(100 * (accuracy["fp32"] - accuracy["int8"]), abs=1e-9)
    for model in ("fp32", "int8"):
        hits = sum(row["images"] * (row[model] or 0) for row in result["per_class"])
        assert hits == pytest.approx(accuracy[model] * len(labels))
    assert sum(row["images"] for row in result["per_class"]) == len(labels)
    assert abs(accuracy["fp32"] - accuracy["int8"]) <= 1 - result["agreement"] + 1e-12
    interval = result["loss_interval_pp"]
    assert -100 <= interval["low"] <= result["loss_pp"] + 1e-9
    assert result["loss_pp"] - 1e-9 <= interval["high"] <= 100


def test_inputs_are_left_as_they_were():
    logits, labels = one_hot([0, 1]), np.array([0, 1], np.uint8)
    logits.flags.writeable = labels.flags.writeable = False
    regression.compare_logits(logits, logits, labels)


def test_what_500_images_can_show_is_said_with_numbers():
    labels = np.zeros(500, np.uint8)
    text = regression.compare_logits(one_hot([0] * 500), one_hot([0] * 497 + [1] * 3), labels)["can_show"]
    assert "One of 500 images is 0.2 percentage points, so 1 point is 5 images" in text
    assert "lost 3 and gained 0" in text
    assert "a loss of 4 images (0.8 points)" in text


@pytest.mark.parametrize(
    ("baseline", "candidate", "labels", "message"),
    [
        (np.zeros((2, 10)), np.zeros((3, 10)), np.zeros(2, int), "expected .n, 10. twice"),
        (np.zeros((2, 9)), np.zeros((2, 9)), np.zeros(2, int), "expected .n, 10. twice"),
        (np.zeros((0, 10)), np.zeros((0, 10)), np.zeros(0, int), "n >= 1"),
        (np.zeros((2, 10)), np.zeros((2, 10)), np.zeros((2, 1), int), "expected .n, 10. twice"),
        (np.full((2, 10), np.nan), np.zeros((2, 10)), np.zeros(2, int), "NaN or Infinity"),
        (np.zeros((2, 10)), np.full((2, 10), np.inf), np.zeros(2, int), "NaN or Infinity"),
        (np.zeros((2, 10)), np.zeros((2, 10)), np.array([0, 10]), "labels are int64 from 0 to 10"),
        (np.zeros((2, 10)), np.zeros((2, 10)), np.array([0.0, 1.0]), "labels are float64"),
    ],
)
def test_what_cannot_be_compared_is_refused(baseline, candidate, labels, message):
    with pytest.raises(InputError, match=message):
        regression.compare_logits(baseline, candidate, labels)


# --- the interval -------------------------------------------------------------------------------------------------


def brute_score(lost, gained, n, loss):
    """Tango's statistic from its definition: search the likeliest probability of a gain on a fine grid."""
    gains = np.linspace(max(0.0, -loss), (1 - loss) / 2, 200_001)
    losses, rest = gains + loss, 1 - 2 * gains - loss
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (
            np.where(count > 0, count * np.log(np.maximum(probability, 0)), 0.0)
            for count, probability in ((lost, losses), (gained, gains), (n - lost - gained, rest))
        )
        likelihood = sum(terms)
    best = gains[int(np.nanargmax(likelihood))]
    return (lost - gained - n * loss) / math.sqrt(n * (2 * best + loss - loss**2))


@pytest.mark.parametrize(("lost", "gained", "n"), [(8, 3, 100), (1, 0, 44), (0, 5, 60), (12, 12, 50), (40, 2, 90)])
def test_both_ends_are_where_a_brute_force_score_test_just_rejects(lost, gained, n):
    low, high = regression.paired_interval(lost, gained, n)
    assert brute_score(lost, gained, n, low) == pytest.approx(1.959964, abs=2e-3)
    assert brute_score(lost, gained, n, high) == pytest.approx(-1.959964, abs=2e-3)


def test_no_changed_image_still_leaves_a_width_worked_by_hand():
    """z^2 / (n + z^2) = 3.8415 / 503.8415."""
    low, high = regression.paired_interval(0, 0, 500)
    assert high == pytest.approx(0.0076243, abs=1e-7)
    assert low == pytest.approx(-high)


def test_exchanging_the_models_mirrors_the_interval():
    for lost, gained in itertools.product(range(6), repeat=2):
        low, high = regression.paired_interval(lost, gained, 40)
        mirrored = regression.paired_interval(gained, lost, 40)
        assert mirrored == (pytest.approx(-high), pytest.approx(-low))
        assert low <= (lost - gained) / 40 <= high


def test_zero_is_excluded_exactly_when_mcnemars_test_rejects():
    """Under no loss the score is (lost - gained) / sqrt(lost + gained), McNemar's statistic of 1947."""
    for lost, gained in itertools.product(range(12), repeat=2):
        if lost + gained:
            low, high = regression.paired_interval(lost, gained, 200)
            rejected = abs(lost - gained) / math.sqrt(lost + gained) > 1.959964
            assert rejected == (low > 0 or high < 0), (lost, gained)


@pytest.mark.parametrize(("gain", "loss"), [(0.02, 0.02), (0.01, 0.05), (0.10, 0.15)])
def test_the_interval_holds_the_truth_about_95_times_in_100(gain, loss):
    """Exact: the probability of every outcome of 60 images, added up over those whose interval holds the true loss."""
    n, covered = 60, 0.0
    for lost in range(n + 1):
        for gained in range(n + 1 - lost):
            log = (
                math.lgamma(n + 1)
                - math.lgamma(lost + 1)
                - math.lgamma(gained + 1)
                - math.lgamma(n - lost - gained + 1)
            )
            log += lost * math.log(loss) + gained * math.log(gain) + (n - lost - gained) * math.log(1 - gain - loss)
            if log > -18:
                low, high = regression.paired_interval(lost, gained, n)
                covered += math.exp(log) * (low <= loss - gain <= high)
    assert 0.93 <= covered <= 0.985


@pytest.mark.parametrize(("lost", "gained", "n"), [(0, 0, 0), (-1, 0, 5), (3, 3, 5)])
def test_impossible_counts_are_refused(lost, gained, n):
    with pytest.raises(InputError, match="expected counts"):
        regression.paired_interval(lost, gained, n)


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (0, 5), (2, 3)])
def test_the_extremes_stay_within_all_and_none(lost, gained):
    low, high = regression.paired_interval(lost, gained, 5)
    assert -1 <= low <= (lost - gained) / 5 <= high <= 1


# --- the file -----------------------------------------------------------------------------------------------------


def test_regression_json_is_written_valid_and_recomputable(built):
    record = regression.regress(built)
    on_disk = files.read_json(built / artefacts.REGRESSION)
    assert on_disk == record
    assert schemas.violations(on_disk, "regression") == []
    assert on_disk["data"] == files.file_record(built / artefacts.DATA)
    assert on_disk["models"]["int8"] == files.file_record(built / artefacts.INT8)
    assert on_disk["images"] == 500
    again = regression.recompute(built)
    assert {**again, "created_at": ""} == {**record, "created_at": ""}


def test_recompute_writes_nothing_and_needs_no_pytorch(built, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    regression.recompute(built)
    assert not (built / artefacts.REGRESSION).exists()


def test_each_model_stands_under_its_own_name(built):
    (built / artefacts.INT8).write_bytes((built / artefacts.FP32).read_bytes())
    record = regression.recompute(built)
    assert record["agreement"] == 1.0
    assert record["logit_difference"] == {"largest": 0.0, "mean": 0.0}
    assert record["models"]["int8"]["sha256"] == record["models"]["fp32"]["sha256"]


@pytest.mark.parametrize(
    ("file", "content", "failure"),
    [
        (artefacts.DATA, None, FileError),
        (artefacts.DATA, b"nonsense", EvidenceError),
        (artefacts.FP32, None, FileError),
        (artefacts.FP32, b"nonsense", ModelError),
        (artefacts.INT8, b"", ModelError),
    ],
)
def test_a_damaged_folder_is_one_clear_error_and_the_old_record_stays(built, file, content, failure):
    (built / artefacts.REGRESSION).write_text("old")
    (built / file).unlink()
    if content is not None:
        (built / file).write_bytes(content)
    with pytest.raises(failure, match=file) as caught:
        regression.regress(built)
    assert isinstance(caught.value, DeepLearningCasesError)
    assert "\n" not in str(caught.value)
    assert (built / artefacts.REGRESSION).read_text() == "old"


@pytest.mark.parametrize("file", [artefacts.DATA, artefacts.INT8])
def test_a_huge_file_is_refused_unread(built, file):
    with (built / file).open("wb") as stream:
        stream.truncate(2**40)  # a hole: it takes no room on the disk, and would take a terabyte in memory
    with pytest.raises(EvidenceError, match=f"{file} is larger than"):
        regression.recompute(built)


def test_external_data_is_refused_before_a_runtime_opens_it(built, monkeypatch):
    model = onnx.load(built / artefacts.INT8)
    onnx.save(model, built / artefacts.INT8, save_as_external_data=True, location="more.bin", size_threshold=0)
    engine = _Fixed()
    monkeypatch.setattr(engines, "OnnxRuntimeEngine", lambda: engine)
    with pytest.raises(ModelError, match="in another file"):
        regression.recompute(built)
    assert engine.opened == [artefacts.FP32]


class _Fixed:
    """An engine with one answer."""

    def __init__(self, value=0.0, then=lambda: None):
        self._value, self._then, self.opened = value, then, []

    def load_bytes(self, _content, name):
        self.opened.append(name.name)

    def run(self, batch):
        self._then()
        return np.full((len(batch), 10), self._value, np.float32)

    def describe(self):
        return {"name": "fixed"}


def test_logits_that_are_not_finite_are_refused(built, monkeypatch):
    monkeypatch.setattr(engines, "OnnxRuntimeEngine", lambda: _Fixed(np.nan))
    with pytest.raises(ModelError, match=r"finite: False: expected finite numbers of shape \(500, 10\)"):
        regression.recompute(built)


def test_a_file_that_changes_meanwhile_voids_the_comparison(built, monkeypatch):
    path = built / artefacts.DATA
    change = lambda: path.write_bytes(path.read_bytes() + b"!")  # noqa: E731
    monkeypatch.setattr(engines, "OnnxRuntimeEngine", lambda: _Fixed(0.0, change))
    with pytest.raises(MeasurementError, match=r"data.npz changed while it was read"):
        regression.recompute(built)
