"""How ``report.html`` names its sources and its own bytes, so that an old or an edited one is noticed."""

import re

from deep_learning_cases.ground import files
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.checking.judge import finding
from deep_learning_cases.release.evidence import Evidence

__all__ = ["SOURCES", "link_tags", "report_findings", "seal"]

SOURCES = (artefacts.BENCHMARK, artefacts.REGRESSION, artefacts.RELEASE)

_SEAL = re.compile(rb'<meta name="report-sha256" content="([0-9a-f]{64})">')
_LINK = re.compile(rb'<meta name="sha256:([a-z_.]{1,40})" content="([0-9a-f]{64}|none)">')
_BLANK = b"0" * 64


def link_tags(hashes: dict[str, str]) -> str:
    """The tags for a report's head: one per source file and an open seal."""
    tags = [f'<meta name="sha256:{name}" content="{digest}">' for name, digest in hashes.items()]
    return "\n".join([*tags, f'<meta name="report-sha256" content="{_BLANK.decode()}">'])


def seal(page: str) -> bytes:
    """The page with the SHA-256 of itself (taken while the seal was all zeros) in its seal."""
    content = page.encode("utf-8")
    tag = b'<meta name="report-sha256" content="%s">'
    return content.replace(tag % _BLANK, tag % files.sha256_bytes(content).encode(), 1)


def report_findings(evidence: Evidence) -> list[Finding]:
    """A report from other files or with other bytes than were written; none at all is no finding, it can be made."""
    problem = evidence.absent.get(artefacts.REPORT, "")
    if problem == "is missing":
        return []
    problem = problem or _problem(evidence)
    return [finding("report", artefacts.REPORT, "", problem)] if problem else []


def _problem(evidence: Evidence) -> str:
    content = evidence.contents[artefacts.REPORT]
    found = _SEAL.search(content)
    if not found:
        return "carries no seal: expected a page written by the library"
    blank = content[: found.start(1)] + _BLANK + content[found.end(1) :]
    if files.sha256_bytes(blank).encode() != found[1]:
        return "was changed after it was written: its bytes do not match its own SHA-256"
    named = {name.decode(): digest.decode() for name, digest in _LINK.findall(content)}
    stale = [name for name in SOURCES if named.get(name) != _present(evidence, name)]
    return f"was written from another {' and '.join(stale)}" if stale else ""


def _present(evidence: Evidence, name: str) -> str:
    return files.sha256_bytes(evidence.contents[name]) if name in evidence.contents else "none"
