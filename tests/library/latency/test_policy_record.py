"""policy.json: what is computed, what a person says, and what the check finds."""

import json

import pytest

from deep_learning_cases import batching, cases
from deep_learning_cases.errors import EvidenceError, FileError, InputError
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.latency import policy_record
from deep_learning_cases.latency import record as latency_record

ROWS = {1: 1.0, 8: 2.4, 32: 7.2, 128: 26.4}  # ms for a batch: 0.8 + 0.2 for each request
DECLARED = {"rate_per_s": 1500.0, "slo_p95_ms": 10.0, "because": "cameras times digits per letter"}
SENTENCES = [f"number {number} of what nobody should conclude" for number in range(4)]
AREA_OF = dict(zip(("latency", "prediction", "claims"), policy_record.AREAS, strict=True))


def _rows(trials: int = 300) -> dict:
    """Service times that vary by 1 % in a fixed order."""
    return {
        batch: latency_record.row([ms * (1 + 0.001 * (k % 11)) for k in range(trials)], [ms] * 8, batch)
        for batch, ms in ROWS.items()
    }


def _with(record: dict, rows: dict) -> dict:
    """The record with other rows, and a protocol that fits them."""
    first = next(iter(rows.values()))
    protocol = {
        "batches": list(rows),
        "distinct_inputs": dict.fromkeys(rows, 1),
        "warmups": first["warmups"],
        "trials": first["trials"],
    }
    return record | {"results": rows, "protocol": record["protocol"] | protocol}


@pytest.fixture(scope="module")
def latency() -> dict:
    ticks = iter(range(0, 10**9, 1000))
    record = cases.latency_case((1,), trials=1, warmups=0, clock=lambda: next(ticks))
    start = dict.fromkeys(("start_ms", "import_ms", "load_ms", "first_call_ms", "second_call_ms"), 1.0)
    return _with(dict(record), _rows()) | {
        "boundaries": {"preprocessing_64": {"boundary": "with decoding", "results": {1: _rows()[1]}}},
        "cold": {"boundary": "cold", "results": {1: {"median_ms": 4.0, "starts": [start | {"total_ms": 4.0}]}}},
    }


@pytest.fixture(scope="module")
def facts(latency, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("facts")
    cases.save(latency, folder / "latency.json")
    return policy_record.collect(folder, DECLARED, batching.Policy(8, 0.001))


@pytest.fixture
def folder(latency, facts, tmp_path):
    cases.save(latency, tmp_path / "latency.json")
    policy_record.write(tmp_path, facts | {"verdict": "meets", "not_covered": SENTENCES})
    return tmp_path


def _areas(folder) -> set[str]:
    return {finding.area for finding in policy_record.check(folder)}


def _change(folder, change) -> None:
    path = folder / "policy.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_whole_record_has_no_finding(folder):
    assert policy_record.check(folder) == []


def test_the_prediction_is_that_of_the_simulation(facts):
    predicted = facts["predicted"]
    assert predicted["low_ms"] <= predicted["p95_ms"] <= predicted["high_ms"] < 10
    assert predicted["p95_ms"] > ROWS[8], "a full batch takes so long, and somebody waited for it"


def test_other_seeds_and_fewer_requests_predict_the_same_within_the_intervals(folder):
    for seed, seeds, requests in ((7, 8, 20_000), (99, 4, 5_000), (3, 16, 10_000)):
        again = policy_record.collect(
            folder, DECLARED, batching.Policy(8, 0.001), seed=seed, seeds=seeds, requests=requests
        )
        policy_record.write(folder, again | {"verdict": "meets", "not_covered": SENTENCES})
        assert policy_record.check(folder) == []


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_a_prediction_that_does_not_follow_is_found(folder, factor):
    def scale(value):
        for key in ("p95_ms", "low_ms", "high_ms"):
            value["predicted"][key] *= factor

    _change(folder, scale)
    assert "policy_prediction" in _areas(folder)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("declared/rate_per_s", 3000.0),
        ("policy/max_batch", 1),
        ("policy/max_wait_ms", 4.0),
        ("policy/queue_bound", 4),
        ("service_times/sha256", "0" * 64),
        ("service_times/boundary", "service_256"),
        ("predicted/p95_ms", None),
        ("predicted/low_ms", 9.9),
        ("predicted/high_ms", None),
        ("predicted/high_ms", 9000.0),
    ],
)
def test_each_field_that_the_prediction_rests_on_is_checked(folder, pointer, value):
    part, key = pointer.split("/")
    _change(folder, lambda record: record[part].update({key: value}))
    assert "policy_prediction" in _areas(folder)
    assert "latency_record" not in _areas(folder)


