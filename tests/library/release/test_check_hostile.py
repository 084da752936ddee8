"""Evidence handed in by somebody who means harm, or whose disk was full: always findings, never an exception."""

import json
import os
import shutil
import time

import numpy as np
import pytest

from deep_learning_cases import release
from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.ground.handed_in import MAX_NODES
from deep_learning_cases.models import artefacts

JSON_FILES = (artefacts.BENCHMARK, artefacts.REGRESSION, artefacts.RELEASE)
ALL_OF = {
    artefacts.BENCHMARK: {"benchmark_record", "benchmark_linkage", "benchmark_summary"},
    artefacts.REGRESSION: {"regression"},
    artefacts.RELEASE: {"release_linkage", "release_limits", "release_claims"},
}
STALE = {"report"}


def areas(folder):
    findings = release.check(folder)
    for one in findings:
        assert "\n" not in str(one)
        assert str(one).isprintable()
        assert len(str(one)) < 1200
        assert one.redo
    return {one.area for one in findings}


def edit(folder, file, change):
    path = folder / file
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_clean_evidence_has_no_findings(evidence):
    assert release.check(evidence) == []


def test_a_model_converted_after_measuring(evidence):
    path = evidence / artefacts.INT8
    path.write_bytes(path.read_bytes() + b"\0")
    assert areas(evidence) >= {"benchmark_linkage", "regression", "release_linkage"}
    assert not areas(evidence) & {"benchmark_record", "benchmark_summary", "release_claims"}
    linkage = [one for one in release.check(evidence) if one.area == "benchmark_linkage"]
    assert any(one.pointer == "/models/int8/sha256" for one in linkage)
    assert all("regression and measure again" in one.redo for one in linkage)


def test_claims_as_text_fail_the_claims_and_nothing_else(evidence):
    def change(record):
        record["target_benchmark_required"], record["universally_faster"] = "true", "false"

    edit(evidence, artefacts.RELEASE, change)
    assert areas(evidence) == {"release_claims"} | STALE


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 0, True, "12.5", None, 10**30])
def test_a_sample_that_is_no_time(evidence, number):
    edit(evidence, artefacts.BENCHMARK, lambda record: record["runs"][0]["samples_us"]["1"].__setitem__(0, number))
    found = areas(evidence)
    assert {"benchmark_record", "benchmark_summary"} <= found
    assert not found & {"benchmark_linkage", "regression", "release_claims"}


def test_a_round_that_is_missing(evidence):
    edit(evidence, artefacts.BENCHMARK, lambda r: r.update(runs=[run for run in r["runs"] if run["round"] != 3]))
    messages = [str(one) for one in release.check(evidence) if one.area == "benchmark_record"]
    assert messages
    assert "holds 4 entries: expected 6" in messages[0]


