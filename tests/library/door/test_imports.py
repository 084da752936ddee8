"""Importing stays light, the layers hold, and the check that says so can fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deep_learning_cases

ROOT = Path(__file__).resolve().parents[3]
LINTER = Path(sys.executable).with_name("lint-imports")


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert (
        modules_after("import deep_learning_cases") & {"numpy", "torch", "matplotlib", "onnxruntime", "argparse"}
        == set()
    )


def test_the_measuring_side_carries_no_pytorch_no_plots_no_schema_checker():
    loaded = modules_after("from deep_learning_cases import bench, timing, engines, data, machine")
    assert loaded & {"torch", "matplotlib", "sklearn", "onnx", "jsonschema", "deep_learning_cases.cli"} == set()


def test_every_public_name_exists():
    for name in deep_learning_cases.__all__:
        assert getattr(deep_learning_cases, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = deep_learning_cases.no_such_name


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINTER, "--no-cache"], capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": str(folder)}
    )


def test_a_planted_import_from_below_is_found(tmp_path):
    for name in ("deep_learning_cases", "grading"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb", "*.db"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    clean = lint(tmp_path)
    assert clean.returncode == 0, clean.stdout
    errors = tmp_path / "deep_learning_cases" / "errors.py"
    errors.write_text(errors.read_text() + "\nfrom deep_learning_cases.ground import files\n")
    planted = lint(tmp_path)
    assert planted.returncode == 1
    assert "deep_learning_cases.errors is not allowed to import deep_learning_cases.ground" in planted.stdout
