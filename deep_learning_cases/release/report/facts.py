"""What a report says, as values: the records, what was recomputed from them, and what does not hang together."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import EvidenceError
from deep_learning_cases.ground import files
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.measuring import bench_record, stats
from deep_learning_cases.models import artefacts
from deep_learning_cases.models.artefacts import BASELINE, CANDIDATE
from deep_learning_cases.release import gate
from deep_learning_cases.release.checking import target
from deep_learning_cases.release.checking.seal import SOURCES
from deep_learning_cases.release.evidence import Evidence
from deep_learning_cases.release.record import check

__all__ = ["Facts", "Row", "rows_of"]

_DRAWN = ("benchmark_record", "benchmark_linkage", "regression")
"""Areas that a report cannot do without: where they are damaged or of another model there is nothing to draw."""


@dataclass(frozen=True)
class Row:
    """One line of the table: the summary of a model and batch size, and the interval of each percentile."""

    model: str
    batch_size: int
    summary: dict[str, Any]
    p50: stats.PercentileInterval
    p95: stats.PercentileInterval


@dataclass(frozen=True)
class Facts:
    """Everything that the parts of a report need; ``decided`` is None where there is no decision to show."""

    evidence: Evidence
    benchmark: bench_record.Benchmark
    regression: dict[str, Any]
    decided: dict[str, Any] | None
    findings: list[Finding]
    target: dict[str, Any] | None

    @classmethod
    def read(cls, folder: str | Path | Evidence) -> "Facts":
        """Check a folder or a reading of it; EvidenceError with the first reason if its records cannot be drawn."""
        evidence = Evidence.open(folder)
        # An old report is about to be replaced, so what is wrong with it is of no interest.
        found = [one for one in check(evidence) if one.area != "report"]
        for one in found:
            if one.area in _DRAWN:
                raise EvidenceError(f"{evidence.folder} cannot be reported: {one}")
        missing = artefacts.RELEASE not in evidence.contents
        if missing:
            found = [one for one in found if not one.area.startswith("release_")]
        decided = evidence.documents[artefacts.RELEASE].value
        sound = isinstance(decided, dict) and not any(one.area.startswith("release_") for one in found)
        return cls(
            evidence,
            evidence.documents[artefacts.BENCHMARK].value,
            evidence.documents[artefacts.REGRESSION].value,
            decided if sound else None,
            found,
            target.accepted(evidence),
        )

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file that the report is written from, or "none"."""
        contents = self.evidence.contents
        return {name: files.sha256_bytes(contents[name]) if name in contents else "none" for name in SOURCES}

    @cached_property
    def verdict(self) -> gate.Verdict:
        """The gate's own answer to the numbers of the files, whatever release.json says."""
        size = self.evidence.size(artefacts.INT8)
        loss, interval = self.regression["loss_pp"], self.regression["loss_interval_pp"]
        return gate.decide({"model_bytes": size, "loss_pp": loss, "loss_interval_pp": interval})

    def comparison(self, batch_size: int) -> dict[str, Any]:
        """Candidate against baseline at one batch size, as :func:`stats.compare` puts it."""
        return compare_models(self.benchmark, batch_size)


def compare_models(record: bench_record.Benchmark, batch_size: int) -> dict[str, Any]:
    """:func:`stats.compare` of the candidate with the baseline, round by round."""
    rounds = {
        model: [
            run["samples_us"][str(batch_size)] for run in sorted(record["runs"], key=_round) if run["model"] == model
        ]
        for model in (CANDIDATE, BASELINE)
    }
    return stats.compare(rounds[CANDIDATE], rounds[BASELINE])


def rows_of(record: bench_record.Benchmark) -> list[Row]:
    """One row per model and batch size, computed from the merged raw samples."""
    rows = []
    for model in record["models"]:
        for size in record["protocol"]["batch_sizes"]:
            samples = bench_record.merged_samples(record, model, size)
            p50, p95 = (stats.percentile_interval(samples, p) for p in (0.5, 0.95))
            rows.append(Row(model, size, stats.latency_summary(samples, size), p50, p95))
    return rows


def _round(run: bench_record.Run) -> int:
    return int(run["round"])