def test_a_pickle_in_the_archive_is_never_loaded(evidence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Bomb:
        def __reduce__(self):
            return (os.system, ("touch PLANTED",))

    np.savez(evidence / artefacts.DATA, images=np.array([Bomb()], dtype=object), labels=np.array([0]))
    assert "benchmark_linkage" in areas(evidence)
    assert not (tmp_path / "PLANTED").exists()


@pytest.mark.parametrize("name", [*JSON_FILES, artefacts.DATA, artefacts.FP32, artefacts.INT8])
@pytest.mark.parametrize(
    "damage", ["missing", "folder", "link", "dangling", "pipe", "empty", "garbage", "huge", "unreadable text"]
)
def test_damaged_files_are_findings(evidence, tmp_path, name, damage):
    path = evidence / name
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif damage == "pipe":
        os.mkfifo(path)
    elif damage == "huge":
        with path.open("wb") as stream:
            stream.truncate(1 << 34)  # a sparse file
    elif damage != "missing":
        path.write_bytes({"empty": b"", "garbage": bytes(range(256)) * 4, "unreadable text": b'{"\xff": 1}'}[damage])
    started = time.monotonic()
    found = areas(evidence)
    assert time.monotonic() - started < 60
    assert found >= ALL_OF.get(name, {"benchmark_linkage", "regression", "release_linkage", "release_limits"})


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b"[" + b"0," * 60_000 + b"0]",
        b"null", b"[]", b"true", b'"text"', b"12", b"{}",
        b'{"schema": ' + b"9" * 5000 + b"}",
        b'\xef\xbb\xbf{"schema": 1}',
        b'{"runs": {"0": []}, "models": [], "protocol": {"order": 7}, "summary": null, "not_claimed": {"a": [1]}}',
        b'{"runs": [[], 1, null, {"model": [], "pid": [], "samples_us": 3, "round": {}}], "models": {"int8": 1}}',
        b'{"accuracy": {"baseline": {}, "candidate": []}, "per_class": [{}, 1], "decision": [], "environment": 3}',
        json.dumps({"a\nb\x1b[31m/~": "\ud800" * 500, "x" * 100_000: 1}).encode(),
    ],
)  # fmt: skip
def test_json_of_the_wrong_form_fails_every_part_that_it_should_support(evidence, name, content):
    (evidence / name).write_bytes(content)
    assert areas(evidence) >= ALL_OF[name]
    assert len(release.check(evidence)) < 150


def test_a_key_that_stands_twice_fails_its_own_part(evidence):
    path = evidence / artefacts.RELEASE
    path.write_text(
        path.read_text().replace('"universally_faster"', '"universally_faster": true, "universally_faster"')
    )
    assert areas(evidence) == {"release_claims"} | STALE
    assert any("twice" in one.message for one in release.check(evidence))


def test_a_file_with_too_many_values_is_not_walked(evidence):
    edit(evidence, artefacts.RELEASE, lambda record: record.update(extra=[0] * (MAX_NODES + 1)))
    assert any("more than" in one.message for one in release.check(evidence))


def test_an_unknown_key_is_a_claim(evidence):
    edit(evidence, artefacts.RELEASE, lambda record: record.update(fast_on_every_phone=True))
    assert areas(evidence) == {"release_claims"} | STALE


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        ([], "latency"),
        (["latency", "memory", "power", "hard real-time bound"], "authenticity"),
        (["latency and memory on the device", "hard real-time bound", "that times are authentic"], "power"),
        (["latency, memory and power", "authentic times"], "real-time"),
        (["latency, memory and power in real time, which may improve"], "authenticity"),
        (["latency, power and deadlines of the program, not authentic"], "memory"),
        (["latency", "memory", "power", "real-time", "authenticity", ""], "none of them empty"),
        ("latency, memory, power, real-time, authenticity", "names"),
        ([1, 2], "sentences"),
    ],
)
def test_what_is_not_claimed_has_to_be_said(evidence, lines, missing):
    edit(evidence, artefacts.RELEASE, lambda record: record.update(not_claimed=lines))
    assert areas(evidence) == {"release_claims"} | STALE
    assert any(missing in one.message for one in release.check(evidence))


@pytest.mark.parametrize(
    "lines",
    [
        ["latency", "memory", "power", "hard_real_time_bound", "authenticity_of_times"],
        ["How fast it is on a phone: its speed, its energy, its RAM use.", "Any deadline.", "A proof of the times."],
    ],
)
def test_the_same_in_other_words_passes(evidence, lines):
    edit(evidence, artefacts.RELEASE, lambda record: record.update(not_claimed=lines))
    assert areas(evidence) == STALE


def test_two_runs_in_one_process(evidence):
    edit(evidence, artefacts.BENCHMARK, lambda r: r["runs"][3].update(pid=r["runs"][0]["pid"]))
    assert any(one.pointer == "/runs/3/pid" for one in release.check(evidence))


def test_averaged_p95_is_named_as_not_following_from_the_samples(evidence):
    def change(record):
        record["summary"]["fp32"]["1"]["p95_us"] += 0.5

    edit(evidence, artefacts.BENCHMARK, change)
    assert areas(evidence) == {"benchmark_summary", "release_linkage"} | STALE


