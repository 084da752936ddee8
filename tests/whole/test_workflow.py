"""What a pull request has to pass is what the Makefile offers to everybody, with no rights and no secrets."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "check.yml"


@pytest.fixture
def workflow() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW.read_text())


def test_each_job_runs_one_target_of_the_makefile(workflow: dict[str, Any]) -> None:
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in workflow["jobs"].items()}
    assert runs == {"check": ["make check"], "test": ["make test"]}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in runs)


def test_it_checks_every_python_that_the_package_names(workflow: dict[str, Any]) -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(classifiers))
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == named


def test_it_may_only_read_and_what_it_uses_is_pinned(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    text = WORKFLOW.read_text()
    assert "secrets" not in text
    assert "pull_request_target" not in text
    uses = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", one) for one in uses)
