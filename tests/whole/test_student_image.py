"""The students' image: what goes into it, what must not, and whether its versions are the tested ones."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from deep_learning_cases.errors import EvidenceError, FileError
from grading import cli
from grading.commands import student_tree
from grading.course import build

ROOT = Path(__file__).resolve().parents[2]

CONDA_NAMES = {"matplotlib": "matplotlib-base", "torch": "pytorch-cpu"}
"""Where conda-forge calls a package otherwise than PyPI does."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("image") / "tree"
    student_tree.make(folder)
    return folder


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A small repository with one secret in it, laid out as ours."""
    root = tmp_path / "checkout"
    contents = {
        "binder/.dockerignore": (ROOT / student_tree.LIST).read_text(),
        "binder/environment.yml": "name: x\n",
        "binder/postBuild": "true\n",
        "deploy/student/jupyter_server_config.json": "{}\n",
        "pyproject.toml": "[project]\n",
        "README.md": "# The repository's: [how](grading/answers.py)\n",
        "binder/student-README.md": "# The students'\n",
        "docs/students.md": "![new](images/new.png) ![out](../../away.png) ![far](https://example.org/a.png)\n",
        "docs/images/new.png": "picture",
        "docs/images/instructors.png": "picture",
        "deep_learning_cases/__init__.py": "",
        "labs/release/step7.ipynb": "{}",
        "grading/answers.py": "secret",
    }
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


# What the image contains


def test_the_tree_holds_library_labs_and_settings_and_nothing_else(tree):
    tops = {path.name for path in tree.iterdir()}
    files = {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert tops == {"binder", "deep_learning_cases", "deploy", "docs", "labs"} | files
    assert {path.name for path in (tree / "deploy").iterdir()} == {"student"}
    assert {path.name for path in (tree / "docs").iterdir()} == {"students.md", "images"}
    labs = {path.relative_to(tree / "labs").as_posix() for path in (tree / "labs").rglob("*") if path.is_file()}
    assert labs >= {f"release/{name}.ipynb" for name in ("step1_to_6_prepare", "step7_latency_stats", "step8_release")}
    assert {Path(name).suffix for name in labs} == {".ipynb"}


def test_every_link_and_picture_in_the_tree_leads_somewhere_in_it(tree):
    pages = sorted(tree.rglob("*.md"))
    assert [page.relative_to(tree).as_posix() for page in pages] == ["README.md", "docs/students.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", target):
                place = (page.parent / target.split("#")[0]).resolve()
                assert place.is_relative_to(tree.resolve()), target
                assert place.exists(), target


def test_the_readme_is_the_students_and_offers_only_what_is_there(tree):
    text = (tree / "README.md").read_text(encoding="utf-8")
    assert text == (ROOT / "binder/student-README.md").read_text(encoding="utf-8")
    assert "dlcases lab" in text
    assert not re.search(r"\bmake \w|-m grading", text)
    assert not (tree / "binder/student-README.md").exists()


def test_a_package_builds_from_the_tree(tree, tmp_path):
    """Its README is the package's description, so it must be where pyproject.toml says."""
    backend = "from hatchling.build import build_wheel as build; import sys; print(build(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", backend, tmp_path], cwd=tree, capture_output=True, text=True, check=True
    )
    wheel = zipfile.ZipFile(tmp_path / done.stdout.split()[-1])
    (metadata,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
    assert "dlcases lab" in wheel.read(metadata).decode()


def test_no_answer_fixture_check_or_history_is_in_the_tree(tree):
    assert student_tree.findings(tree) == []
    text = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    for secret in _secret_lines():
        assert [path.name for path, content in text.items() if secret in content] == [], secret


def test_the_secret_lines_are_those_of_the_masters():
    lines = _secret_lines()
    assert len(lines) > 20
    assert b'"p95_us": samples[math.ceil(0.95 * n) - 1],' in lines


def _secret_lines() -> set[bytes]:
    """Lines of reference solutions, long enough to stand nowhere else by chance."""
    lines = set()
    for master in sorted(build.MASTERS.glob("*/*.py")):
        text = master.read_text(encoding="utf-8")
        for solution in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", text, flags=re.DOTALL):
            lines |= {line.strip().encode() for line in solution.splitlines() if len(line.strip()) > 40}
    return lines


def test_every_lab_and_every_folder_of_the_library_is_listed():
    listed = (ROOT / student_tree.LIST).read_text()
    for assignment in build.assignments():
        assert f"!labs/{assignment}/*.ipynb" in listed
    for folder in {path.parent for path in (ROOT / "deep_learning_cases").rglob("*.py")}:
        assert f"!{folder.relative_to(ROOT).as_posix()}/*.py" in listed


def test_the_list_names_the_pictures_that_the_pages_show(tree):
    """So that an image of the repository, by way of the list alone, has them as well, and no others."""
    listed = re.findall(r"^!(docs/images/.+)$", (ROOT / student_tree.LIST).read_text(), flags=re.MULTILINE)
    shown = [path.relative_to(tree).as_posix() for path in (tree / "docs/images").iterdir()]
    assert sorted(listed) == sorted(shown)


def test_repo2docker_reads_the_list_as_we_do():
    """Its own reading of .dockerignore, on this checkout; git decides which of the files are ours."""
    rules = pytest.importorskip("docker.utils.build")
    lines = [line for line in (ROOT / student_tree.LIST).read_text().splitlines() if line and line[0] != "#"]
    theirs = {name for name in rules.exclude_paths(str(ROOT), lines) if (ROOT / name).is_file()}
    assert set(student_tree.allowed()) <= theirs
    assert not [name for name in theirs if name.startswith(("grading", "tests", ".git", "benchmarks"))]


# What must not happen


def test_only_listed_files_are_copied(checkout, tmp_path):
    names = [path.relative_to(tmp_path / "out").as_posix() for path in student_tree.make(tmp_path / "out", checkout)]
    assert "labs/release/step7.ipynb" in names
    assert not [name for name in names if name.startswith("grading")]


def test_a_picture_of_a_page_comes_along_unlisted_and_no_other(checkout, tmp_path):
    (tmp_path / "away.png").write_text("not of the repository")
    student_tree.make(tmp_path / "out", checkout)
    assert [path.name for path in (tmp_path / "out").rglob("*.png")] == ["new.png"]
    assert (tmp_path / "out/README.md").read_text() == "# The students'\n"


def test_the_last_line_names_both_uses(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "differences", list)
    assert cli.main(["student-tree", str(tmp_path / "out")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "hand it out" in last
    assert f"--image-name NAME {tmp_path / 'out'}" in last


def test_a_stray_notebook_stays_behind(checkout, tmp_path):
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", checkout, *words], check=True)
    (checkout / "labs/release/solved.ipynb").write_text("{}")
    student_tree.make(tmp_path / "out", checkout)
    assert not (tmp_path / "out/labs/release/solved.ipynb").exists()
    assert not (tmp_path / "out/.git").exists()


def test_a_link_is_not_followed(checkout, tmp_path):
    (checkout / "labs/release/step9.ipynb").symlink_to(checkout / "grading/answers.py")
    student_tree.make(tmp_path / "out", checkout)
    assert not (tmp_path / "out/labs/release/step9.ipynb").exists()


def test_a_secret_in_a_listed_file_stops_the_tree_and_leaves_nothing(checkout, tmp_path):
    (checkout / "labs/release/step7.ipynb").write_text("### BEGIN SOLUTION")
    with pytest.raises(EvidenceError, match="BEGIN SOLUTION"):
        student_tree.make(tmp_path / "out", checkout)
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_not_mixed_with_the_new_tree(checkout, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/fixtures.seed").write_text("1")
    with pytest.raises(FileError, match="empty folder"):
        student_tree.make(tmp_path / "out", checkout)


def test_a_list_that_is_not_one_of_exceptions_is_refused(checkout, tmp_path):
    (checkout / student_tree.LIST).write_text("*\n!labs\ngrading\n")
    with pytest.raises(FileError, match="exceptions"):
        student_tree.make(tmp_path / "out", checkout)


@pytest.mark.parametrize("name", [".git", "grading", "tests", "benchmarks"])
def test_the_build_itself_refuses_a_context_that_was_not_filtered(tree, tmp_path, name):
    """For a tool that does not read the list: the image is not built at all."""
    shutil.copytree(tree, tmp_path / "image")
    (tmp_path / "image" / name).mkdir()
    done = subprocess.run(["bash", "binder/postBuild"], cwd=tmp_path / "image", capture_output=True, text=True)
    assert done.returncode == 1
    assert name in done.stderr
    assert "student-tree" in done.stderr


def test_an_image_of_the_repository_gets_the_students_readme_too(tree, tmp_path):
    """Where the list alone chose the files, the build puts the README in its place; no pip here, so it stops after."""
    shutil.copytree(tree, tmp_path / "image")
    (tmp_path / "image/README.md").write_text("the repository's")
    shutil.copy(ROOT / "binder/student-README.md", tmp_path / "image/binder")
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NB_PYTHON_PREFIX": str(tmp_path / "nowhere")}
    subprocess.run(["bash", "binder/postBuild"], cwd=tmp_path / "image", env=environment, capture_output=True)
    assert (tmp_path / "image/README.md").read_bytes() == (ROOT / "binder/student-README.md").read_bytes()


@pytest.mark.slow
def test_the_build_script_installs_the_library_and_finds_the_notebooks(tree, tmp_path):
    shutil.copytree(tree, tmp_path / "image")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "NB_PYTHON_PREFIX": str(tmp_path / "venv")}
    subprocess.run(["bash", "binder/postBuild"], cwd=tmp_path / "image", env=environment, check=True)
    code = "from deep_learning_cases import lab; print(lab.notebooks_folder())"
    # The library's own requirements come from conda in an image; finding the notebooks needs none of them.
    found = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(tmp_path / "venv/share/deep_learning_cases/labs")
    assert (tmp_path / "venv/etc/jupyter/jupyter_server_config.json").is_file()
    left = {path.name for path in (tmp_path / "image").iterdir()}
    assert left == {"binder", "docs", "labs", "README.md", "LICENSE"}


# The environment


def test_both_environment_files_are_the_same():
    assert (ROOT / "environment.yml").read_bytes() == (ROOT / "binder/environment.yml").read_bytes()


def test_the_environment_is_the_students_side_of_pyproject_at_the_tested_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {_name(line) for line in [*project["dependencies"], *extras["torch"], *extras["lab"], *extras["service"]]}
    pins = _pins()
    assert pins.keys() - {"python", "pip"} == {CONDA_NAMES.get(name, name) for name in wanted}
    tested = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    for name in sorted(wanted):
        assert pins[CONDA_NAMES.get(name, name)] == tested[name], name


def test_the_environments_python_is_one_that_the_library_takes():
    from packaging.specifiers import SpecifierSet

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"{_pins()['python']}.0" in SpecifierSet(project["requires-python"])


def test_the_environment_comes_from_conda_forge_alone():
    file = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert file["channels"] == ["conda-forge", "nodefaults"]
    assert all(re.fullmatch(r"[a-z0-9-]+(=[0-9.]+)?", line) for line in file["dependencies"])


def _pins() -> dict[str, str]:
    lines = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return {line.split("=")[0]: line.partition("=")[2] for line in lines}


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement)[0].lower()