def test_the_other_order_of_models_is_as_good(evidence):
    """Which model begins is free; that they alternate is not."""

    def swap(record):
        other = {"fp32": "int8", "int8": "fp32"}
        record["protocol"]["order"] = [[other[name] for name in names] for names in record["protocol"]["order"]]
        runs = record["runs"]
        record["runs"] = [runs[at] for at in (1, 0, 3, 2, 5, 4)]
        for index, run in enumerate(record["runs"]):
            run["position"] = index % 2 + 1

    edit(evidence, artefacts.BENCHMARK, swap)
    assert "benchmark_record" not in areas(evidence)
    edit(evidence, artefacts.BENCHMARK, lambda record: record["protocol"].update(order=[["int8", "fp32"]] * 3))
    assert "benchmark_record" in areas(evidence)


def test_on_another_machine_a_tipped_image_is_allowed_if_everything_follows(evidence):
    """One image more wrong for int8, told consistently; the environment names another processor."""

    def change(record):
        row = record["per_class"][0]
        row["int8"] = (round(row["int8"] * row["images"]) - 1) / row["images"]
        record["accuracy"]["int8"] -= 1 / record["images"]
        record["loss_pp"] += 100 / record["images"]

    edit(evidence, artefacts.REGRESSION, change)
    assert "regression" in areas(evidence)
    edit(evidence, artefacts.BENCHMARK, lambda record: record["environment"]["cpu"].update(model="another"))
    assert "regression" not in areas(evidence)
    edit(evidence, artefacts.REGRESSION, lambda record: record.update(loss_pp=record["loss_pp"] - 0.2))
    assert "regression" in areas(evidence)


def test_every_message_says_no_more_than_the_files_show(evidence):
    for name in JSON_FILES:
        (evidence / name).write_bytes(b"{}")
    text = " ".join(map(str, release.check(evidence))).lower()
    for word in ("cheat", "fraud", "fake", "forged", "you ", "proves"):
        assert word not in text


def test_no_folder_is_an_error_in_one_line(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(FileError, match="is not a folder"):
            release.check(path)
    (tmp_path / "empty").mkdir()
    assert areas(tmp_path / "empty") >= set(release.AREAS)


def test_collect_leaves_decision_and_claims_to_the_author(evidence):
    record = release.collect(evidence)
    whole = json.loads((evidence / artefacts.RELEASE).read_text())
    assert set(whole) - set(record) == {"decision", "target_benchmark_required", "universally_faster", "not_claimed"}
    assert {key: whole[key] for key in record} == record
    assert release.make(evidence) == whole


def test_collect_works_whatever_the_stated_summary_says(evidence):
    edit(evidence, artefacts.BENCHMARK, lambda record: record.update(summary={}))
    assert release.collect(evidence)["latency"]["int8"]["32"]["n"] == 300


def test_stale_evidence_is_not_judged(evidence):
    path = evidence / artefacts.INT8
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(EvidenceError, match="measure again"):
        release.make(evidence)


def test_write_refuses_a_record_that_breaks_the_schema(evidence):
    before = (evidence / artefacts.RELEASE).read_bytes()
    with pytest.raises(EvidenceError, match="target_benchmark_required"):
        release.write(evidence, release.make(evidence) | {"target_benchmark_required": "true"})
    assert (evidence / artefacts.RELEASE).read_bytes() == before


def test_checking_changes_nothing(evidence, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(evidence, copy)
    release.check(evidence)
    assert {p.name: p.read_bytes() for p in evidence.iterdir()} == {p.name: p.read_bytes() for p in copy.iterdir()}


def test_a_changed_file_is_called_by_its_name(evidence):
    model = evidence / "model_int8.onnx"
    model.write_bytes(model.read_bytes() + b"\0")
    messages = [str(one) for one in release.check(evidence) if one.pointer == "/models/int8/sha256"]
    assert messages
    assert all("the SHA-256 of model_int8.onnx as it is now" in message for message in messages)
