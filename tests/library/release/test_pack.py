"""What leaves the machine: a package that verifies itself, and a kit that needs nothing of ours."""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import deep_learning_cases
from deep_learning_cases import release, report
from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.ground import archive, files
from deep_learning_cases.models import artefacts
from deep_learning_cases.release import pack
from deep_learning_cases.release.report import facts as report_facts


@pytest.fixture
def package(evidence) -> Path:
    (evidence.parent / "step7.ipynb").write_text("{}")
    (evidence.parent / ".hidden.py").write_text("secret")
    (evidence.parent / "linked.py").symlink_to("/etc/passwd")
    return pack.pack(evidence)


@pytest.fixture
def kit(evidence, tmp_path) -> Path:
    """The unpacked target kit."""
    place = tmp_path / "elsewhere"
    with zipfile.ZipFile(pack.target_kit(evidence)) as packed:
        packed.extractall(place)
    return place / "target-kit"


def repacked(path: Path, change) -> Path:
    """The same package after ``change(members)``, its manifest left as it was."""
    members = archive.read_zip(path)
    change(members)
    path.write_bytes(archive.zip_bytes(members))
    return path


def test_a_package_holds_everything_and_verifies(package, evidence):
    members = archive.read_zip(package)
    for name in (artefacts.DATA, artefacts.BENCHMARK, artefacts.RELEASE, artefacts.REPORT):
        assert members[f"evidence/{name}"] == (evidence / name).read_bytes()
    assert "notebooks/step7.ipynb" in members
    assert {"reproduce.py", "conditions.json", "manifest.json", "README.txt", "requirements.txt"} <= set(members)
    assert "library/deep_learning_cases/ground/schemas/release-1.json" in members
    assert not [name for name in members if "hidden" in name or "linked" in name or "pycache" in name]
    assert json.loads(members["conditions.json"])["protocol"]["rounds"] == 3
    assert pack.check_zip(package) == []


def test_the_same_folder_gives_the_same_package(package, evidence):
    first = package.read_bytes()
    assert pack.pack(evidence).read_bytes() == first
    assert pack.target_kit(evidence).read_bytes() == pack.target_kit(evidence).read_bytes()


def test_a_missing_report_is_written_before_packing(evidence, tmp_path):
    (evidence / artefacts.REPORT).unlink()
    path = pack.pack(evidence, out=tmp_path / "mine.zip")
    assert path == tmp_path / "mine.zip"
    assert f"evidence/{artefacts.REPORT}" in archive.read_zip(path)


def test_a_packed_folder_repeats_its_check_from_its_own_library(package, tmp_path):
    with zipfile.ZipFile(package) as packed:
        packed.extractall(tmp_path / "out")
    script = tmp_path / "out" / "reproduce.py"
    done = subprocess.run(
        [sys.executable, "-P", script, "check"], cwd=tmp_path, env=plain_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hang together" in done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("manifest.json"), "manifest.json: is missing"),
        (lambda m: m.update({"manifest.json": b"[" * 10_000}), "manifest.json"),
        (lambda m: m.update({"evidence/extra.txt": b"x"}), "extra.txt"),
        (lambda m: m.pop("README.txt"), "README.txt"),
        (lambda m: m.update({"reproduce.py": b"print(1)"}), "reproduce.py"),
        (lambda m: m.update({"evidence/benchmark.json": b"{}"}), "benchmark.json"),
    ],
)
def test_a_changed_package_says_what_changed(package, change, message):
    assert message in " ".join(map(str, pack.check_zip(repacked(package, change))))


def test_evidence_in_a_package_is_checked_like_a_folder(evidence):
    record = json.loads((evidence / artefacts.RELEASE).read_text())
    (evidence / artefacts.RELEASE).write_text(json.dumps(record | {"universally_faster": "false"}))
    findings = pack.check_zip(pack.pack(evidence))
    assert {one.area for one in findings} == {"release_claims"}


def test_a_target_kit_in_place_of_a_package_is_one_line(evidence):
    (finding,) = pack.check_zip(pack.target_kit(evidence))
    assert str(finding).startswith("evidence-target-kit.zip: this is a target kit, not evidence; ")
    assert "measure.py" in finding.redo


def raw_zip(path: Path, entries, **options) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as packed:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            packed.writestr(info, content)
    return path


FILE = stat.S_IFREG | 0o644


