"""The machine as the record states it: processor, usable cores, memory, load, system, Python, libraries, threads.

Reading Linux's own files takes a ``root`` folder, so that a test can lay out another machine.  Imports that cost memory
stay inside functions: the measuring process needs only :func:`peak_rss` from here.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

__all__ = [
    "THREAD_VARIABLES",
    "cores",
    "environment",
    "governors",
    "load_average",
    "memory_limit_bytes",
    "memory_total_bytes",
    "peak_rss",
    "usable_cores",
    "utc_now",
]

ROOT = Path("/")

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""How BLAS and OpenMP libraries are told how many threads to start (ONNX Runtime has an option of its own instead)."""

_LIBRARIES = ("numpy", "onnxruntime", "onnx", "scikit-learn", "torch")

_UNLIMITED = 1 << 60
"""A version 1 control group without a limit shows a number near 2**63 instead of a word."""


def environment(root: Path = ROOT) -> dict[str, Any]:
    """What a reader needs to judge or repeat a measurement here; nothing that names a person or a host.

    Keys: ``cpu`` {model, architecture, flags}, ``cores`` (see :func:`cores`), ``governors``, ``memory`` {total_bytes,
    limit_bytes}, ``load_average``, ``os``, ``python``, ``libraries`` {name: version}, ``blas``, ``thread_settings``
    {variable: value or None}, ``clock`` {name, resolution_ns}.  A value that the system does not tell is None.
    """
    import platform

    clock = time.get_clock_info("perf_counter")
    return {
        "cpu": _cpu(root),
        "cores": cores(root),
        "governors": governors(root),
        "memory": {"total_bytes": memory_total_bytes(root), "limit_bytes": memory_limit_bytes(root)},
        "load_average": load_average(),
        "os": {"system": platform.system(), "release": platform.release(), "version": platform.version()},
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "libraries": _library_versions(),
        "blas": _blas(),
        "thread_settings": {name: os.environ.get(name) for name in THREAD_VARIABLES},
        "clock": {"name": f"perf_counter ({clock.implementation})", "resolution_ns": round(clock.resolution * 1e9, 3)},
    }


def utc_now() -> str:
    """This moment as every record states it: UTC, ISO 8601 with milliseconds, "2026-01-31T12:00:00.000Z"."""
    import datetime

    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def peak_rss(root: Path = ROOT) -> tuple[int, str]:
    """Peak resident memory of this process in bytes, and where the number comes from.

    ``VmHWM`` from /proc/self/status on Linux.  Elsewhere ``ru_maxrss`` (which on Linux without /proc may include what
    the parent process had used before it started this one), or ``PeakWorkingSetSize`` on Windows; ``(0, "unknown")``
    where nothing tells.
    """
    text = _read(root / "proc/self/status") or ""
    for line in text.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024, "VmHWM"
    if sys.platform == "win32":
        return _windows_peak()
    try:
        import resource
    except ImportError:
        return 0, "unknown"
    # Kilobytes on Linux and the BSDs, bytes on macOS: getrusage(2) of each.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "ru_maxrss"


def cores(root: Path = ROOT) -> dict[str, Any]:
    """How many cores this process may use, and what says so.

    ``logical`` (the machine's), ``affinity`` (this process's mask; None where the system has none), ``quota`` (cores'
    worth of time the container may take, a fraction; None without a limit), ``usable`` (the least of them, at least 1).
    """
    logical = os.cpu_count()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    quota = _cpu_quota(root)
    limits = [limit for limit in (logical, affinity, quota) if limit]
    return {"logical": logical, "affinity": affinity, "quota": quota, "usable": max(1, int(min(limits, default=1)))}


def usable_cores(root: Path = ROOT) -> int:
    """Whole cores usable under affinity and container quota, at least 1."""
    return int(cores(root)["usable"])


