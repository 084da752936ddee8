"""What leaves the machine: a package to keep or hand in, and the kit that repeats the measurement elsewhere.

A hosted session's files vanish; the package holds all that somebody needs who was not there.  Both archives have
reproducible bytes and carry the SHA-256 of every file in them.
"""

import ast
import json
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from deep_learning_cases import __version__
from deep_learning_cases.errors import EvidenceError, FileError, one_line
from deep_learning_cases.ground import archive, files
from deep_learning_cases.ground.expectation import compare, look
from deep_learning_cases.ground.handed_in import Finding, parse, read_regular
from deep_learning_cases.models import artefacts
from deep_learning_cases.models.artefacts import MODELS
from deep_learning_cases.release.evidence import FILES, Evidence
from deep_learning_cases.release.record import check
from deep_learning_cases.release.report import page
from deep_learning_cases.target_kit import DATA_FOLDER, MANIFEST

__all__ = ["check_zip", "kit_files", "pack", "target_kit"]

SCHEMA = "deep-learning-cases/package/1"
_MANIFEST = "manifest.json"
_KIT = "target-kit"
_TOP_FILES = ("conditions.json", "requirements.txt", "reproduce.py", "README.txt")
_SOURCES = (".ipynb", ".py", ".md")
_MAX_SOURCE_BYTES = 8 * 1024 * 1024
_MAX_SOURCES = 60


