"""``dlcases run`` and its parts: the release lab from the command line.

What trains, measures and judges is imported when a command runs, so that ``dlcases --help`` stays quick.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground import command_line, out_folder

if TYPE_CHECKING:
    from deep_learning_cases.release.evidence import Evidence

__all__ = ["add_commands", "existing"]

Command = Callable[[argparse.Namespace], int]


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands on an evidence folder; ``add(name, command, help, folder help)`` gives each its parser."""
    for name, command, text in (
        ("run", _run, "the whole lab: build, regression, bench, statistics, release, report"),
        ("build", _build, "train, export and quantize: data.npz and the model files"),
    ):
        add(name, command, text).add_argument("--seed", type=int, default=1729, help="of split and training (1729)")
    add("regress", _regress, "compare the predictions of both models on the test split")
    bench = add("bench", _bench, "time both models in fresh processes: benchmark.json")
    bench.add_argument("--timeout-s", type=float, default=120.0, help="for one measuring process (120)")
    bench.add_argument("--aa", action="store_true", help="time one model against itself: how noisy is this machine?")
    add("release", _release, "judge size, accuracy and evidence: release.json")
    check = add("check", _check, "recompute everything from the files", "evidence folder, or a zip made by pack")
    check.description = "Recompute everything from the files; exit 0, or 1 with one line per reason."
    add("report", _report, "write report.html")
    pack = add("pack", _pack, "one zip to keep or hand in")
    pack.add_argument("--target-kit", action="store_true", help="a kit that repeats the protocol on another machine")
    pack.add_argument("--out", type=command_line.path, help="where the zip goes (beside the folder)")


