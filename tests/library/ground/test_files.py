"""Files are written whole or not at all, and read with bounds."""

import json
import os

import pytest

from deep_learning_cases import errors
from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.ground import command_line, files, handed_in


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "too deeply"),
        ("[" * 40 + "]" * 40, "deeper than 32"),
    ],
)
def test_json_that_another_reader_might_read_differently_is_refused_in_one_line(tmp_path, text, word):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(EvidenceError, match=word) as caught:
        files.read_json(path)
    assert "\n" not in str(caught.value)


def test_json_that_is_not_utf8_is_refused():
    with pytest.raises(EvidenceError, match="not valid JSON"):
        files.parse_json(b'{"a": "\xff"}', "x.json")


def test_a_file_over_the_bound_is_not_read_whole(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"1" * 101)
    with pytest.raises(EvidenceError, match="larger than 100 bytes"):
        files.read_json(path, max_bytes=100)
    path.write_bytes(b"1" * 100)
    assert files.read_json(path, max_bytes=100) == int("1" * 100)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.json"):
        files.read_json(tmp_path / "nothing.json")


def test_what_is_written_is_read_back(tmp_path):
    value = {"µs": [1.5, 2], "ok": True}
    files.write_json(tmp_path / "x.json", value)
    assert files.read_json(tmp_path / "x.json") == value
    assert files.file_record(tmp_path / "x.json") == {
        "file": "x.json",
        "sha256": files.sha256_file(tmp_path / "x.json"),
        "bytes": (tmp_path / "x.json").stat().st_size,
    }


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, failure):
    path = tmp_path / "x.json"
    files.write_json(path, {"version": 1})

    def fail(_descriptor):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((FileError, KeyboardInterrupt)):
        files.write_json(path, {"version": 2})
    assert json.loads(path.read_text()) == {"version": 1}
    assert [child.name for child in tmp_path.iterdir()] == ["x.json"]


def test_not_a_number_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "x.json", [float("nan")])
    assert not (tmp_path / "x.json").exists()


def test_sha256_of_the_published_example():
    # FIPS 180-4's example message "abc".
    assert files.sha256_bytes(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a POSIX thing")
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.json")
    for read in (files.read_json, files.sha256_file, files.file_record):
        with pytest.raises(FileError, match="not a regular file"):
            read(tmp_path / "x.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_device_or_pipe_is_not_replaced_by_a_file(tmp_path, through_a_link):
    pipe = path = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(FileError, match="not a regular file"):
        files.write_bytes(path, b"content")
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == before
    assert path.is_symlink() == through_a_link


def test_a_scratch_folder_speaks_of_room_only_where_there_is_none():
    with pytest.raises(FileError, match="no room for temporary files"), files.scratch_folder():
        raise OSError(28, "No space left on device")
    with pytest.raises(ConnectionResetError), files.scratch_folder():
        raise ConnectionResetError(104, "Connection reset by peer")


def test_a_link_is_followed_only_where_that_is_meant(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with files.open_regular(tmp_path / "link") as stream:
        assert stream.read() == b"content"
    with pytest.raises(OSError, match="a symbolic link"):
        files.open_regular(tmp_path / "link", links=False)
    told = {name: handed_in.read_regular(tmp_path / name, 100)[1] for name in ("file", "link", ".", "absent")}
    assert told == {
        "file": "",
        "link": "is a symbolic link: expected a regular file",
        ".": "is not a regular file",
        "absent": "is missing",
    }


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n  b\tc"), "a b c"),
        (ValueError(""), "ValueError"),
        ("\x1b[31mred\u202e", "?[31mred?"),
        ("x" * 200, "x" * 157 + "..."),
    ],
)
def test_whatever_a_library_complains_fits_on_one_line(error, line):
    assert errors.one_line(error) == line


def test_a_command_s_answer_and_a_written_file_are_the_same_json(tmp_path, capsys):
    value = {"é": [1, None], "b": 2.5}
    files.write_json(tmp_path / "a.json", value)
    command_line.print_json(value)
    assert capsys.readouterr().out == (tmp_path / "a.json").read_text()
    with pytest.raises(ValueError, match="JSON"):
        command_line.print_json(float("nan"))
