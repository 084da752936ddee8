"""What the evidence should say, recomputed from its files, and where it says something else.

Each field is judged apart: the expected record is a tree beside the stated one, and every leaf that differs becomes a
finding with its own JSON pointer.  What cannot be recomputed accepts no value, so that missing files never pass.
"""

from collections.abc import Callable
from typing import Any

from deep_learning_cases.errors import one_line
from deep_learning_cases.ground import schemas
from deep_learning_cases.ground.expectation import compare
from deep_learning_cases.ground.handed_in import Finding
from deep_learning_cases.models import artefacts
from deep_learning_cases.release.evidence import Evidence

__all__ = ["FREE", "REDO", "RELINK", "bounded", "finding", "judge"]


FREE = {
    artefacts.BENCHMARK: {
        "/created_at": "when measuring ended: any UTC time can be true",
        "/boundary": "words for the reader; there has to be a text",
        "/environment/**": "machines differ; nothing in the files says on which one the times were taken",
        "/protocol/input": "words for the reader",
        "/runs/*/pid": "any process number that no other run has",
        "/runs/*/started_at": "any UTC time can be true",
        "/runs/*/load_average/**": "a reading that nothing else in the files repeats",
        "/runs/*/cold_start_us": "a reading that nothing else in the files repeats",
        "/runs/*/peak_rss_bytes": "a reading; only the candidate's largest is repeated, in release.json",
        "/runs/*/peak_rss_source": "where the system's number comes from: a name for the reader",
        "/runs/*/loop_overhead_us": "a reading that nothing else in the files repeats",
        "/runs/*/warmups_us/**": "warm-ups are recorded and enter no summary",
    },
    artefacts.REGRESSION: {
        "/created_at": "any UTC time can be true",
        "/can_show": "words for the reader; there has to be a text",
        "/loss_interval_pp/method": "words for the reader; there has to be a text",
        "/engine/**": "what ran the models where the record was made; it need not be what checks them",
    },
    artefacts.RELEASE: {
        "/not_claimed/*": "the author's own words; together they have to name the five things that stay open",
    },
}
"""Fields whose value no other file fixes, and why (``*`` one step, ``**`` everything below).

A change of one of them is still noticed as long as release.json is there, since it holds the SHA-256 of the other two
files; it is then the file that is named and not the field.
"""

MEASURE = "measure again with the provided helper (dlcases bench); raw samples are never repaired by hand"
RELINK = (
    "run the regression and measure again with the files that are there (dlcases regress, dlcases bench), then judge"
    " again (dlcases release); a new hash on old samples would be well linked and false"
)
REDO = {
    "benchmark_record": MEASURE,
    "benchmark_linkage": RELINK,
    "benchmark_summary": "compute the summary again with latency_stats from the merged raw samples of all rounds",
    "regression": "run the regression again (dlcases regress); if a model or the data changed, measure again as well",
    "release_linkage": "make release.json again from these files (dlcases release), after regression and measuring",
    "release_limits": "take every number from the present files and judge again (dlcases release)",
    "release_claims": "state the claims as JSON booleans and sentences: the evidence covers this machine only",
    "weights": "build the folder again (dlcases build), then everything after it",
    "report": "write the report again (dlcases report)",
    "target_benchmark": "run the target kit of this folder again (dlcases pack --target-kit), copy its result whole",
}
"""What a finding in each area asks for."""

_MAX_PER_AREA = 20


def finding(area: str, file: str, pointer: str, message: str) -> Finding:
    """A finding with what its area asks to redo."""
    return Finding(area, file, pointer, message, REDO[area])


def judge(
    evidence: Evidence,
    name: str,
    schema: str,
    expected: dict[str, Any],
    area: Callable[[str], str],
    areas: tuple[str, ...],
) -> list[Finding]:
    """Compare one JSON file with its expected tree and its schema; ``areas`` all fail where it cannot be read."""
    document = evidence.documents[name]
    if document.unreadable:
        return [Finding(one, name, "", document.unreadable, REDO[one]) for one in areas]
    if not isinstance(document.value, dict):
        return [Finding(one, name, "", "is not an object: expected the record", REDO[one]) for one in areas]
    places = dict(compare(document.value, expected))
    for pointer, message in schemas.violations(document.value, schema):
        if not any(_within(pointer, known) or _within(known, pointer) for known in places):
            places[one_line(pointer, 200)] = one_line(message, 300)
    found = [Finding(area(pointer), name, pointer, message, REDO[area(pointer)]) for pointer, message in places.items()]
    for key in document.repeated:
        one = area(f"/{key}")
        found.append(Finding(one, name, "", f"holds the key {one_line(key, 40)!r} twice in one object", REDO[one]))
    return bounded(found)


def _within(pointer: str, parent: str) -> bool:
    return pointer == parent or pointer.startswith(f"{parent}/")


def bounded(found: list[Finding]) -> list[Finding]:
    """At most twenty findings per area: a file that is wrong everywhere is told so in one line more."""
    kept: list[Finding] = []
    counts: dict[str, int] = {}
    for one in found:
        counts[one.area] = counts.get(one.area, 0) + 1
        if counts[one.area] <= _MAX_PER_AREA:
            kept.append(one)
    for area, count in counts.items():
        if count > _MAX_PER_AREA:
            kept.append(
                Finding(area, found[0].file, "", f"has {count - _MAX_PER_AREA} more places like these", REDO[area])
            )
    return kept
