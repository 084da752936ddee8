"""Walk every field of the three JSON files, change it, and see it named, or documented as free."""

import copy
import json
import shutil
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from deep_learning_cases import release
from deep_learning_cases.models import artefacts
from deep_learning_cases.release import regression
from deep_learning_cases.release.checking.judge import FREE

FILES = (artefacts.BENCHMARK, artefacts.REGRESSION, artefacts.RELEASE)

KNOCK_ON = {
    # release.json holds the SHA-256 of the other two, and a report those of all three.
    artefacts.BENCHMARK: {"release_linkage", "report"},
    artefacts.REGRESSION: {"release_linkage", "report"},
    artefacts.RELEASE: {"report"},
}


def leaves(value, pointer=""):
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in items:
            yield from leaves(child, f"{pointer}/{key}")
    else:
        yield pointer


def containers(value, pointer=""):
    if isinstance(value, dict):
        yield pointer
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from containers(child, f"{pointer}/{key}")


def place(record, pointer):
    """The container and the key of a pointer."""
    *path, last = pointer.split("/")[1:]
    for step in path:
        record = record[int(step)] if isinstance(record, list) else record[step]
    return record, int(last) if isinstance(record, list) else last


def other_value(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and value[10:11] == "T":
        return f"2019{value[4:]}"
    if isinstance(value, str):
        return ("f" if value[0] != "f" else "0") + value[1:] if len(value) == 64 else f"{value} and more"
    return 1 if value is None else None


def other_kind(value):
    if isinstance(value, str):
        return [value]
    return str(value).lower() if value is not None else "null"


def is_free(file, pointer):
    return any(fnmatchcase(pointer, pattern.replace("**", "*")) for pattern in FREE[file])


def names(findings, file, pointer):
    """Findings that point at the field, at something in it or at what it stands in (but not at the whole file)."""
    return [
        one
        for one in findings
        if one.file == file
        and one.pointer
        and (one.pointer == pointer or one.pointer.startswith(f"{pointer}/") or pointer.startswith(f"{one.pointer}/"))
    ]


@pytest.fixture(scope="module")
def walked(real_evidence, tmp_path_factory):
    """A folder to change, and a check of it that runs the (unchanged) models only once."""
    folder = tmp_path_factory.mktemp("walk") / "evidence"
    shutil.copytree(real_evidence, folder)
    known = regression.recompute(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "recompute", lambda _folder: copy.deepcopy(known))
        patch.setattr(artefacts, "check_onnx_bytes", lambda _content, _name: None)
        yield folder


def check_changed(folder, file, change):
    """The findings after ``change(record)``; the file is put back."""
    path = folder / file
    before = path.read_bytes()
    record = json.loads(before)
    change(record)
    try:
        path.write_text(json.dumps(record, indent=1))
        return release.check(folder)
    finally:
        path.write_bytes(before)


def set_value(pointer, new):
    def change(record):
        container, key = place(record, pointer)
        container[key] = new

    return change


def test_the_untouched_folder_is_clean(walked):
    assert release.check(walked) == []


def wanted(record):
    """Every leaf; of six equal runs the first and the last, of a hundred samples four, of the machine one in five."""
    for number, pointer in enumerate(leaves(record)):
        series = "/samples_us/" in pointer or "/warmups_us/" in pointer
        if series and pointer.rsplit("/", 1)[1] not in {"0", "5", "57", "99"}:
            continue
        if pointer.startswith("/runs/") and pointer.split("/")[2] not in {"0", "5"}:
            continue
        if not pointer.startswith("/environment/") or number % 5 == 0:
            yield pointer


@pytest.mark.parametrize("file", FILES)
def test_every_changed_value_is_named_or_documented_as_free(walked, file):
    record = json.loads((walked / file).read_text())
    count = 0
    for pointer in wanted(record):
        container, key = place(record, pointer)
        findings = check_changed(walked, file, set_value(pointer, other_value(container[key])))
        areas = {one.area for one in findings}
        if "/samples_us/" in pointer:
            run = record["runs"][int(pointer.split("/")[2])]
            batch = pointer.split("/")[4]
            assert names(findings, file, f"/summary/{run['model']}/{batch}/images_per_second"), pointer
            assert areas == {"benchmark_summary", "release_limits"} | KNOCK_ON[file], pointer
        elif is_free(file, pointer):
            # The field may hold this value as well; the file is another, and release.json says so.
            assert areas - {"release_limits"} == KNOCK_ON[file], (pointer, findings)
        else:
            named = names(findings, file, pointer)
            assert named, pointer
            own = {one.area for one in named}
            assert len(own) == 1, (pointer, named)
            # A run under another model's name moves its timings, so that the sums change with it.
            moved = {"benchmark_summary", "release_limits"} if pointer.endswith("/model") else set()
            assert areas == own | moved | KNOCK_ON[file], (pointer, findings)
        count += 1
    assert count > 15


@pytest.mark.parametrize("file", FILES)
def test_every_changed_kind_is_named(walked, file):
    record = json.loads((walked / file).read_text())
    for pointer in wanted(record):
        if pointer.startswith(("/environment/", "/engine/")):
            continue  # free throughout, as documented
        container, key = place(record, pointer)
        findings = check_changed(walked, file, set_value(pointer, other_kind(container[key])))
        assert names(findings, file, pointer), pointer


@pytest.mark.parametrize("file", FILES)
def test_every_missing_and_every_added_key_is_named(walked, file):
    record = json.loads((walked / file).read_text())
    optional = {"garbage_collector", "input", "warmups_us", "loop_overhead_us"}
    for pointer in containers(record):
        if pointer.startswith(("/environment", "/engine", "/runs/1", "/runs/2", "/runs/3", "/runs/4")):
            continue
        target = record if not pointer else place(record, pointer)[0][place(record, pointer)[1]]
        for key in target:
            findings = check_changed(walked, file, lambda changed, p=f"{pointer}/{key}": remove(changed, p))
            assert key in optional or names(findings, file, f"{pointer}/{key}"), (pointer, key)
        findings = check_changed(walked, file, set_value(f"{pointer}/surprise", 1))
        assert names(findings, file, f"{pointer}/surprise"), pointer


def remove(record, pointer):
    container, key = place(record, pointer)
    del container[key]


@pytest.mark.parametrize("name", [artefacts.DATA, artefacts.FP32, artefacts.INT8, artefacts.WEIGHTS, artefacts.REPORT])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_one_changed_byte_of_any_other_file_is_named(evidence, name, share):
    content = bytearray((evidence / name).read_bytes())
    content[int(share * (len(content) - 1))] ^= 0x01
    (evidence / name).write_bytes(content)
    findings = release.check(evidence)
    assert any(name in str(one) or one.pointer.endswith("sha256") for one in findings)
    own = {artefacts.WEIGHTS: "weights", artefacts.REPORT: "report"}.get(name, "benchmark_linkage")
    assert own in {one.area for one in findings}


def test_a_hashed_field_that_is_free_has_a_reason():
    assert all(len(reason) >= 20 for fields in FREE.values() for reason in fields.values())


def test_the_guide_lists_the_free_fields_and_the_words_looked_for():
    guide = (Path(__file__).parents[3] / "docs" / "evidence.md").read_text()
    for file, fields in FREE.items():
        for pointer, reason in fields.items():
            assert f"| `{file}` | `{pointer}` | {reason} |" in guide
    for topic, words in release.TOPICS.items():
        assert f"| {topic} | {', '.join(word.strip() for word in words)} |" in guide