@pytest.mark.parametrize(
    "entries",
    [
        [("../outside.txt", b"x", FILE)],
        [("/etc/passwd", b"x", FILE)],
        [("evidence/../../x", b"x", FILE)],
        [("c:\\x", b"x", FILE)],
        [("evidence/link", b"/etc/passwd", stat.S_IFLNK | 0o777)],
        [("evidence/device", b"", stat.S_IFCHR | 0o600)],
        [("a.txt", b"x", FILE), ("A.txt", b"x", FILE)],
        [("line\nbreak", b"x", FILE)],
        [(f"{number}.txt", b"", FILE) for number in range(archive.MAX_MEMBERS + 1)],
        [("bomb.bin", bytes(archive.MAX_UNPACKED_BYTES + 1), FILE)],
    ],
)
def test_dangerous_zips_are_findings_and_nothing_is_unpacked(tmp_path, entries):
    path = raw_zip(tmp_path / "bad.zip", entries)
    before = sorted(tmp_path.iterdir())
    (finding,) = pack.check_zip(path)
    assert finding.area == "package"
    assert "\n" not in str(finding)
    assert sorted(tmp_path.iterdir()) == before


def test_a_size_that_the_zip_understates_is_not_believed(tmp_path):
    path = raw_zip(tmp_path / "lie.zip", [("a.bin", bytes(1_000_000), FILE)])
    content = bytearray(path.read_bytes())
    real = (1_000_000).to_bytes(4, "little")
    assert content.count(real) == 2
    path.write_bytes(bytes(content).replace(real, (10).to_bytes(4, "little")))
    assert [one.area for one in pack.check_zip(path)] == ["package"]


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_package_is_a_finding(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    assert "package" in {one.area for one in pack.check_zip(tmp_path / "x.zip")}


def test_a_truncated_package_is_a_finding(package):
    content = package.read_bytes()
    for length in (len(content) // 2, len(content) - 10):
        package.write_bytes(content[:length])
        assert [one.area for one in pack.check_zip(package)] == ["package"]


@pytest.mark.parametrize("around", [(b"#!/bin/sh\n", b""), (b"", b"more"), (b"", b"\0")], ids=repr)
def test_bytes_around_the_members_are_a_finding(package, around):
    package.write_bytes(around[0] + package.read_bytes() + around[1])
    assert [one.area for one in pack.check_zip(package)] == ["package"]


def test_a_zip_comment_is_a_finding(package):
    with zipfile.ZipFile(package, "a") as opened:
        opened.comment = b"hidden"
    assert [one.area for one in pack.check_zip(package)] == ["package"]


@pytest.mark.parametrize("name", ["evidence/page.html", "run.sh", "evidence/deeper/release.json"])
def test_a_stranger_that_the_manifest_lists_is_still_a_stranger(package, name):
    members = archive.read_zip(package) | {name: b"<script>"}
    manifest = json.loads(members["manifest.json"])
    manifest["files"][name] = {"sha256": files.sha256_bytes(b"<script>"), "bytes": 8}
    members["manifest.json"] = json.dumps(manifest).encode()
    package.write_bytes(archive.zip_bytes(members))
    assert [(one.file, one.message) for one in pack.check_zip(package)] == [(name, "is not part of a package")]


def test_a_key_twice_in_the_manifest_is_a_finding(package):
    members = archive.read_zip(package)
    members["manifest.json"] = members["manifest.json"].replace(b"{", b'{"schema": "mine",', 1)
    package.write_bytes(archive.zip_bytes(members))
    assert ["twice" in one.message for one in pack.check_zip(package)] == [True]


def test_no_file_is_an_error_in_one_line(tmp_path):
    with pytest.raises(FileError):
        pack.check_zip(tmp_path / "nowhere.zip")
    with pytest.raises(FileError):
        pack.pack(tmp_path / "nowhere")
    with pytest.raises(FileError):
        pack.target_kit(tmp_path / "nowhere")


BLOCKED = ("onnx", "jsonschema", "sklearn", "scipy", "torch", "matplotlib", "tqdm", "IPython", "pandas", "psutil")

BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def plain_environment(**extra: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
    return kept | extra


def run_kit(kit: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the kit where nothing but NumPy and ONNX Runtime can be imported, in its child processes as well.

    The blocker comes in as a sitecustomize module; the editable install of this library is blocked by hiding its hook.
    """
    hooks = tmp_path / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(
        BLOCKER + "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
        f"sys.path[:] = [p for p in sys.path if p != {str(Path(deep_learning_cases.__path__[0]).parent)!r}]\n"
    )
    return subprocess.run(
        [sys.executable, *(arguments if "-c" in arguments else [kit / "measure.py", *arguments])],
        cwd=tmp_path,
        env=plain_environment(PYTHONPATH=str(hooks)),
        capture_output=True,
        text=True,
    )


def test_the_kit_holds_what_it_imports_and_no_more(kit):
    modules = {path.stem for path in (kit / "deep_learning_cases").rglob("*.py")}
    assert {"bench", "stats", "trial", "target_kit"} <= modules
    assert not modules & {"release", "report", "plots", "cli", "network", "quantization", "schemas", "artefacts"}


@pytest.mark.parametrize("module", ["tqdm", "onnx", "jsonschema", "deep_learning_cases"])
def test_the_kit_is_run_where_nothing_else_can_be_imported(kit, tmp_path, module):
    assert f"No module named '{module}'" in run_kit(kit, tmp_path, "-c", f"import {module}").stderr


def test_the_kit_measures_with_numpy_and_onnx_runtime_alone(kit, evidence, tmp_path):
    (kit / artefacts.TARGET).write_text("measured before")
    done = run_kit(kit, tmp_path, "--device", "a <b>board</b>")
    assert done.returncode == 0, done.stderr
    assert [path.read_text() for path in (kit / "earlier").iterdir()] == ["measured before"]
    assert done.stderr.startswith("the earlier target_benchmark.json is kept as ")
    record = files.read_json(kit / artefacts.TARGET)
    assert len(record["benchmark"]["runs"]) == 6
    (evidence / artefacts.TARGET).write_bytes((kit / artefacts.TARGET).read_bytes())
    assert release.check(evidence) == []
    page = report.build(evidence).read_text()
    assert "a &lt;b&gt;board&lt;/b&gt;" in page
    assert release.check(evidence) == []


@pytest.mark.parametrize("option", [["--rounds", "3"], ["--timeout-s", "soon"], ["--device"]], ids=lambda o: o[0])
def test_a_bad_option_of_the_kit_is_one_line(kit, tmp_path, option):
    done = run_kit(kit, tmp_path, *option)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("measure.py: ")
    assert option[0] in done.stderr
    assert "--help" in done.stderr


def test_the_kit_refuses_files_that_are_not_its_own(kit, tmp_path):
    path = kit / "evidence" / artefacts.INT8
    path.write_bytes(path.read_bytes() + b"\0")
    done = run_kit(kit, tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "not the file that was packed" in done.stderr
    assert not (kit / artefacts.TARGET).exists()


def test_a_damaged_model_does_not_go_into_a_kit(evidence):
    (evidence / artefacts.INT8).write_bytes(b"no model")
    with pytest.raises(EvidenceError, match="cannot go into a kit"):
        pack.target_kit(evidence)


@pytest.fixture
def with_target(evidence) -> Path:
    """A folder with a target record, made from the local one by slower timings and other processes."""
    benchmark = json.loads((evidence / artefacts.BENCHMARK).read_text())
    for run in benchmark["runs"]:
        run["pid"] += 1000
        run["samples_us"] = {size: [3 * one for one in samples] for size, samples in run["samples_us"].items()}
    from deep_learning_cases.measuring import bench_record, stats

    benchmark["summary"] = bench_record.summary_of(benchmark, stats.latency_summary)
    record = {
        "schema": "deep-learning-cases/target_benchmark/1",
        "created_at": "2026-01-31T12:00:00Z",
        "device": "board",
        "benchmark": benchmark,
    }
    (evidence / artefacts.TARGET).write_text(json.dumps(record))
    return evidence


def test_a_target_record_is_shown_beside_and_never_mixed(with_target):
    assert release.check(with_target) == []
    before = release.collect(with_target)
    facts = report_facts.Facts.read(with_target)
    assert facts.target["device"] == "board"
    (with_target / artefacts.TARGET).unlink()
    assert release.collect(with_target) == before


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("benchmark", "data", "sha256"), "0" * 64),
        (("benchmark", "models", "int8", "sha256"), "0" * 64),
        (("benchmark", "protocol", "rounds"), 4),
        (("benchmark", "protocol", "threads"), 2),
        (("benchmark", "summary", "int8", "1", "p95_us"), 1.0),
        (("schema",), "deep-learning-cases/benchmark/1"),
        (("device",), ""),
        (("benchmark",), None),
    ],
)
def test_a_target_record_of_anything_else_is_refused(with_target, place, value):
    path = with_target / artefacts.TARGET
    record = json.loads(path.read_text())
    container = record
    for step in place[:-1]:
        container = container[step]
    container[place[-1]] = value
    path.write_text(json.dumps(record))
    findings = release.check(with_target)
    assert {one.area for one in findings} == {"target_benchmark"}
    assert any(one.pointer == "/" + "/".join(place) for one in findings)
    assert report_facts.Facts.read(with_target).target is None


def test_the_local_record_is_no_target_record(with_target):
    path = with_target / artefacts.TARGET
    record = json.loads(path.read_text())
    record["benchmark"] = json.loads((with_target / artefacts.BENCHMARK).read_text())
    path.write_text(json.dumps(record))
    assert "very timings" in str(release.check(with_target)[0])


def test_a_link_in_place_of_the_target_record_is_a_finding(evidence, tmp_path):
    shutil.copy(evidence / artefacts.BENCHMARK, tmp_path / "other.json")
    (evidence / artefacts.TARGET).symlink_to(tmp_path / "other.json")
    assert [one.area for one in release.check(evidence)] == ["target_benchmark"]