def existing(folder: Path) -> Path:
    """``folder``, or FileError that says how an evidence folder is made."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise FileError(f"{folder} {what}: expected an evidence folder; make one with: dlcases run {folder}")
    return folder


def _run(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import release
    from deep_learning_cases.models import artefacts, data
    from deep_learning_cases.release.evidence import Evidence

    folder: Path = arguments.folder
    data.check_seed(arguments.seed)
    with out_folder.made(folder), out_folder.taken(folder):
        seconds = _stages(folder, arguments.seed, None if arguments.json else print)
    evidence = Evidence.open(folder)
    findings, record = release.check(evidence), evidence.read_json(artefacts.RELEASE)
    if arguments.json:
        command_line.print_json(
            {"folder": str(folder), "seconds": seconds, "release": record, "findings": _as_dicts(findings)}
        )
    else:
        print()
        _print_summary(evidence, record)
    return _print_findings(findings, arguments.json)


def _stages(folder: Path, seed: int, tell: Callable[..., None] | None) -> dict[str, float]:
    """Everything in its order; how many seconds each stage took."""
    from deep_learning_cases import bench
    from deep_learning_cases.measuring import stats
    from deep_learning_cases.release import preparation, regression
    from deep_learning_cases.release.report import page

    stages: list[tuple[str, Callable[[], Any]]] = [
        ("build", lambda: preparation.build(folder, seed=seed)),
        ("regression", lambda: regression.regress(folder)),
        ("bench", lambda: bench.run(folder)),
        ("statistics", lambda: bench.summarise(folder, stats.latency_summary)),
        ("release", lambda: _decide(folder)),
        ("report", lambda: page.build(folder)),
    ]
    seconds: dict[str, float] = {}
    for name, stage in stages:
        started = time.perf_counter()
        stage()
        seconds[name] = round(time.perf_counter() - started, 2)
        if tell is not None:
            tell(f"{name:<11}{seconds[name]:6.2f} s", flush=True)
    return seconds


def _decide(folder: Path) -> dict[str, Any]:
    """Write the library's own release.json; one with somebody's claims is kept."""
    from deep_learning_cases import release
    from deep_learning_cases.ground import files
    from deep_learning_cases.models import artefacts

    record = release.make(folder)
    out_folder.keep(folder / artefacts.RELEASE, files.json_bytes(record))
    release.write(folder, record)
    return record


def _print_summary(evidence: "Evidence", record: dict[str, Any]) -> None:
    from deep_learning_cases.models import artefacts

    benchmark = evidence.read_json(artefacts.BENCHMARK)
    print("model  batch     p50 us     p95 us   images/s   bytes  accuracy  peak memory")
    for name, role in (("fp32", "baseline"), ("int8", "candidate")):
        peak_bytes = max(run["peak_rss_bytes"] for run in benchmark["runs"] if run["model"] == name)
        for batch, row in record["latency"][name].items():
            print(
                f"{name:<6} {batch:>5} {row['p50_us']:>10.1f} {row['p95_us']:>10.1f} {row['images_per_second']:>10.0f}"
                f" {benchmark['models'][name]['bytes']:>7} {100 * record['accuracy'][role]:>7.1f} %"
                f" {peak_bytes / 1e6:>9.1f} MB"
            )
    print(f"\nmeasured: {benchmark['boundary']}")
    print(f"decision: {record['decision']}; a benchmark on the target device is still required, and not claimed are:")
    for line in record["not_claimed"]:
        print(f"  - {line}")
    print(f"\nreport: {evidence.folder / artefacts.REPORT}")


def _build(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.models import data
    from deep_learning_cases.release import preparation

    data.check_seed(arguments.seed)
    with out_folder.made(arguments.folder), out_folder.taken(arguments.folder):
        facts = preparation.build(arguments.folder, seed=arguments.seed)
    lines = [f"built {arguments.folder}", *(f"  {key}: {value}" for key, value in facts.items())]
    return command_line.emit(arguments, facts, lines)


def _regress(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.release import regression

    with out_folder.taken(existing(arguments.folder)):
        record = regression.regress(arguments.folder)
    accuracy, interval = record["accuracy"], record["loss_interval_pp"]
    lines = [
        f"accuracy: fp32 {100 * accuracy['fp32']:.1f} %, int8 {100 * accuracy['int8']:.1f} %",
        f"loss: {record['loss_pp']:+.2f} points, 95 % interval {interval['low']:+.2f} to {interval['high']:+.2f}",
        f"agreement: {100 * record['agreement']:.1f} % of {record['images']} test images; {record['can_show']}",
    ]
    return command_line.emit(arguments, record, lines)


def _bench(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import bench, noise
    from deep_learning_cases.measuring import stats

    folder = existing(arguments.folder)
    if not 0 < arguments.timeout_s < float("inf"):
        raise InputError(f"--timeout-s is {arguments.timeout_s}: expected a number of seconds above 0; change it")
    if arguments.aa:
        reading = noise.measure(folder, timeout_s=arguments.timeout_s)
        return command_line.emit(arguments, reading, noise.lines(reading))
    with out_folder.taken(folder):
        record = bench.run(folder, timeout_s=arguments.timeout_s, latency_stats=stats.latency_summary)
    lines = [f"{record['unit']}; {record['boundary']}"]
    lines += [
        f"{model:<6} batch {batch:>3}: p50 {row['p50_us']:.1f}, p95 {row['p95_us']:.1f} "
        f"(nearest rank, n {row['n']}), {row['images_per_second']:.0f} images/s"
        for model, rows in record["summary"].items()
        for batch, row in rows.items()
    ]
    return command_line.emit(arguments, record, lines)


def _release(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.models import artefacts

    folder = existing(arguments.folder)
    with out_folder.taken(folder):
        record = _decide(folder)
    return command_line.emit(arguments, record, [f"decision: {record['decision']}; wrote {folder / artefacts.RELEASE}"])


def _check(arguments: argparse.Namespace) -> int:
    path: Path = arguments.folder
    findings = _findings_of_zip(path) if path.is_file() else _findings_of_folder(existing(path))
    if arguments.json:
        command_line.print_json({"passed": not findings, "findings": _as_dicts(findings)})
    elif not findings:
        print(f"{path}: the files hang together and the numbers follow from the raw samples.")
        print("That does not prove that the times were really measured, nor does it hold for another machine.")
        if path.is_file():
            print("Who packed it is unknown: run its programs only if you trust whoever gave it to you.")
    return _print_findings(findings, arguments.json)


def _findings_of_zip(path: Path) -> Sequence[Any]:
    from deep_learning_cases.release import pack

    return pack.check_zip(path)


def _findings_of_folder(folder: Path) -> Sequence[Any]:
    from deep_learning_cases import release

    return release.check(folder)


def _as_dicts(findings: Sequence[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(finding) for finding in findings]


def _print_findings(findings: Sequence[Any], as_json: bool) -> int:
    if not as_json:
        for finding in findings:
            print(finding)
    return 1 if findings else 0


def _report(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.release.report import page

    with out_folder.taken(existing(arguments.folder)):
        path = page.build(arguments.folder)
    return command_line.emit(arguments, {"report": str(path)}, [str(path)])


def _pack(arguments: argparse.Namespace) -> int:
    from deep_learning_cases.release import pack

    make = pack.target_kit if arguments.target_kit else pack.pack
    with out_folder.taken(existing(arguments.folder)):  # pack renews a report that is missing or old
        path = make(arguments.folder, out=arguments.out)
    if arguments.out is None and not arguments.folder.is_absolute():
        path = Path(os.path.relpath(path))  # named as the folder was
    return command_line.emit(arguments, {"zip": str(path), "bytes": path.stat().st_size}, [str(path)])
