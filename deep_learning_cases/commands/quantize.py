"""``dlcases quantize``: train, quantize, compare; a table, figures, ``quantization.json`` and a verdict per claim."""

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import INTERRUPTED, DeepLearningCasesError, FileError, InputError
from deep_learning_cases.ground import files, out_folder
from deep_learning_cases.models import data
from deep_learning_cases.quantizing import subjects, variants
from deep_learning_cases.quantizing.comparison import compare
from deep_learning_cases.quantizing.comparison.claims import CLAIMS
from deep_learning_cases.quantizing.torch_eager import BACKENDS

__all__ = ["add_arguments", "command", "lines"]

OUT = Path("quantization")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``dlcases quantize``; ``--json`` is every command's and comes from the caller."""
    parser.add_argument("--data", default="digits", help=f"{' or '.join(subjects.NAMES)} (digits)")
    parser.add_argument("--archive", type=Path, help="cifar-10-python.tar.gz or its folder, for --data cifar10")
    parser.add_argument("--configs", help=f"some of {','.join(variants.VARIANTS)} ({','.join(variants.DEFAULT)})")
    parser.add_argument("--backend", default="auto", help=f"of PyTorch's int8: auto, {', '.join(BACKENDS)} (auto)")
    parser.add_argument("--warmup", type=int, default=10, help="discarded passes per process and batch size (10)")
    parser.add_argument("--iters", type=int, default=200, help="measured passes per process and batch size (200)")
    parser.add_argument("--rounds", type=int, default=4, help="fresh processes per configuration and thread count (4)")
    parser.add_argument("--batches", default="1,8,32", help="batch sizes (1,8,32)")
    parser.add_argument("--threads", type=int, help="one thread count (PyTorch's own, and 1)")
    parser.add_argument("--pin", action="store_true", help="bind each measuring process to fixed processors")
    parser.add_argument("--seed", type=int, default=1729, help="of split, training, QAT and inputs (1729)")
    parser.add_argument("--epochs", type=int, help="of the float32 training (digits 20, cifar10 6)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder for quantization.json and figures ({OUT})")


def command(arguments: argparse.Namespace) -> int:
    """Run ``dlcases quantize``; 0 when done, 130 after Ctrl-C with what was measured so far kept.

    Raises the failures of :func:`comparison.compare`.
    """
    plan = compare.Plan(
        configs=_configs(arguments.configs),
        backend=arguments.backend,
        warmups=arguments.warmup,
        iterations=arguments.iters,
        rounds=arguments.rounds,
        batch_sizes=_numbers(arguments.batches),
        threads=arguments.threads,
        pin=arguments.pin,
    )
    _refuse_unfit(arguments.out)
    data.check_seed(arguments.seed)
    with out_folder.made(arguments.out), out_folder.taken(arguments.out):
        return _compare(arguments, plan)


def _compare(arguments: argparse.Namespace, plan: compare.Plan) -> int:
    subject = subjects.load(arguments.data, arguments.archive, arguments.seed, arguments.epochs)
    path = arguments.out / compare.FILE
    before = path.stat().st_mtime_ns if path.exists() else None
    try:
        record = compare.compare(subject, arguments.out, plan, arguments.seed)
    except (KeyboardInterrupt, DeepLearningCasesError) as error:
        kept = path.exists() and path.stat().st_mtime_ns != before
        if kept:
            print(f"dlcases quantize: what was measured so far is in {path}, marked partial", file=sys.stderr)
        if not isinstance(error, KeyboardInterrupt):
            raise
        if not kept:
            print("dlcases quantize: stopped before anything was measured; nothing was written", file=sys.stderr)
        return INTERRUPTED
    figures = _draw(record, arguments.out)
    if arguments.json:
        print(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join([*lines(record), "", f"record: {path}", *figures]))
    return 0


def lines(record: dict[str, Any]) -> list[str]:
    """The record as tables for a person: size, accuracy, time, claims, caveats."""
    method = record["methodology"]
    text = [
        (
            f"{record['data']['name']}: {record['network']['name']}, {record['network']['parameters']:,} parameters;"
            f" {record['data']['test_images']:,} test images; seed {record['seed']}"
        ),
        "",
        *_facts(record),
        "",
        (
            f"{method['unit']}; {method['rounds']} rounds of fresh processes, each {method['warmups']} discarded and"
            f" {method['iterations']} measured; percentiles linear, nearest rank in brackets"
        ),
        *_times(record),
        "",
        "on this machine:",
        *_claims(record),
        "",
        *(f"left out: {name}: {reason}" for name, reason in record["skipped"].items()),
    ]
    if not record["gpu"]["present"]:
        text.append(f"GPU: {record['gpu']['reason']}")
    return [*text, *(f"note: {caveat}" for caveat in record["caveats"])]


