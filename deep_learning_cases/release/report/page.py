"""``report.html``: one file, no network, no script, for a person who was not there.

Everything in it that came from an evidence file is escaped: the folder may have been handed in by anybody.
"""

from pathlib import Path

from deep_learning_cases import __version__
from deep_learning_cases.ground import files
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.checking.seal import link_tags, seal
from deep_learning_cases.release.evidence import Evidence
from deep_learning_cases.release.report import parts
from deep_learning_cases.release.report.facts import Facts

__all__ = ["build", "page", "show", "write"]

# Only a page of its own follows the system's dark mode: a notebook has its own idea of light and dark.
_DARK = """
@media screen and (prefers-color-scheme: dark) {
  html { background: #14171c; }
  .dlc-report {
    --paper: #14171c; --card: #1d2229; --edge: #353c46; --ink: #e8eaed; --soft: #aab2bd; --faint: #7d8793;
    --good: #56d3a4; --bad: #ff9d66; --open: #f0c05a; --tint: #18293a;
    --blue: #5cb3f0; --vermillion: #ff8a4c; --green: #3ecb9e; --purple: #e0a3c6; --orange: #f2b93b;
  }
}
@page { margin: 15mm; }
@media print { html { font-size: 10pt; } }
html { background: #fff; }
body { margin: 0; }
"""


def build(folder: str | Path) -> Path:
    """Write ``report.html`` from the files of an evidence folder, whole or not at all; returns its path.

    FileError if the folder is not there or cannot be written; EvidenceError if the benchmark record or the regression
    is missing or too damaged to be drawn.  Smaller damage is listed in the report itself.
    """
    write(Evidence.open(folder))
    return Path(folder) / artefacts.REPORT


def write(evidence: Evidence) -> bytes:
    """As :func:`build`, from one reading of a folder alone; returns the bytes that were written into the folder."""
    content = seal(page(Facts.read(evidence)))
    files.write_bytes(evidence.folder / artefacts.REPORT, content)
    return content


def page(facts: Facts) -> str:
    """The whole HTML page, its seal still open."""
    title = parts.title(facts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="generator" content="deep_learning_cases {__version__}">
{link_tags(facts.hashes)}
<title>{title}</title>
<style>
{parts.style()}{_DARK}</style>
</head>
<body>
<main class="dlc-report">
{parts.body(facts)}
</main>
</body>
</html>
"""


def show(folder: str | Path) -> None:
    """Show the same report inside a notebook; raises as :func:`build`, and MissingDependencyError without IPython."""
    from deep_learning_cases.errors import MissingDependencyError

    try:
        from IPython.display import HTML, display
    except ImportError as error:
        raise MissingDependencyError(
            "IPython is not installed: expected a notebook; write the page with report.build instead"
        ) from error
    facts = Facts.read(folder)
    display(HTML(f'<style>{parts.style()}</style><div class="dlc-report">{parts.body(facts)}</div>'))
