"""``dlcases latency``: the latency case from the command line, at every boundary, cold and warm, with memory.

What measures and draws is imported when the command runs, so that ``dlcases --help`` stays quick.
"""

import argparse
import functools
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep_learning_cases.errors import InputError, MeasurementError, MissingDependencyError
from deep_learning_cases.ground import out_folder

if TYPE_CHECKING:
    from deep_learning_cases.ground.figures import Picture
    from deep_learning_cases.latency.case import LatencyCase

__all__ = ["add_arguments", "command"]

BOUNDARIES = ("model", "preprocessing", "service")
RECORD = "latency.json"
MAX_CONNECTIONS = 512


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``dlcases latency``; ``--json`` is every command's and comes from the caller."""
    parser.add_argument("--batches", default="1,32", help="images per call (1,32)")
    parser.add_argument(
        "--boundary", default="model", help=f"{', '.join(BOUNDARIES)}, several with commas, or all (model)"
    )
    parser.add_argument("--cold", action="store_true", help="also the first answer of fresh processes")
    parser.add_argument("--cold-starts", type=int, default=5, help="fresh processes for each batch size (5)")
    parser.add_argument(
        "--memory-limit-mb", type=float, help="find the largest batch that fits; leave out what does not"
    )
    parser.add_argument("--engine", default="numpy", help="numpy, onnxruntime or pytorch (numpy)")
    parser.add_argument("--model", type=Path, help="evidence folder or model file (seeded, untrained weights)")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda with pytorch (cpu)")
    parser.add_argument("--threads", type=int, default=1, help="inference threads (1)")
    parser.add_argument("--warmups", type=int, default=8, help="calls before the trials of each batch size (8)")
    parser.add_argument("--trials", type=int, default=60, help="timings of each batch size (60)")
    parser.add_argument("--inputs", default="fresh", help="fresh for every call, or fixed (fresh)")
    parser.add_argument("--seed", type=int, default=1729, help="of weights and inputs (1729)")
    parser.add_argument("--widths", default="64,256,1024", help="pixels of the images to decode (64,256,1024)")
    parser.add_argument("--image-format", default="jpeg", help="jpeg or png (jpeg)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each series with preprocessing (2)")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help=f"for {RECORD} and figures (here)")


def command(arguments: argparse.Namespace) -> int:
    """Run ``dlcases latency``; returns the exit code, raises one of the library's failures for anything unusable."""
    from deep_learning_cases.ground import files
    from deep_learning_cases.latency import case, view
    from deep_learning_cases.latency import record as latency_record

    asked = _boundaries(arguments.boundary)
    sizes = case.check_batches(_whole_numbers("--batches", arguments.batches))
    widths = _whole_numbers("--widths", arguments.widths)
    if not 0 < arguments.seconds < float("inf"):
        raise InputError(f"--seconds is {arguments.seconds}: expected a number above 0; change it")
    if not 1 <= arguments.cold_starts <= 1000:
        raise InputError(f"--cold-starts is {arguments.cold_starts}: expected 1 to 1000; change it")
    case.check_protocol(arguments.warmups, arguments.trials, arguments.seed, arguments.threads, arguments.inputs)
    limit_bytes = _limit_bytes(arguments.memory_limit_mb)
    out: Path = arguments.out
    with out_folder.made(out), out_folder.taken(out):
        record = _measure(arguments, asked, sizes, widths, limit_bytes)
        out_folder.keep(out / RECORD, files.json_bytes(latency_record.to_json(record)))
        case.save(record, out / RECORD)
        written = [out / RECORD]
        pictures = list(_pictures(record))
        for picture in pictures:
            path = out / f"{picture.name}.png"
            files.write_bytes(path, _png(picture))
            written.append(path)
    if arguments.json:
        alt = {path.name: picture.alt_text for path, picture in zip(written[1:], pictures, strict=True)}
        value = {"record": latency_record.to_json(record), "files": [str(path) for path in written], "alt_texts": alt}
        print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join([*view.report(record), "", *(f"wrote {path}" for path in written)]))
    return 0


