"""The limits of a server, written into files that look like the kernel's: the numbers, not the kernel, are tested."""

import importlib.util
import os
import signal
import subprocess
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def server_group() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "deploy" / "server_group.py"
    spec = importlib.util.spec_from_file_location("server_group", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_2_has_one_folder_with_all_limits(server_group: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    group = server_group.make_group("jupyter-ada", 2 << 30, 1.5, tmp_path)
    folder = tmp_path / "jupyter-ada"
    assert group.folders == [folder]
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"
    assert (folder / "memory.max").read_text() == str(2 * 1024**3)
    assert (folder / "cpu.max").read_text() == "150000 100000"
    assert (folder / "pids.max").read_text() == str(server_group.PROCESSES)


def test_version_1_has_one_folder_per_controller(server_group: ModuleType, tmp_path: Path) -> None:
    for controller in ("memory", "cpu", "pids"):
        (tmp_path / controller).mkdir()
    group = server_group.make_group("jupyter-ada", 2 << 30, 2, tmp_path)
    assert len(group.folders) == 3
    assert (tmp_path / "memory" / "jupyter-ada" / "memory.limit_in_bytes").read_text() == str(2 * 1024**3)
    assert (tmp_path / "cpu" / "jupyter-ada" / "cpu.cfs_quota_us").read_text() == "200000"


def test_no_limit_is_written_as_the_kernel_spells_it(server_group: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    server_group.make_group("jupyter-ada", None, None, tmp_path)
    assert (tmp_path / "jupyter-ada" / "memory.max").read_text() == "max"
    assert (tmp_path / "jupyter-ada" / "cpu.max").read_text() == "max 100000"


def test_a_missing_controller_means_no_group_rather_than_half_of_one(server_group: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu pids")
    assert server_group.make_group("jupyter-ada", 1 << 30, 1, tmp_path) is None
    assert not (tmp_path / "jupyter-ada").exists()


def test_a_machine_without_control_groups_has_no_group(server_group: ModuleType, tmp_path: Path) -> None:
    assert server_group.make_group("jupyter-ada", 1 << 30, 1, tmp_path) is None


def test_entering_moves_this_very_process(server_group: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    server_group.make_group("jupyter-ada", 1 << 30, 1, tmp_path).enter()
    assert (tmp_path / "jupyter-ada" / "cgroup.procs").read_text() == str(os.getpid())


def test_swap_is_no_way_around_the_memory_limit(server_group: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    folder = tmp_path / "jupyter-ada"
    folder.mkdir()
    (folder / "memory.swap.max").write_text("max")
    server_group.make_group("jupyter-ada", 1 << 30, 1, tmp_path)
    assert (folder / "memory.swap.max").read_text() == "0"


def test_what_runs_on_in_the_background_ends_with_its_server(server_group: ModuleType, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as left:
        (tmp_path / "cgroup.procs").write_text(f"{left.pid}\n")
        server_group.ATTEMPTS = 2  # this folder holds a file, so that it never goes
        server_group.ServerGroup([tmp_path]).remove()
        assert left.wait(10) == -signal.SIGKILL


def test_an_empty_group_goes(server_group: ModuleType, tmp_path: Path) -> None:
    folders = [tmp_path / "memory", tmp_path / "cpu"]
    for folder in folders:
        folder.mkdir()
    server_group.ServerGroup([*folders, tmp_path / "gone"]).remove()
    assert list(tmp_path.iterdir()) == []