def test_an_interval_too_narrow_for_its_seeds_is_found(folder):
    def squeeze(value):
        middle = value["predicted"]["p95_ms"]
        value["predicted"] |= {"low_ms": middle * 0.9999, "high_ms": middle * 1.0001}

    heavy = [1.0] * 297 + [400.0] * 3
    record = cases.load_latency_case(folder / "latency.json")
    rows = {batch: latency_record.row(heavy, [1.0] * 8, batch) for batch in ROWS}
    cases.save(_with(record, rows), folder / "latency.json")
    declared = DECLARED | {"rate_per_s": 190.0}  # a load of 0.95 and rare slow calls: seeds differ widely
    policy_record.write(
        folder,
        policy_record.collect(folder, declared, batching.Policy(1)) | {"verdict": "misses", "not_covered": SENTENCES},
    )
    assert _areas(folder) == set()
    _change(folder, squeeze)
    assert _areas(folder) == {"policy_prediction"}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(verdict="misses"),
        lambda value: value.update(verdict="unsure"),
        lambda value: value.update(not_covered=[]),
        lambda value: value.update(not_covered=["one two three four"] * 4),
        lambda value: value.update(not_covered=["heat", "bursts", "network", "years"]),
        lambda value: value["declared"].update(because="it felt right"),
    ],
)
def test_claims_beyond_the_prediction_are_found_and_nothing_else(folder, change):
    _change(folder, change)
    assert _areas(folder) == {"policy_claims"}


def test_a_limit_inside_the_interval_is_unsure(folder):
    def tighten(value):
        value["declared"]["slo_p95_ms"] = value["predicted"]["p95_ms"]

    _change(folder, tighten)
    assert _areas(folder) == {"policy_claims"}
    _change(folder, lambda value: value.update(verdict="unsure"))
    assert _areas(folder) == set()


def test_a_queue_that_grows_for_ever_has_no_p95_and_misses(folder):
    declared = DECLARED | {"rate_per_s": 5000.0}
    facts = policy_record.collect(folder, declared, batching.Policy(1))
    assert facts["predicted"]["p95_ms"] is None
    policy_record.write(folder, facts | {"verdict": "misses", "not_covered": SENTENCES})
    assert policy_record.check(folder) == []
    _change(folder, lambda value: value.update(verdict="meets"))
    assert _areas(folder) == {"policy_claims"}


def test_times_of_a_larger_boundary_can_be_the_source(folder, latency):
    facts = policy_record.collect(folder, DECLARED | {"rate_per_s": 100.0}, batching.Policy(1), "preprocessing_64")
    policy_record.write(folder, facts | {"verdict": "meets", "not_covered": SENTENCES})
    assert policy_record.check(folder) == []
    with pytest.raises(EvidenceError, match="one of model, preprocessing_64"):
        policy_record.service_times(latency, "service")


@pytest.mark.parametrize("name", ["latency.json", "policy.json"])
@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"null", b'{"schema": NaN}', b"\xff\xfe", b"[" * 50_000, b" " * 5_000_000]
)
def test_damage_of_any_kind_is_a_finding_and_no_exception(folder, name, content):
    (folder / name).write_bytes(content)
    expected = (
        {"latency_record", "policy_prediction"} if name == "latency.json" else {"policy_prediction", "policy_claims"}
    )
    assert _areas(folder) == expected
    assert all("\n" not in str(finding) for finding in policy_record.check(folder))


def test_an_empty_folder_earns_nothing(tmp_path):
    assert _areas(tmp_path) == set(policy_record.AREAS)


def test_links_are_not_followed(folder):
    (folder / "policy.json").rename(folder / "elsewhere.json")
    (folder / "policy.json").symlink_to(folder / "elsewhere.json")
    assert _areas(folder) == {"policy_prediction", "policy_claims"}


@pytest.mark.parametrize(
    "change",
    [
        lambda record: _with(record, {batch: row for batch, row in _rows().items() if batch != 8}),
        lambda record: {key: value for key, value in record.items() if key != "cold"},
        lambda record: {key: value for key, value in record.items() if key != "boundaries"},
        lambda record: _with(record, _rows(298)),
        lambda record: _with(record, _rows(5001)),
        lambda record: _with(record, {b: latency_record.row([1.0] * 300, [1.0] * 7, b) for b in ROWS}),
    ],
)
def test_a_record_that_lacks_what_the_lab_asked_for_is_found(folder, latency, change):
    cases.save(change(latency), folder / "latency.json")
    found = [finding.message for finding in policy_record.check(folder) if finding.area == "latency_record"]
    assert found
    assert all("expected" in message for message in found)


def test_a_sum_that_does_not_follow_from_the_samples_is_found(folder):
    value = json.loads((folder / "latency.json").read_text())
    value["results"]["32"]["median_ms"] *= 0.5
    (folder / "latency.json").write_text(json.dumps(value))
    assert "latency_record" in _areas(folder)


def test_what_makes_no_sense_is_refused_before_anything_is_written(folder, facts, tmp_path):
    before = (folder / "policy.json").read_bytes()
    for declared in ({}, DECLARED | {"rate_per_s": None}, DECLARED | {"because": ""}):
        with pytest.raises(InputError, match="declared has no"):
            policy_record.collect(folder, declared, batching.Policy(8))
    with pytest.raises(EvidenceError, match="/verdict"):
        policy_record.write(folder, facts | {"verdict": "surely", "not_covered": SENTENCES})
    with pytest.raises(FileError):
        policy_record.collect(tmp_path / "nothing", DECLARED, batching.Policy(8))
    assert (folder / "policy.json").read_bytes() == before


def test_299_trials_are_the_fewest_whose_slowest_bounds_p99():
    assert 0.99**policy_record.LEAST_TRIALS < 0.05 <= 0.99 ** (policy_record.LEAST_TRIALS - 1)


def test_the_schema_is_among_the_known_ones():
    assert "policy" in schemas.NAMES
    assert files.MAX_JSON_DEPTH > 5
