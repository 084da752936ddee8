"""Where a course's configuration comes from: ours, the machine's exchange, then the course's own file."""

import pytest

from grading.course_config import COURSE_ID, course_config


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A Jupyter configuration folder that names an exchange, and something that is not the machine's to say."""
    folder = tmp_path / "jupyter"
    folder.mkdir()
    text = 'c = get_config()\nc.Exchange.root = "/srv/exchange"\nc.CourseDirectory.course_id = "another"\n'
    (folder / "nbgrader_config.py").write_text(text)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder))
    return folder


def test_the_exchange_is_found_where_nbgrader_would_find_it(tmp_path):
    config = course_config(tmp_path)
    assert config.Exchange.root == "/srv/exchange"
    assert config.CourseDirectory.course_id == COURSE_ID
    assert config.CourseDirectory.root == str(tmp_path)


def test_the_courses_own_file_has_the_last_word(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text('c = get_config()\nc.Exchange.root = "/srv/ours"\n')
    assert course_config(tmp_path).Exchange.root == "/srv/ours"
