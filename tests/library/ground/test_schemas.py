"""Everything that a file violates is named, at its place."""

import subprocess
import sys

import pytest

from deep_learning_cases.errors import EvidenceError, InputError
from deep_learning_cases.ground import schemas


@pytest.mark.parametrize("name", schemas.NAMES)
def test_each_schema_is_a_schema_and_names_its_version(name):
    from jsonschema import Draft202012Validator

    schema = schemas.load(name)
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"]["const"] == f"deep-learning-cases/{name}/1"
    assert "schema" in schema["required"]


def test_an_unknown_schema_is_refused_with_the_choices():
    with pytest.raises(InputError, match=r"'timings'.*benchmark, .*release"):
        schemas.load("timings")


@pytest.fixture
def record(built) -> dict:
    from deep_learning_cases.release import regression

    return regression.recompute(built)


def test_a_valid_record_has_no_violations(record):
    assert schemas.violations(record, "regression") == []
    schemas.validate(record, "regression", "regression.json")


def test_all_violations_are_found_each_at_its_pointer(record):
    del record["loss_pp"]
    record["images"] = True
    record["accuracy"]["fp32"] = "0.98"
    record["per_class"][3]["label"] = 10
    record["a/b~c"] = 1
    found = dict(schemas.violations(record, "regression"))
    assert set(found) == {"/loss_pp", "/images", "/accuracy/fp32", "/per_class/3/label", "/a~1b~0c"}
    assert found["/images"] == "True is bool: expected integer"
    assert "missing" in found["/loss_pp"]
    assert "unknown" in found["/a~1b~0c"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_pass_no_schema(record, number):
    record["logit_difference"]["mean"] = number
    record["engine"]["anything"] = [number]
    assert {pointer for pointer, _ in schemas.violations(record, "regression")} >= {
        "/logit_difference/mean",
        "/engine/anything/0",
    }


def test_validate_names_the_file_and_counts_the_rest(record):
    record["split"] = "train"
    record["images"] = 0
    with pytest.raises(EvidenceError, match=r"^mine.json at /images: 0: expected at least 1 \(and 1 more\); make"):
        schemas.validate(record, "regression", "mine.json")


def test_messages_stay_one_short_line(record):
    record["split"] = "x\n" * 10_000
    record["per_class"] = record["per_class"] * 50
    record["can_show"] = list(range(1000))
    for _, message in schemas.violations(record, "regression"):
        assert "\n" not in message
        assert len(message) < 200


def test_importing_the_package_of_schemas_does_not_import_jsonschema():
    code = "import sys, deep_learning_cases.ground.schemas; sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
