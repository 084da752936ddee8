"""Staging takes regular files and nothing else, and says what it left out."""

import os
import socket
from pathlib import Path

import pytest

from deep_learning_cases.errors import FileError, InputError
from grading.submission.stage import StageLimits, read_file, stage, unpack
from tests.grading.classroom import load_case


def left_out(staged) -> dict[str, str]:
    return {entry["name"]: entry["why"] for entry in staged.left_out}


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    folder = tmp_path / "submission"
    (folder / "evidence").mkdir(parents=True)
    (folder / "step.ipynb").write_text("{}")
    (folder / "evidence" / "benchmark.json").write_text("[]")
    return folder


def test_regular_files_are_copied_read_only(submission: Path, tmp_path: Path) -> None:
    staged = stage(submission, tmp_path / "scratch")
    assert staged.files == {"evidence/benchmark.json": 2, "step.ipynb": 2}
    assert staged.left_out == []
    copy = tmp_path / "scratch" / "step.ipynb"
    assert copy.read_text() == "{}"
    assert copy.stat().st_mode & 0o777 == 0o444


def test_links_of_the_attack_are_left_out_and_named(submission: Path, tmp_path: Path) -> None:
    load_case("files/symlinks_out.py").plant(submission)
    staged = stage(submission, tmp_path / "scratch")
    assert left_out(staged) == {"passwd.txt": "is a link", "up": "is a link", "benchmark.json": "is a link"}
    assert not any(path.is_symlink() for path in (tmp_path / "scratch").rglob("*"))
    assert not any(b"root:" in path.read_bytes() for path in (tmp_path / "scratch").rglob("*") if path.is_file())


def test_a_linked_submission_folder_is_refused(submission: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(submission)
    with pytest.raises(FileError, match="no link"):
        stage(tmp_path / "linked", tmp_path / "scratch")


def test_pipes_and_sockets_do_not_block(submission: Path, tmp_path: Path) -> None:
    os.mkfifo(submission / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        where = Path.cwd()
        os.chdir(submission)
        try:
            listener.bind("sock")
        finally:
            os.chdir(where)
        staged = stage(submission, tmp_path / "scratch")
    assert set(left_out(staged)) == {"pipe", "sock"}


@pytest.mark.parametrize("name", ["new\nline", "tab\t", " space", "back\\slash", "x" * 201, "bell\x07"])
def test_names_that_systems_read_differently_are_left_out(submission: Path, tmp_path: Path, name: str) -> None:
    (submission / name).write_text("x")
    staged = stage(submission, tmp_path / "scratch")
    assert len(staged.left_out) == 1
    assert "name" in staged.left_out[0]["why"]


def test_a_name_that_is_not_utf8_is_left_out(submission: Path, tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(submission) + b"/\xff"))).write_text("x")
    assert left_out(stage(submission, tmp_path / "scratch")) == {"\\udcff": "its name is not UTF-8"}


def test_sizes_counts_and_depth_are_capped(submission: Path, tmp_path: Path) -> None:
    (submission / "big").write_bytes(b"x" * 101)
    deep = submission / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    limits = StageLimits(files=3, bytes=1000, bytes_per_file=100, depth=2)
    why = left_out(stage(submission, tmp_path / "scratch", limits))
    assert why["a/b/c"] == "deeper than 2 folders"
    assert why["big"].startswith("101 bytes, too large")
    assert "step.ipynb" not in why
    (submission / "first").write_text("x")
    (submission / "second").write_text("x")
    assert left_out(stage(submission, tmp_path / "other", limits))["second"] == "more than 3 files"


def test_all_files_together_are_capped(submission: Path, tmp_path: Path) -> None:
    for name in "abc":
        (submission / name).write_bytes(b"x" * 60)
    staged = stage(submission, tmp_path / "scratch", StageLimits(bytes=130, bytes_per_file=100))
    assert sum(staged.files.values()) <= 130
    assert "c" in left_out(staged)


def test_a_sparse_file_costs_nothing(submission: Path, tmp_path: Path) -> None:
    with open(submission / "sparse", "wb") as stream:
        stream.truncate(10**13)
    assert "too large" in left_out(stage(submission, tmp_path / "scratch"))["sparse"]


def test_the_digest_follows_names_and_contents(submission: Path, tmp_path: Path) -> None:
    first = stage(submission, tmp_path / "a").digest
    assert stage(submission, tmp_path / "b").digest == first
    (submission / "step.ipynb").write_text("[]")
    assert stage(submission, tmp_path / "c").digest != first


def test_a_record_of_the_graders_own_name_is_not_taken(submission: Path, tmp_path: Path) -> None:
    (submission / ".grading.json").write_text("forged")
    assert ".grading.json" not in stage(submission, tmp_path / "scratch").files


def test_unpacking_stays_inside(tmp_path: Path) -> None:
    unpack({"a/b": b"x"}, tmp_path / "in")
    assert (tmp_path / "in" / "a" / "b").read_bytes() == b"x"
    for name in ("../out", "/etc/out", "a/../../out"):
        with pytest.raises(InputError, match="leads out"):
            unpack({name: b"x"}, tmp_path / "in")


def test_read_file_refuses_links_and_large_files(submission: Path) -> None:
    assert read_file(submission / "step.ipynb", 10) == b"{}"
    assert read_file(submission / "step.ipynb", 1) is None
    (submission / "link").symlink_to("step.ipynb")
    assert read_file(submission / "link", 10) is None
    assert read_file(submission, 10) is None
    assert read_file(submission / "missing", 10) is None


def test_kept_earlier_records_do_not_push_out_what_is_graded(tmp_path: Path) -> None:
    earlier = tmp_path / "submission" / "evidence" / "earlier"
    earlier.mkdir(parents=True)
    (earlier.parent / "model_int8.onnx").write_bytes(b"12345678")
    for number in range(3):
        (earlier / f"benchmark-{number}.json").write_text("{}")
    kept = stage(tmp_path / "submission", tmp_path / "few", StageLimits(files=2))
    assert set(kept.files) == {"evidence/model_int8.onnx", "evidence/earlier/benchmark-0.json"}


def test_other_files_do_not_push_out_what_is_graded(tmp_path: Path) -> None:
    source = tmp_path / "submission"
    (source / "evidence").mkdir(parents=True)
    for name in ("a.png", "b.png", "c.png", "evidence/data.npz", "step7.ipynb"):
        (source / name).write_bytes(b"12345678")
    kept = stage(source, tmp_path / "few", StageLimits(files=3))
    assert set(kept.files) == {"step7.ipynb", "evidence/data.npz", "a.png"}
    kept = stage(source, tmp_path / "small", StageLimits(bytes=20))
    assert set(kept.files) == {"step7.ipynb", "evidence/data.npz"}