def governors(root: Path = ROOT) -> list[str] | None:
    """The frequency governors in force, sorted and without repeats; None where the system does not show them."""
    folder = root / "sys/devices/system/cpu"
    found = {text.strip() for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor") if (text := _read(path))}
    return sorted(found) or None


def load_average() -> list[float] | None:
    """Processes wanting a core, averaged over 1, 5 and 15 minutes; None where the system keeps none (Windows)."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        return None


def memory_total_bytes(root: Path = ROOT) -> int | None:
    """Physical memory of the machine; None where the system does not tell."""
    for line in (_read(root / "proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def memory_limit_bytes(root: Path = ROOT) -> int | None:
    """The tightest memory limit of this process's control groups, versions 1 and 2; None where there is none."""
    limits = [
        int(text)
        for group, name in ((_groups(root, ""), "memory.max"), (_groups(root, "memory"), "memory.limit_in_bytes"))
        for folder in group
        if (text := (_read(folder / name) or "").strip()).isdigit() and int(text) < _UNLIMITED
    ]
    return min(limits, default=None)


def _cpu_quota(root: Path) -> float | None:
    quotas = []
    for folder in _groups(root, ""):
        quotas.append((_read(folder / "cpu.max") or "").split())
    for folder in _groups(root, "cpu"):
        quotas.append([(_read(folder / f"cpu.cfs_{name}_us") or "").strip() for name in ("quota", "period")])
    # "max" and -1 mean no limit, an empty text no such file.
    shares = [int(pair[0]) / int(pair[1]) for pair in quotas if len(pair) == 2 and all(map(_is_positive, pair))]
    return min(shares, default=None)


def _groups(root: Path, controller: str) -> list[Path]:
    """Folders whose limits hold for this process: its group and all above it, up to the mount.

    ``controller`` "" means version 2 (hierarchy 0).  A container often sees its own group mounted at the top while
    /proc/self/cgroup names the host's path, so folders that do not exist are simply passed over.
    """
    mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
    path = None
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, place = rest.partition(":")
        if (number == "0" and not controller and not names) or (controller and controller in names.split(",")):
            path = place.strip("/")
            if controller:
                mounts = [root / "sys/fs/cgroup" / folder for folder in dict.fromkeys((names, controller))]
    if path is None:
        return []
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:depth]) for mount in mounts for depth in range(len(parts), -1, -1)]


def _is_positive(text: str) -> bool:
    return text.isdigit() and int(text) > 0


def _cpu(root: Path) -> dict[str, Any]:
    import platform

    facts: dict[str, str] = {}
    for line in (_read(root / "proc/cpuinfo") or "").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    return {
        "model": facts.get("model name") or facts.get("Model") or platform.processor() or None,
        "architecture": platform.machine() or None,
        "flags": (facts.get("flags") or facts.get("Features") or "").split(),
    }


def _library_versions() -> dict[str, str]:
    from importlib import metadata

    from deep_learning_cases import __version__

    versions = {"deep_learning_cases": __version__}  # a kit's copy is not installed, so no metadata would name it
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _blas() -> dict[str, str] | None:
    """NumPy's linear algebra library, as it was built; None if NumPy does not tell."""
    import numpy as np

    try:
        facts = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        return None
    return {key: str(facts[key]) for key in ("name", "version") if key in facts}


def _windows_peak() -> tuple[int, str]:
    import ctypes

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", ctypes.c_uint32),
            ("PageFaultCount", ctypes.c_uint32),
            ("PeakWorkingSetSize", ctypes.c_size_t),
            ("Others", ctypes.c_size_t * 7),
        ]  # PROCESS_MEMORY_COUNTERS, psapi.h

    counters = Counters()
    counters.cb = ctypes.sizeof(counters)
    windows = ctypes.windll  # type: ignore[attr-defined, unused-ignore]
    process = windows.kernel32.GetCurrentProcess
    process.restype = ctypes.c_void_p
    asked = windows.psapi.GetProcessMemoryInfo(
        ctypes.c_void_p(process()), ctypes.byref(counters), ctypes.c_uint32(counters.cb)
    )
    return (int(counters.PeakWorkingSetSize), "PeakWorkingSetSize") if asked else (0, "unknown")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
