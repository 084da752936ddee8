"""The work folder: notebooks land there, and a student's work is never overwritten."""

import pytest

from deep_learning_cases import lab
from deep_learning_cases.errors import FileError


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "labs" / "release"
    folder.mkdir(parents=True)
    (folder / "a.ipynb").write_text("version 1")
    return folder.parent


def test_the_first_copy_is_new_and_the_second_changes_nothing(tmp_path, source):
    work = tmp_path / "work"
    assert lab.prepare(work, source)["new"] == ["release/a.ipynb"]
    assert lab.prepare(work, source)["kept"] == ["release/a.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "version 1"


def test_an_untouched_notebook_is_renewed(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (source / "release/a.ipynb").write_text("version 2")
    assert lab.prepare(work, source)["renewed"] == ["release/a.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "version 2"


def test_changed_work_stays_and_the_newer_version_lands_beside_it(tmp_path, source):
    work = tmp_path / "work"
    lab.prepare(work, source)
    (work / "release/a.ipynb").write_text("my answers")
    assert lab.prepare(work, source)["kept"] == ["release/a.ipynb"]
    (source / "release/a.ipynb").write_text("version 2")
    result = lab.prepare(work, source)
    assert result["beside"] == ["release/a.new.ipynb"]
    assert (work / "release/a.ipynb").read_text() == "my answers"
    assert (work / "release/a.new.ipynb").read_text() == "version 2"
    assert any("release/a.new.ipynb" in line for line in lab.lines(result))


def test_a_place_that_cannot_be_made_is_one_line(tmp_path, source):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot"):
        lab.prepare(tmp_path / "file" / "work", source)
