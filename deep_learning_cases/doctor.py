"""What would spoil a measurement on this machine, and what to do about it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deep_learning_cases import noise
from deep_learning_cases.errors import DeepLearningCasesError
from deep_learning_cases.ground import files, machine
from deep_learning_cases.measuring import timing
from deep_learning_cases.models import artefacts, conv, data

__all__ = ["examine", "findings", "lines", "random_model"]

Facts = dict[str, Any]

ENGINES = {"numpy": "numpy", "onnxruntime": "onnxruntime", "pytorch": "torch"}
"""Engine -> the package that brings it."""

AA_ROUNDS = 5
_MIB = 1 << 20


def examine(folder: str | Path | None = None, aa: bool = True, root: Path = machine.ROOT) -> Facts:
    """Look at this machine and say what would spoil a measurement.

    ``folder`` is where evidence would be written (the current folder if None); with its own model, an A/A reading uses
    that, otherwise a network of the lab's shape with random weights.  ``aa`` False leaves the reading out (it takes two
    seconds or so).  ``root`` is where Linux's own files are looked for.

    Returns JSON values: ``environment`` (:func:`machine.environment`), ``engines`` {name: version or None}, ``clock``
    {step_ns, loop_overhead_us}, ``peak_memory_source``, ``disk`` {path, free_bytes, writable}, ``on_battery``,
    ``noise`` (:func:`noise.reading`, or None), ``noise_failure`` (a sentence, or None) and ``findings``
    [{level "problem" or "note", what, do}].
    """
    place = Path(folder or ".")
    environment = machine.environment(root)
    reading, failure = _noise(place) if aa else (None, None)
    facts: Facts = {
        "environment": environment,
        "engines": {name: environment["libraries"].get(package) for name, package in ENGINES.items()},
        "clock": {"step_ns": timing.clock_resolution_ns(), "loop_overhead_us": timing.loop_overhead_us()},
        "peak_memory_source": machine.peak_rss(root)[1],
        "disk": _disk(place),
        "on_battery": _on_battery(root),
        "noise": reading,
        "noise_failure": failure,
    }
    return facts | {"findings": findings(facts)}


def findings(facts: Mapping[str, Any]) -> list[dict[str, str]]:
    """What to worry about in the facts of :func:`examine`: problems first, then notes.  A pure function."""
    found = [
        {"level": level, "what": what, "do": advice}
        for look in (_engines, _cores, _clock, _memory, _disk_space, _power, _threads, _aa)
        for level, what, advice in look(facts)
    ]
    return sorted(found, key=lambda finding: finding["level"] != "problem")


def lines(result: Facts) -> list[str]:
    """The result of :func:`examine` for a person: what was found, then what to do."""
    environment, clock, disk = result["environment"], result["clock"], result["disk"]
    cores, memory, load = environment["cores"], environment["memory"], environment["load_average"]
    engines = ", ".join(f"{name} {version or 'not installed'}" for name, version in result["engines"].items())
    governors = ", ".join(environment["governors"] or ["not shown"])
    quota = f"quota {cores['quota']:g} cores" if cores["quota"] else "no quota"
    limit = _size(memory["limit_bytes"]) if memory["limit_bytes"] else "none"
    text = [
        f"engines    {engines}",
        f"processor  {environment['cpu']['model'] or 'unknown'}, governor {governors}",
        f"cores      {cores['usable']} usable of {cores['logical']}; affinity {cores['affinity'] or 'none'}, {quota}",
        f"load       {', '.join(f'{value:.2f}' for value in load) if load else 'not kept by this system'}",
        f"clock      steps of {clock['step_ns']} ns; the loop adds {clock['loop_overhead_us']:.3f} us to each timing",
        f"memory     {_size(memory['total_bytes'])}, limit {limit}; peak read from {result['peak_memory_source']}",
        f"disk       {_size(disk['free_bytes'])} free at {disk['path']}",
        *(noise.lines(result["noise"]) if result["noise"] else []),
    ]
    for finding in result["findings"]:
        text.append(f"{finding['level']}: {finding['what']} -> {finding['do']}")
    return text if result["findings"] else [*text, "nothing found that would spoil a measurement"]


Look = Iterator[tuple[str, str, str]]


def _engines(facts: Mapping[str, Any]) -> Look:
    if not facts["engines"]["onnxruntime"]:
        yield "problem", "ONNX Runtime is not installed", "pip install onnxruntime; nothing can be measured without it"
    if not facts["engines"]["pytorch"]:
        yield (
            "note",
            "PyTorch is not installed",
            "measuring does without; building needs it: pip install 'deep_learning_cases[torch]'",
        )


def _cores(facts: Mapping[str, Any]) -> Look:
    cores, load = facts["environment"]["cores"], facts["environment"]["load_average"]
    if cores["quota"] and cores["quota"] < 1:
        yield (
            "problem",
            f"the container may use {cores['quota']:g} of a core, so it is halted within every period",
            "allow at least 2 cores; p95 here is that of the quota",
        )
    elif cores["usable"] < 2:
        yield (
            "note",
            "1 core is usable, which the measuring process shares with everything else",
            "close notebooks and browsers; allow 2 cores",
        )
    elif cores["affinity"] and cores["logical"] and cores["affinity"] < cores["logical"]:
        yield (
            "note",
            f"this process may run on {cores['affinity']} of {cores['logical']} cores",
            "keep the same mask for every run that you compare",
        )
    if load and load[0] > cores["usable"] / 2:
        yield (
            "problem",
            f"the load average is {load[0]:g} on {cores['usable']} usable cores",
            "stop other work and wait a minute; timings now are those of a busy machine",
        )


def _clock(facts: Mapping[str, Any]) -> Look:
    clock = facts["clock"]
    if clock["step_ns"] > 1000:
        yield (
            "problem",
            f"the clock moves in steps of {clock['step_ns']} ns",
            "time larger batches; a call of 10 us cannot be told from one of 11",
        )
    if clock["loop_overhead_us"] > 0.3:
        yield (
            "note",
            f"the loop adds {clock['loop_overhead_us']:.2f} us to each timing (0.3 is the bound)",
            "switch off tracers, profilers and debuggers",
        )


def _memory(facts: Mapping[str, Any]) -> Look:
    limit, source = facts["environment"]["memory"]["limit_bytes"], facts["peak_memory_source"]
    if limit and limit < 512 * _MIB:
        yield (
            "problem",
            f"the memory limit is {_size(limit)}",
            "allow 1 GiB; training needs more than the 64 MB of a measuring process",
        )
    if source != "VmHWM":
        yield (
            "note",
            f"the peak memory comes from {source}, as this system has no VmHWM",
            "compare it only with peaks from the same source",
        )


def _disk_space(facts: Mapping[str, Any]) -> Look:
    disk = facts["disk"]
    if not disk["writable"]:
        yield "problem", f"{disk['path']} cannot be written", "choose another folder for the evidence"
    if disk["free_bytes"] is not None and disk["free_bytes"] < 50 * _MIB:
        yield "problem", f"{_size(disk['free_bytes'])} are free at {disk['path']}", "free 50 MiB"


def _power(facts: Mapping[str, Any]) -> Look:
    slow = [name for name in facts["environment"]["governors"] or [] if name != "performance"]
    if slow:
        yield (
            "note",
            f"the frequency governor is {', '.join(slow)}: the clock rate follows the load",
            "measure under 'performance' if you may set it (cpupower frequency-set -g performance)",
        )
    if facts["on_battery"]:
        yield "problem", "the machine runs on its battery", "plug it in: on battery the clock rate is lowered"
    if "hypervisor" in facts["environment"]["cpu"]["flags"]:
        yield (
            "note",
            "this is a virtual machine, whose neighbours cannot be seen from here",
            "trust ratios from alternating rounds, not milliseconds",
        )


def _threads(facts: Mapping[str, Any]) -> Look:
    usable = facts["environment"]["cores"]["usable"]
    for name, value in facts["environment"]["thread_settings"].items():
        if value and value.strip().isdigit() and int(value) > usable:
            yield (
                "note",
                f"{name} is {value} with {usable} usable cores",
                f"set it to at most {usable}; the measuring processes get 1 whatever it says",
            )


def _aa(facts: Mapping[str, Any]) -> Look:
    if facts["noise_failure"]:
        yield "problem", f"no A/A reading was possible: {facts['noise_failure']}", "remove this cause first"
    for size, batch in (facts["noise"] or {"batches": {}})["batches"].items():
        if batch["false_alarms"]:
            yield (
                "note",
                f"at batch {size} a model seemed {100 * abs(batch['ratio'] - 1):.1f} % off itself just now",
                "5 % of such readings do; if it happens again, count with: dlcases bench DIR --aa",
            )
        if batch["process_sd_percent"] > 5:
            yield (
                "problem",
                f"equal processes differ by {batch['process_sd_percent']:.0f} % at batch {size}",
                "stop other work, or measure more rounds: small differences will stay inconclusive",
            )


def _noise(place: Path) -> tuple[Facts | None, str | None]:
    """An A/A reading of one trial, or why there is none."""
    try:
        if (place / artefacts.DATA).is_file() and (place / artefacts.FP32).is_file():
            return noise.measure(place, trials=1, rounds=AA_ROUNDS), None
        with tempfile.TemporaryDirectory() as temporary:
            random_model(Path(temporary))
            return noise.measure(temporary, trials=1, rounds=AA_ROUNDS) | {"file": None}, None
    except DeepLearningCasesError as error:
        return None, str(error)
    except (ImportError, OSError) as error:
        return None, f"{type(error).__name__}: {error}"


def random_model(folder: Path) -> None:
    """A network of the lab's shape and images to give it: what they say does not matter, how long it takes does."""
    import numpy as np

    random = np.random.default_rng(1729)
    weights = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in conv.WEIGHT_SHAPES.items()}
    images = random.integers(0, 17, (64, *data.IMAGE_SHAPE), dtype=np.uint8)
    labels = np.zeros(64, np.uint8)
    archive = data.archive_bytes(
        calibration_images=images, calibration_labels=labels, test_images=images, test_labels=labels
    )
    files.write_bytes(folder / artefacts.DATA, archive)
    files.write_bytes(folder / artefacts.FP32, artefacts.onnx_bytes(weights))


def _disk(place: Path) -> Facts:
    try:
        free: int | None = shutil.disk_usage(place).free
    except OSError:
        free = None
    return {"path": str(place), "free_bytes": free, "writable": _tried(lambda: tempfile.TemporaryFile(dir=place))}


def _tried(make: Callable[[], Any]) -> bool:
    # Asking for permission says nothing about a read-only mount, and root may write anywhere else.
    try:
        make().close()
    except OSError:
        return False
    return True


def _on_battery(root: Path) -> bool | None:
    """Whether a battery is being emptied; None where no battery is shown."""
    states = []
    for path in (root / "sys/class/power_supply").glob("BAT*/status"):
        try:
            states.append(path.read_text(encoding="ascii").strip())
        except OSError:
            continue
    return "Discharging" in states if states else None


def _size(count: int | None) -> str:
    if count is None:
        return "unknown"
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / _MIB:.0f} MiB"
