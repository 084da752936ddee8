"""The machine record, read from laid-out Linux files of other machines."""

import ctypes
import json
import os
import re
import sys
from pathlib import Path

import pytest

from deep_learning_cases.ground import expectation, machine, out_folder, schemas


def put(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_record_is_json_and_has_what_a_reader_needs():
    record = json.loads(json.dumps(machine.environment(), allow_nan=False))
    assert set(record) == {
        "cpu", "cores", "governors", "memory", "load_average", "os", "python", "libraries", "blas", "thread_settings",
        "clock",
    }  # fmt: skip
    assert record["libraries"]["numpy"]
    assert record["python"]["version"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert record["cores"]["usable"] >= 1
    assert record["thread_settings"].keys() == set(machine.THREAD_VARIABLES)


def test_no_name_of_host_or_user_is_recorded():
    text = json.dumps(machine.environment())
    for private in (os.uname().nodename, str(Path.home())):
        if len(private) > 5:
            assert private not in text


def test_peak_memory_is_vmhwm_in_bytes(tmp_path):
    put(tmp_path, "proc/self/status", "Name:\tx\nVmPeak:\t 999 kB\nVmHWM:\t  57800 kB\nVmRSS:\t 1 kB\n")
    assert machine.peak_rss(tmp_path) == (57800 * 1024, "VmHWM")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own source")
def test_without_proc_the_source_is_named(tmp_path):
    peak, source = machine.peak_rss(tmp_path)
    assert source == "ru_maxrss"
    assert peak > 1_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own source")
@pytest.mark.parametrize(("platform", "expected"), [("linux", 5 * 1024), ("darwin", 5)])
def test_ru_maxrss_counts_kilobytes_on_linux_and_bytes_on_macos(tmp_path, monkeypatch, platform, expected):
    import resource

    class Usage:
        ru_maxrss = 5

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(resource, "getrusage", lambda _: Usage)
    assert machine.peak_rss(tmp_path) == (expected, "ru_maxrss")


class Windows:
    """kernel32 and psapi as the library calls them: the counters are written where they are expected."""

    def __init__(self, peak_bytes: int | None) -> None:
        self.kernel32 = self.psapi = self
        self.GetCurrentProcess = Handle()
        self._peak_bytes = peak_bytes

    def GetProcessMemoryInfo(self, process, counters, size):
        """Fills PROCESS_MEMORY_COUNTERS of psapi.h: two DWORDs, then eight sizes, the first PeakWorkingSetSize."""
        assert process.value == Handle.THIS_PROCESS
        assert size.value == counters._obj.cb == 8 + 8 * ctypes.sizeof(ctypes.c_size_t)
        if self._peak_bytes is None:
            return 0
        ctypes.c_size_t.from_address(ctypes.addressof(counters._obj) + 8).value = self._peak_bytes
        return 1


class Handle:
    """The pseudo handle -1, which is 64 bits wide: as an int of 32 it would name no process."""

    THIS_PROCESS = 2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1
    restype = ctypes.c_int

    def __call__(self):
        return self.THIS_PROCESS if self.restype is ctypes.c_void_p else -1


@pytest.mark.parametrize(
    ("peak_bytes", "expected"), [(5 << 30, (5 << 30, "PeakWorkingSetSize")), (None, (0, "unknown"))]
)
def test_windows_counts_the_working_set_and_says_so_where_it_does_not(tmp_path, monkeypatch, peak_bytes, expected):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "windll", Windows(peak_bytes), raising=False)
    assert machine.peak_rss(tmp_path) == expected


def test_macos_and_windows_tell_what_the_guide_says(tmp_path, monkeypatch):
    """docs/students.md: macOS has a load average and no affinity; Windows has neither; nothing of Linux's own files."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 2.0, 3.0), raising=False)
    assert machine.cores(tmp_path) == {"logical": 8, "affinity": None, "quota": None, "usable": 8}
    assert machine.load_average() == [1.0, 2.0, 3.0]
    assert machine.governors(tmp_path) is None
    assert machine.memory_limit_bytes(tmp_path) is None
    monkeypatch.delattr(os, "getloadavg")
    assert machine.load_average() is None


def test_version_2_limits_hold_all_the_way_up(tmp_path):
    put(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    put(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    put(tmp_path, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")
    put(tmp_path, "sys/fs/cgroup/a/b/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/a/memory.max", "1073741824\n")
    cores = machine.cores(tmp_path)
    assert (cores["quota"], cores["usable"]) == (1.5, 1)
    assert machine.memory_limit_bytes(tmp_path) == 1 << 30


def test_version_1_limits_are_found_where_the_container_sees_them(tmp_path):
    put(tmp_path, "proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    put(tmp_path, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "536870912\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    cores = machine.cores(tmp_path)
    assert (cores["quota"], cores["usable"]) == (0.5, 1)
    assert machine.memory_limit_bytes(tmp_path) == 512 << 20


@pytest.mark.parametrize("quota", ["-1", "0", "", "max", "rubbish"])
def test_no_quota_is_no_quota(tmp_path, quota):
    put(tmp_path, "proc/self/cgroup", "2:cpu:/\n")
    put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)
    put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    assert machine.cores(tmp_path)["quota"] is None


@pytest.mark.parametrize("text", ["", "rubbish", "::::", "0::/../../etc\n", "x:y\n\n"])
def test_a_strange_control_group_file_is_no_limit(tmp_path, text):
    put(tmp_path, "proc/self/cgroup", text)
    assert machine.cores(tmp_path)["quota"] is None
    assert machine.memory_limit_bytes(tmp_path) is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_is_this_process_mask(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert machine.cores(tmp_path) == {"logical": 8, "affinity": 1, "quota": None, "usable": 1}
    assert machine.usable_cores(tmp_path) == 1


def test_a_system_that_tells_nothing_gives_none(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "getloadavg", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    record = machine.environment(tmp_path)
    assert record["load_average"] is None
    assert record["cores"] == {"logical": None, "affinity": None, "quota": None, "usable": 1}
    assert record["memory"] == {"total_bytes": None, "limit_bytes": None}
    assert record["governors"] is None
    assert record["cpu"]["flags"] == []


def test_processor_governor_and_memory_are_read(tmp_path):
    put(
        tmp_path,
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Fast 9000\nflags\t\t: avx2 avx512_vnni\n\nprocessor\t: 1\n",
    )
    put(tmp_path, "proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n")
    for cpu, governor in enumerate(["powersave", "performance", "powersave"]):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor + "\n")
    record = machine.environment(tmp_path)
    assert record["cpu"]["model"] == "Fast 9000"
    assert record["cpu"]["flags"] == ["avx2", "avx512_vnni"]
    assert record["memory"]["total_bytes"] == 1000 * 1024
    assert record["governors"] == ["performance", "powersave"]


FORMS = ["2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00+00:00", "2026-01-31T12:00:00Z"]
"""As records state it now, and as earlier ones did."""


def test_now_is_utc_with_milliseconds_and_a_z():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", machine.utc_now())


@pytest.mark.parametrize("stated", FORMS)
def test_records_of_every_earlier_form_are_still_read(stated, tmp_path):
    assert expectation.TIME.accepts(stated)
    patterns = {
        path.name: json.loads(found)
        for path in Path(schemas.__file__).parent.glob("*.json")
        for found in re.findall(r'"pattern": ("[^"]*T[^"]*Z[^"]*")', path.read_text())
    }
    if not stated.endswith("Z"):
        del patterns["latency-1.json"]  # its writer never used another form
    assert len(patterns) >= 4
    assert [name for name, pattern in patterns.items() if not re.search(pattern, stated)] == []
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"created_at": stated}))
    kept = out_folder.keep(path, b"new")
    assert kept is not None
    assert kept.name == "a-2026-01-31T12-00-00Z.json"