def _measure(
    arguments: argparse.Namespace, asked: set[str], sizes: list[int], widths: list[int], limit_bytes: int | None
) -> "LatencyCase":
    from deep_learning_cases.latency import boundaries, case, fresh_starts

    what = {key: getattr(arguments, key) for key in ("engine", "model", "seed", "threads", "device")}
    how = what | {"warmups": arguments.warmups, "trials": arguments.trials}
    memory = fresh_starts.memory(sizes, limit_bytes=limit_bytes, **what)
    fitting = [size for size in sizes if memory["results"][size]["fits"]]
    if not fitting:
        reason = memory["results"][sizes[0]]["reason"]
        raise MeasurementError(
            f"no batch of {sizes} fits in {arguments.memory_limit_mb:g} MB ({reason}); the largest that does is"
            f" {memory['largest_batch']['fits']}: expected one that fits; choose smaller batches or a larger limit"
        )
    record = case.latency_case(fitting, inputs=arguments.inputs, **how)
    record["memory"] = memory
    parts: dict[str, Any] = {}
    limited = how | {"seconds": arguments.seconds}
    if "preprocessing" in asked:
        for width in widths:
            measure = functools.partial(boundaries.preprocessing, fitting, width, arguments.image_format, **limited)
            parts[f"preprocessing_{arguments.image_format}_{width}"] = _or_why_not(asked, "preprocessing", measure)
    if "service" in asked:
        measure = functools.partial(_service, fitting, widths[0], arguments.image_format, how)
        parts["service"] = _or_why_not(asked, "service", measure)
    if parts:
        record["boundaries"] = parts
    if arguments.cold:
        record["cold"] = fresh_starts.cold(fitting, starts=arguments.cold_starts, **what)
    return record


def _service(sizes: list[int], width: int, image_format: str, how: dict[str, Any]) -> dict[str, Any]:
    from deep_learning_cases.latency import over_http  # Tornado is an extra, and the other boundaries do without

    few = [size for size in sizes if size <= MAX_CONNECTIONS]
    if not few:
        why = f"batches of {sizes}: expected at most {MAX_CONNECTIONS}, as each image has a connection of its own"
        return {"boundary": over_http.SERVICE, "unavailable": why}
    part = over_http.measure_service(few, width, image_format, **how)
    if len(few) < len(sizes):
        part["service"]["left_out"] = f"batches above {MAX_CONNECTIONS}: each image has a connection of its own"
    return part


def _or_why_not(asked: set[str], kind: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Whoever asked for all boundaries gets those that this installation can measure, and a line about the others."""
    try:
        return measure()
    except MissingDependencyError as error:
        if asked != set(BOUNDARIES):
            raise
        return {"boundary": f"{kind}: not measured", "unavailable": str(error)}


def _pictures(record: "LatencyCase") -> "Iterator[Picture]":
    from deep_learning_cases.latency import plots, view

    yield plots.distribution(record["results"])
    series = {"model only": record["results"]}
    for name, part in record.get("boundaries", {}).items():
        if "results" in part:
            series[view.boundary_name(name)] = part["results"]
            title = f"{view.boundary_name(name)}, warm"
            yield plots.distribution(part["results"], title, f"latency-distribution-{name.replace('_', '-')}")
    yield plots.cost(series)
    if "cold" in record:
        yield plots.cold_and_warm(record["cold"]["results"], record["results"])
    yield plots.memory(record["memory"])


def _png(picture: "Picture") -> bytes:
    buffer = io.BytesIO()
    about = {"Title": picture.title, "Description": picture.alt_text, "Software": None}
    picture.figure.savefig(buffer, format="png", metadata=about)
    return buffer.getvalue()


def _boundaries(text: str) -> set[str]:
    asked = set(BOUNDARIES) if text == "all" else set(text.split(","))
    for name in sorted(asked - set(BOUNDARIES)):
        raise InputError(f"--boundary is {name!r}: expected {', '.join(BOUNDARIES)} or all; choose from them")
    return asked


def _whole_numbers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name} is {text!r}: expected whole numbers with commas between, such as 1,8,32") from None


def _limit_bytes(megabytes: float | None) -> int | None:
    if megabytes is None:
        return None
    if not 0 < megabytes < 1e9:
        raise InputError(f"--memory-limit-mb is {megabytes}: expected megabytes above 0; change it")
    return max(1, round(1e6 * megabytes))
