"""The evidence folder as somebody handed it in: regular files only, bounded, read once, and what follows from them.

Nothing here raises for what a file holds.  A damaged file becomes words, because the reader (a student, a grader) wants
all that is wrong and not the first exception.
"""

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import EvidenceError, FileError, InputError
from deep_learning_cases.ground import files, machine
from deep_learning_cases.ground.expectation import Digest, Rule, is_number, look, unknown
from deep_learning_cases.ground.handed_in import Document, attempt, parse, read_regular
from deep_learning_cases.measuring import stats
from deep_learning_cases.models import artefacts, data
from deep_learning_cases.release import regression

__all__ = [
    "AREAS",
    "FILES",
    "OTHER_AREAS",
    "Evidence",
    "summary_of",
]

AREAS = (
    "benchmark_record", "benchmark_linkage", "benchmark_summary",
    "regression", "release_linkage", "release_limits", "release_claims",
)  # fmt: skip
"""What a finding is about: the parts of the evidence that are judged apart."""

OTHER_AREAS = ("weights", "report", "target_benchmark", "package")
"""Files beside the evidence that is judged: wrong ones are named, and say nothing about the rest."""

FILES = (
    artefacts.DATA, artefacts.FP32, artefacts.INT8, artefacts.WEIGHTS, artefacts.REGRESSION,
    artefacts.BENCHMARK, artefacts.RELEASE, artefacts.REPORT, artefacts.TARGET,
)  # fmt: skip
"""Of an evidence folder, in the order they are made; the last two may be absent."""


OTHER_MACHINE_IMAGES = 2
"""Predictions that may tip over where the record comes from another processor or ONNX Runtime than the one checking.

Kernels round differently there, so that an image with two almost equal logits may change sides.  On the machine and
version that the record names nothing is allowed.
"""

_LIMITS = {
    artefacts.DATA: data.MAX_ARCHIVE_BYTES,
    artefacts.FP32: artefacts.MAX_MODEL_BYTES,
    artefacts.INT8: artefacts.MAX_MODEL_BYTES,
    artefacts.WEIGHTS: artefacts.MAX_MODEL_BYTES,
    artefacts.REPORT: 32 * 1024 * 1024,
}


@dataclass
class Evidence:
    """One reading of a folder: every file's bytes once, so that all checks speak of the same state."""

    folder: Path
    contents: dict[str, bytes] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: "str | Path | Evidence") -> "Evidence":
        """Read the folder; what was read already stays as it is, so that everybody who asks speaks of one state.

        FileError if there is no such folder.  Damaged or missing files are noted, not raised.
        """
        if isinstance(folder, Evidence):
            return folder
        folder = Path(folder)
        if not folder.is_dir():
            raise FileError(f"{folder} is not a folder: expected an evidence folder; check the path")
        evidence = cls(folder)
        for name in FILES:
            content, problem = read_regular(folder / name, _LIMITS.get(name, files.MAX_JSON_BYTES))
            if content is None:
                evidence.absent[name] = problem
            else:
                evidence.contents[name] = content
        return evidence

    def sha256(self, name: str) -> Any:
        """The file's hash, or a rule that accepts nothing where there is no file."""
        if name not in self.contents:
            return self._unknown(name)
        return Digest.known(files.sha256_bytes(self.contents[name]), name)

    def size(self, name: str) -> Any:
        """Bytes of a file of the folder; a rule that accepts none where it cannot be read."""
        return len(self.contents[name]) if name in self.contents else self._unknown(name)

    def record(self, name: str) -> dict[str, Any]:
        """``{"file", "sha256", "bytes"}`` as the JSON files should name it."""
        return {"file": name, "sha256": self.sha256(name), "bytes": self.size(name)}

    def _unknown(self, name: str) -> Rule:
        return unknown(f"{name} {self.absent[name]}")

    def read_json(self, name: str) -> Any:
        """A JSON file of this reading, parsed as strictly as :func:`files.read_json` does; the same failures."""
        if name in self.absent:
            raise FileError(f"cannot read {self.folder / name}: it {self.absent[name]}")
        return files.parse_json(self.contents[name], str(self.folder / name))

    @cached_property
    def documents(self) -> dict[str, Document]:
        """Every JSON file, taken apart as far as it can be."""
        names = (artefacts.BENCHMARK, artefacts.REGRESSION, artefacts.RELEASE, artefacts.TARGET)
        return {
            name: parse(self.contents[name]) if name in self.contents else Document(None, self.absent[name])
            for name in names
        }

    @cached_property
    def usable(self) -> dict[str, str]:
        """File -> why it cannot be used ("" if it can): the archive holds plain arrays, the models plain graphs."""
        found = {artefacts.DATA: self.absent.get(artefacts.DATA) or attempt(self._check_data)[1]}
        for name in (artefacts.FP32, artefacts.INT8):
            check = partial(artefacts.check_onnx_bytes, self.contents.get(name, b""), name)
            found[name] = self.absent.get(name) or attempt(check)[1]
        return found

    def _check_data(self) -> None:
        splits = data.parse_data(self.contents[artefacts.DATA], self.folder / artefacts.DATA)
        for split, count in (("calibration", data.CALIBRATION_IMAGES), ("test", data.TEST_IMAGES)):
            images = len(splits[split].images)
            if images != count:
                raise EvidenceError(f"it holds {images} {split} images: expected {count}")

    @cached_property
    def recomputed(self) -> tuple[Any, str]:
        """The regression, by running both models again; or None and why it cannot be run."""
        for name, problem in self.usable.items():
            if problem:
                return None, f"{name} cannot be used: {problem}"
        return attempt(lambda: regression.recompute_bytes(self.contents, self.folder))

    @cached_property
    def allowance(self) -> int:
        """Images that may be judged differently here: 0 on the processor and ONNX Runtime that the record names."""
        here, there = machine.environment(), look(self.documents[artefacts.BENCHMARK].value, "environment")
        places = (("cpu", "model"), ("libraries", "onnxruntime"))
        same = all(look(here, *place) == look(there, *place) for place in places)
        return 0 if same else OTHER_MACHINE_IMAGES

    def summary(self, model: str, batch_size: int) -> dict[str, Any] | None:
        """The four numbers from the merged raw samples of benchmark.json, or None where they do not give any."""
        return summary_of(self.documents[artefacts.BENCHMARK].value, model, batch_size)


def summary_of(record: Any, model: str, batch_size: int) -> dict[str, Any] | None:
    """The summary of one model and batch size over all rounds of a record that nobody has checked yet."""
    runs = look(record, "runs")
    samples: list[Any] = []
    for run in runs if isinstance(runs, list) else []:
        part = look(run, "samples_us", str(batch_size)) if look(run, "model") == model else []
        if not isinstance(part, list):
            return None
        samples += part
    if not all(is_number(sample) and sample > 0 for sample in samples):
        return None
    try:
        return stats.latency_summary(samples, batch_size)
    except InputError:
        return None