def _facts(record: dict[str, Any]) -> list[str]:
    head = f"{'version':<10} {'state_dict':>10} {'on disk':>9} {'ONNX':>9} {'top-1 %':>8} {'top-5 %':>8}"
    rows = [f"{head} {'loss, 95 % interval':>22}  {'lost most':<14} int8 layers ran on"]
    for name, facts in record["configs"].items():
        size, accuracy, loss = facts["size"], facts["accuracy"], facts["loss"]
        interval = "-"
        worst = "-"
        if loss:
            ends = loss["interval_pp"]
            interval = f"{loss['loss_pp']:+.2f} ({ends['low']:+.2f} to {ends['high']:+.2f})"
            fell = loss["worst_class"]["change_pp"]
            worst = f"{loss['worst_class']['name']} {fell:+.1f}" if fell < 0 else "none"
        kernels = facts["backend"]["int8_kernels"] if facts["backend"] else {}
        ran = ", ".join(f"{library} {number}" for library, number in kernels.items()) or "-"
        asked = f" (engine {facts['backend']['ran']})" if facts["backend"] else ""
        rows.append(
            f"{name:<10} {_count(size['state_dict_bytes']):>10} {_count(size['file_bytes']):>9}"
            f" {_count(size['onnx_bytes']):>9} {100 * accuracy['top1']:>8.2f} {100 * accuracy['top5']:>8.2f}"
            f" {interval:>22}  {worst:<14} {ran}{asked}"
        )
    return rows


def _times(record: dict[str, Any]) -> list[str]:
    head = f"{'version':<10} {'threads':>7} {'batch':>5} {'p50':>18} {'p95':>20} {'p99':>20} {'mean':>9}"
    rows = [f"{head} {'images/s':>9} {'time/baseline':>21} {'RSS MB':>7}"]
    for name, by_threads in record["summary"].items():
        for threads, by_batch in by_threads.items():
            memory = record["memory"][name][threads]
            for batch, row in by_batch.items():
                speed = record["speed"].get(name, {}).get(threads, {}).get(batch)
                rank = row["nearest_rank"]
                columns = [f"{row[key]:.1f} [{rank[key]:.1f}]" for key in ("p50_us", "p95_us", "p99_us")]
                rows.append(
                    f"{name:<10} {threads:>7} {batch:>5} {columns[0]:>18} {columns[1]:>20} {columns[2]:>20}"
                    f" {row['mean_us']:>9.1f} {row['images_per_second']:>9.0f} {_ratio(speed):>21}"
                    f" {memory['rss_max_bytes'] / 1e6:>7.1f}"
                )
    return rows


def _claims(record: dict[str, Any]) -> list[str]:
    return [
        f"  {name:<10} {claim:<19} {claims[claim]['verdict']:<13} {claims[claim]['text']}"
        for name, claims in record["claims"].items()
        for claim in CLAIMS
    ]


def _ratio(speed: dict[str, Any] | None) -> str:
    if speed is None:
        return "-"
    if speed["low"] is None:
        return f"x{speed['ratio']:.2f}"
    return f"x{speed['ratio']:.2f} ({speed['low']:.2f}-{speed['high']:.2f})"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _draw(record: dict[str, Any], folder: Path) -> list[str]:
    from deep_learning_cases.quantizing.comparison import plots

    written = []
    for picture in plots.pictures(record):
        content = io.BytesIO()
        picture.figure.savefig(content, format="png", metadata={"Description": picture.alt_text})
        path = folder / f"{picture.name}.png"
        files.write_bytes(path, content.getvalue())
        written.append(f"figure: {path}: {picture.title}. {picture.caption}")
    return written


def _configs(text: str | None) -> list[str]:
    if text is None:
        present = [name for name in variants.CUDA if variants.missing(name) is None]
        return [*variants.DEFAULT, *present]
    return [part.strip() for part in text.split(",")]


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--batches is {text!r}: expected whole numbers with commas, as in 1,8,32") from None


def _refuse_unfit(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise FileError(
            f"{folder} is not a folder: expected a place for the record and its figures; choose another --out"
        )