def pack(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write a zip of evidence, notebooks beside it, library, reproduction script, run conditions and a manifest.

    ``out`` is the zip's path, ``<folder>.zip`` beside the folder if None.  A report that is missing or old is written
    first.  FileError if something cannot be read or written; EvidenceError where there is nothing sound to report.
    """
    folder = Path(folder).resolve()
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder: expected an evidence folder; check the path")
    evidence = Evidence.open(folder)
    contents = dict(evidence.contents)
    if artefacts.REPORT not in contents or any(one.area == "report" for one in check(evidence)):
        contents[artefacts.REPORT] = page.write(evidence)
    members = {f"evidence/{name}": content for name, content in contents.items()}
    members |= {f"notebooks/{name}": content for name, content in _sources_beside(folder)}
    members |= {f"library/deep_learning_cases/{name}": content for name, content in _library()}
    members["conditions.json"] = _json(_conditions(evidence))
    members["requirements.txt"] = _requirements(evidence)
    members["reproduce.py"] = _REPRODUCE.encode()
    members["README.txt"] = _PACKAGE_README.encode()
    members[_MANIFEST] = _json({"schema": SCHEMA, "files": _facts(members)})
    return _write(out, folder.with_name(f"{folder.name}.zip"), members)


def target_kit(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the kit that repeats the protocol on another machine with Python, NumPy and ONNX Runtime alone.

    ``out`` is the zip's path, ``<folder>-target-kit.zip`` beside the folder if None.  FileError for a missing file,
    EvidenceError or ModelError for one that should not travel.
    """
    folder = Path(folder).resolve()
    evidence = Evidence.open(folder)
    names = (artefacts.DATA, *MODELS.values())
    for name in names:
        if problem := evidence.usable[name]:
            kind = FileError if name in evidence.absent else EvidenceError
            raise kind(f"{folder / name} cannot go into a kit: {problem}; build the folder again (dlcases build)")
    members = {f"{_KIT}/{DATA_FOLDER}/{name}": evidence.contents[name] for name in names}
    members |= {f"{_KIT}/deep_learning_cases/{name}": _source(name) for name in kit_files()}
    members[f"{_KIT}/measure.py"] = _MEASURE.encode()
    members[f"{_KIT}/README.txt"] = _KIT_README.encode()
    members[f"{_KIT}/{MANIFEST}"] = _json({"files": {name: evidence.record(name) for name in names}})
    return _write(out, folder.with_name(f"{folder.name}-target-kit.zip"), members)


def check_zip(path: str | Path) -> list[Finding]:
    """Everything that is wrong with a package: the zip itself, its manifest, and the evidence in it.

    Nothing is unpacked before names, sizes and hashes are in order, and then only the evidence, into a folder that is
    deleted again.  FileError if the file cannot be read.
    """
    try:
        members = archive.read_zip(path)
    except EvidenceError as error:
        return [_wrong(Path(path).name, "", one_line(error, 300))]
    if f"{_KIT}/{MANIFEST}" in members and _MANIFEST not in members:
        message = "this is a target kit, not evidence"
        redo = "unpack it on the target device and run its measure.py; check the folder that it came from"
        return [Finding("package", Path(path).name, "", message, redo)]
    found = _check_manifest(members)
    with tempfile.TemporaryDirectory(prefix="package-") as scratch:
        for name in FILES:
            if f"evidence/{name}" in members:
                (Path(scratch) / name).write_bytes(members[f"evidence/{name}"])
        return found + check(scratch)


def kit_files() -> list[str]:
    """Paths inside the library of all that the target's program imports when it is loaded, found in the sources."""
    wanted, found = ["target_kit.py", "measuring/trial.py"], set()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found |= {name, *(f"{folder}/__init__.py".removeprefix("./") for folder in PurePosixPath(name).parents)}
            wanted += _imported(_source(name))
    return sorted(found)


def _imported(source: bytes) -> Iterator[str]:
    """Modules of this library in the import statements at the top level; those inside functions are optional there."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "deep_learning_cases":
            room = str(node.module).split(".")[1:]
            for place in (room, *([*room, alias.name] for alias in node.names)):
                if place and _library_folder().joinpath(*place).with_suffix(".py").is_file():
                    yield f"{'/'.join(place)}.py"


def _source(name: str) -> bytes:
    return (_library_folder() / name).read_bytes()


def _library_folder() -> Path:
    return Path(str(resources.files("deep_learning_cases")))


def _library() -> Iterator[tuple[str, bytes]]:
    root = _library_folder()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".json", ".css"):
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _sources_beside(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Notebooks and notes that lie beside the evidence folder, as in an assignment's folder; links are not followed."""
    kept = 0
    for path in sorted(folder.parent.iterdir()):
        if path.suffix not in _SOURCES or path.name.startswith(".") or kept == _MAX_SOURCES:
            continue
        content, _problem = read_regular(path, _MAX_SOURCE_BYTES)
        if content is not None and archive.is_plain(path.name):
            kept += 1
            yield path.name, content


def _conditions(evidence: Evidence) -> dict[str, Any]:
    """Under which conditions the record was taken, apart from the timings themselves."""
    record = evidence.documents[artefacts.BENCHMARK].value
    keys = ("created_at", "boundary", "unit", "protocol", "environment")
    return {"deep_learning_cases": __version__} | {key: look(record, key) for key in keys}


def _requirements(evidence: Evidence) -> bytes:
    libraries = look(evidence.documents[artefacts.BENCHMARK].value, "environment", "libraries")
    versions = libraries if isinstance(libraries, dict) else {}
    lines = [f"{name}=={version}" for name, version in sorted(versions.items()) if name != "deep_learning_cases"]
    return "".join(f"{one_line(line, 100)}\n" for line in [*lines, "jsonschema", "matplotlib", "tqdm"]).encode()


def _facts(members: dict[str, bytes]) -> dict[str, Any]:
    return {
        name: {"sha256": files.sha256_bytes(content), "bytes": len(content)}
        for name, content in sorted(members.items())
    }


def _check_manifest(members: dict[str, bytes]) -> list[Finding]:
    if _MANIFEST not in members:
        return [_wrong(_MANIFEST, "", "is missing: expected the list of files with their SHA-256")]
    document = parse(members[_MANIFEST])
    if document.unreadable:
        return [_wrong(_MANIFEST, "", document.unreadable)]
    tree = {"schema": SCHEMA, "files": _facts({name: one for name, one in members.items() if name != _MANIFEST})}
    found = [_wrong(_MANIFEST, pointer, message) for pointer, message in list(compare(document.value, tree))[:20]]
    found += [_wrong(_MANIFEST, "", f"holds the key {one_line(key, 40)!r} twice") for key in document.repeated]
    known = {f"evidence/{name}" for name in FILES} | {_MANIFEST, *_TOP_FILES}
    strangers = [name for name in members if name not in known and not name.startswith(("notebooks/", "library/"))]
    return found + [_wrong(name, "", "is not part of a package") for name in strangers[:20]]


def _wrong(file: str, pointer: str, message: str) -> Finding:
    return Finding("package", file, pointer, message, "pack the folder again (dlcases pack)")


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _write(out: str | Path | None, default: Path, members: dict[str, bytes]) -> Path:
    path = Path(out) if out is not None else default
    files.write_bytes(path, archive.zip_bytes(members))
    return path


_PACKAGE_README = """\
The release lab, packed.

evidence/        data, models, regression.json, benchmark.json (every raw timing), release.json, report.html
notebooks/       notebooks and notes that lay beside the evidence folder
library/         the library that made and checks it
conditions.json  machine, protocol and boundary of the measurement
manifest.json    SHA-256 and size of every file here

Look:       open evidence/report.html in a browser.
Check:      python reproduce.py check
Repeat:     python reproduce.py again NEW_FOLDER   (trains with PyTorch and measures on your machine)

Install first what requirements.txt names, with Python 3.11, 3.12 or 3.13.  Data and models should come out with the
same SHA-256 with the same versions on the same kind of machine; times will not, they belong to the machine.  Hashes
show that the files belong together, not that anybody measured the times, nor who packed them: run the programs in here
only if you trust whoever gave you this package.
"""

_REPRODUCE = '''\
"""python reproduce.py check              recompute everything from the files in evidence/
python reproduce.py again NEW_FOLDER   train, quantize, measure and judge anew, then compare the hashes
"""

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "library"))


def compare_hashes(old, new):
    for name in ("data.npz", "model_fp32.npz", "model_fp32.onnx", "model_int8.onnx"):
        first, second = (hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (old, new))
        print(name, "same bytes" if first == second else "other bytes: another machine or other versions")


def main(arguments):
    from deep_learning_cases import cli

    if arguments == ["check"]:
        return cli.main(["check", str(HERE / "evidence")])
    if len(arguments) == 2 and arguments[0] == "again":
        code = cli.main(["run", arguments[1]])
        if code == 0:
            compare_hashes(HERE / "evidence", Path(arguments[1]))
        return code
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

_KIT_README = """\
Target kit: the same models, data and protocol on this machine.

    python measure.py --device "what this machine is"

It needs Python 3.11 or newer, NumPy and ONNX Runtime (pip install numpy onnxruntime) and nothing else; it changes
nothing outside this folder.  Close other programs first; it takes a few seconds on a desktop processor, minutes on a
small one.  The result is target_benchmark.json, with every raw timing, written whole at the end.

Copy it into the evidence folder that the kit came from.  There dlcases check accepts it for these very models and data
only, and dlcases report shows it beside the local measurement, never mixed with it.  It is latency and peak memory of
this machine: power, heat and a hard real-time bound are still not measured.
"""

_MEASURE = '''\
"""Repeat the measurement on this machine: python measure.py --device "what this machine is"."""

import os
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("measure: this is Python %d.%d: expected 3.11 or newer; install one" % sys.version_info[:2])
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # or it writes into the home folder, beside the measurement
try:
    import numpy  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as error:
    sys.exit("measure: %s is not installed: pip install numpy onnxruntime" % error.name)

from deep_learning_cases.target_kit import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(HERE))
'''
