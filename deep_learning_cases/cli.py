"""``dlcases``: the labs from the command line.

Every command prints a few lines for a person, or one JSON value with ``--json``.  Exit codes: 0 done, 1 the evidence or
a file is not as it should be, 2 the call itself is wrong, 3 an optional package is missing, 130 stopped by Ctrl-C.
"""

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from deep_learning_cases import __version__
from deep_learning_cases.errors import DeepLearningCasesError, FileError, InputError, MissingDependencyError

__all__ = ["main"]

Command = Callable[[argparse.Namespace], int]

OTHER_LABS = {
    "latency": ("latency_cli", "", "time one network: batch sizes, boundaries, cold starts, memory"),
    "batching": ("batching_cli", "", "simulate a queue in front of a server, and choose a batching policy"),
    "quantize": ("quantize_cli", "", "make int8 versions in PyTorch and compare size, speed, memory and predictions"),
    "serve": ("service_cli", "serve_", "answer images over HTTP, with dynamic batching"),
    "load": ("service_cli", "load_", "send requests at a declared rate, timed from their intended start"),
}
"""Command -> module, prefix of its two functions, help.  Only the module of the command asked for is imported."""

INTERRUPTED = 130
"""The shell's own convention: 128 + SIGINT."""

STOPPED = "stopped by Ctrl-C: every file is either the old one or a whole new one"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never lets bad input become a traceback."""
    words = sys.argv[1:] if argv is None else argv
    _open_standard_streams()
    with _interrupts() as interrupts:
        try:
            arguments = _parser(words).parse_args(words)
            command: Command = arguments.command
            code = command(arguments)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            return _fail(STOPPED, INTERRUPTED)
        except Exception as error:
            # NumPy and PyTorch turn a Ctrl-C while they are being imported into an ImportError of their own.
            return _fail(STOPPED, INTERRUPTED) if interrupts else _explain(error)


def _explain(error: Exception) -> int:
    """One line on standard error for every failure that input or system can cause; raises what is a defect of ours."""
    if isinstance(error, DeepLearningCasesError):
        return _fail(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        # The reader of our output went away (as `head` does); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, OSError):
        place = error.filename or "the system"
        return _fail(f"{place}: {error.strerror or error}; check the path, rights and space", 1)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.split(".")[0] != __package__:
        package = {"sklearn": "scikit-learn"}.get(top := error.name.split(".")[0], top)
        needed = f"{package} is not installed: this command needs it; install it with: pip install {package}"
        return _fail(needed, MissingDependencyError.exit_code)
    if isinstance(error, MemoryError):
        return _fail("not enough memory for this command: expected about 1 GB free; close other programs", 1)
    raise error


def _open_standard_streams() -> None:
    """Give a stream that the caller closed (``>&-``) to the null device.

    Otherwise the next file that is opened gets its number, and with it whatever a library prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open until the process ends


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Every Ctrl-C until the end of the block, each of them raised as KeyboardInterrupt as well."""
    seen: list[int] = []

    def note(number: int, _frame: object) -> NoReturn:
        seen.append(number)
        raise KeyboardInterrupt

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield seen  # somebody else deals with Ctrl-C, or it is ignored, as behind nohup
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"dlcases: {line}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """argparse prints the usage before every error; one line and where to find help is enough."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="dlcases", description="Measure neural networks honestly.")
    parser.add_argument("--version", action="version", version=f"dlcases {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def add(name: str, command: Command, text: str, folder: str | None = "evidence folder") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if folder:
            sub.add_argument("folder", metavar="DIR", type=_path, help=folder)
        sub.add_argument("--json", action="store_true", help="one JSON value on standard output")
        sub.set_defaults(command=command)
        return sub

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
    pack.add_argument("--out", type=_path, help="where the zip goes (beside the folder)")
    doctor = add("doctor", _doctor, "what would spoil a measurement on this machine", folder=None)
    doctor.add_argument("folder", metavar="DIR", type=_path, nargs="?", help="evidence folder, for an A/A reading")
    for name, (module, prefix, text) in OTHER_LABS.items():
        sub = add(name, _from(module, f"{prefix}command"), text, folder=None)
        if name in words:
            getattr(importlib.import_module(f"deep_learning_cases.{module}"), f"add_{prefix}arguments")(sub)
    lab = add("lab", _lab, "put the notebooks into a work folder and start JupyterLab", folder=None)
    lab.add_argument("folder", metavar="DIR", type=_path, nargs="?", default=Path("work/labs"), help="(work/labs)")
    lab.add_argument("--no-start", action="store_true", help="only copy the notebooks")
    return parser


def _path(text: str) -> Path:
    """An unset shell variable gives "", and ``Path("")`` is the current folder: hardly what was meant."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: expected a path; write . for the current folder")
    return Path(text)


def _from(module: str, name: str) -> Command:
    """A command that lives in a module of its own, imported when it runs."""

    def command(arguments: argparse.Namespace) -> int:
        code: int = getattr(importlib.import_module(f"deep_learning_cases.{module}"), name)(arguments)
        return code

    return command


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise FileError(f"{folder} {what}: expected an evidence folder; make one with: dlcases run {folder}")
    return folder


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder} ({error.strerror}): choose a writable place") from error
    return folder


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def _emit(arguments: argparse.Namespace, value: Any, lines: Iterable[str]) -> int:
    """The answer of a command: one JSON value, or lines for a person."""
    if arguments.json:
        _print_json(value)
    else:
        print("\n".join(lines))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import artefacts, bench, files, preparation, regression, release, report, stats

    folder = _writable(arguments.folder)
    stages: list[tuple[str, Callable[[], Any]]] = [
        ("build", lambda: preparation.build(folder, seed=arguments.seed)),
        ("regression", lambda: regression.regress(folder)),
        ("bench", lambda: bench.run(folder)),
        ("statistics", lambda: bench.summarise(folder, stats.latency_summary)),
        ("release", lambda: release.write(folder, release.make(folder))),
        ("report", lambda: report.build(folder)),
    ]
    seconds: dict[str, float] = {}
    for name, stage in stages:
        started = time.perf_counter()
        stage()
        seconds[name] = round(time.perf_counter() - started, 2)
        if not arguments.json:
            print(f"{name:<11}{seconds[name]:6.2f} s", flush=True)
    findings = release.check(folder)
    record = files.read_json(folder / artefacts.RELEASE)
    if arguments.json:
        _print_json({"folder": str(folder), "seconds": seconds, "release": record, "findings": _as_dicts(findings)})
    else:
        print()
        _print_summary(folder, record)
    return _print_findings(findings, arguments.json)


def _print_summary(folder: Path, record: dict[str, Any]) -> None:
    from deep_learning_cases import artefacts, files

    benchmark = files.read_json(folder / artefacts.BENCHMARK)
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
    print(f"\nreport: {folder / artefacts.REPORT}")


def _build(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import preparation

    facts = preparation.build(_writable(arguments.folder), seed=arguments.seed)
    return _emit(
        arguments, facts, [f"built {arguments.folder}", *(f"  {key}: {value}" for key, value in facts.items())]
    )


def _regress(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import regression

    record = regression.regress(_existing(arguments.folder))
    accuracy, interval = record["accuracy"], record["loss_interval_pp"]
    lines = [
        f"accuracy: fp32 {100 * accuracy['fp32']:.1f} %, int8 {100 * accuracy['int8']:.1f} %",
        f"loss: {record['loss_pp']:+.2f} points, 95 % interval {interval['low']:+.2f} to {interval['high']:+.2f}",
        f"agreement: {100 * record['agreement']:.1f} % of {record['images']} test images; {record['can_show']}",
    ]
    return _emit(arguments, record, lines)


def _bench(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import bench, noise, stats

    folder = _existing(arguments.folder)
    if not 0 < arguments.timeout_s < float("inf"):
        raise InputError(f"--timeout-s is {arguments.timeout_s}: expected a number of seconds above 0; change it")
    if arguments.aa:
        reading = noise.measure(folder, timeout_s=arguments.timeout_s)
        return _emit(arguments, reading, noise.lines(reading))
    record = bench.run(folder, timeout_s=arguments.timeout_s, latency_stats=stats.latency_summary)
    lines = [f"{record['unit']}; {record['boundary']}"]
    lines += [
        f"{model:<6} batch {batch:>3}: p50 {row['p50_us']:.1f}, p95 {row['p95_us']:.1f} "
        f"(nearest rank, n {row['n']}), {row['images_per_second']:.0f} images/s"
        for model, rows in record["summary"].items()
        for batch, row in rows.items()
    ]
    return _emit(arguments, record, lines)


def _release(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import release

    folder = _existing(arguments.folder)
    record = release.make(folder)
    path = release.write(folder, record)
    return _emit(arguments, record, [f"decision: {record['decision']}; wrote {path}"])


def _check(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import pack, release

    path: Path = arguments.folder
    findings = pack.check_zip(path) if path.is_file() else release.check(_existing(path))
    if arguments.json:
        _print_json({"passed": not findings, "findings": _as_dicts(findings)})
    elif not findings:
        print(f"{path}: the files hang together and the numbers follow from the raw samples.")
        print("That does not prove that the times were really measured, nor does it hold for another machine.")
        if path.is_file():
            print("Who packed it is unknown: run its programs only if you trust whoever gave it to you.")
    return _print_findings(findings, arguments.json)


def _as_dicts(findings: Sequence[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(finding) for finding in findings]


def _print_findings(findings: Sequence[Any], as_json: bool) -> int:
    if not as_json:
        for finding in findings:
            print(finding)
    return 1 if findings else 0


def _report(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import report

    path = report.build(_existing(arguments.folder))
    return _emit(arguments, {"report": str(path)}, [str(path)])


def _pack(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import pack

    make = pack.target_kit if arguments.target_kit else pack.pack
    path = make(_existing(arguments.folder), out=arguments.out)
    return _emit(arguments, {"zip": str(path), "bytes": path.stat().st_size}, [str(path)])


def _doctor(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import doctor

    result = doctor.examine(_existing(arguments.folder) if arguments.folder else None)
    return _emit(arguments, result, doctor.lines(result))


def _lab(arguments: argparse.Namespace) -> int:
    from deep_learning_cases import lab

    copied = lab.prepare(arguments.folder)
    _emit(arguments, copied, lab.lines(copied))
    return 0 if arguments.no_start else lab.start(arguments.folder)


if __name__ == "__main__":
    sys.exit(main())
