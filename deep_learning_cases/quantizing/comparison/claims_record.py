"""``claims.json``: what somebody concludes from one quantization.json about one int8 version, with numbers and scope.

:func:`write` saves it and :func:`check` judges it against the raw samples and predictions of the record beside it.  The
check finds verdicts and numbers that do not follow; whether the samples were measured, no file can tell.
"""

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import DeepLearningCasesError, one_line
from deep_learning_cases.ground import files, schemas
from deep_learning_cases.ground.expectation import look
from deep_learning_cases.ground.handed_in import Finding, read_regular
from deep_learning_cases.quantizing.comparison import check as comparison_check
from deep_learning_cases.quantizing.comparison.claims import CLAIMS, claims_of

__all__ = ["AREAS", "CLAIMS", "FILE", "RECORD", "check", "expected", "write"]

FILE, RECORD = "claims.json", "quantization.json"
SCHEMA = "deep-learning-cases/claims/1"
AREAS = ("comparison_record", "claims_verdicts", "claims_evidence", "claims_scope")

EVIDENCE = {
    "smaller": ("bytes", "baseline_bytes"),
    "faster at batch 1": ("ratio", "low", "high"),
    "faster at batch 32": ("ratio", "low", "high"),
    "as accurate": ("loss_pp", "low", "high"),
}
"""The numbers each claim rests on, by claim."""

ROUNDED = 0.01
"""A number may be typed from a table: within 1 % of it, or within 0.01."""
LEAST_WORDS = 4
MAX_CLAIMS_BYTES = 64 * 1024

_ASK = {
    "smaller": "compare the two numbers of bytes",
    "faster at batch 1": "on which side of 1 does the whole interval of the ratio lie?",
    "faster at batch 32": "on which side of 1 does the whole interval of the ratio lie?",
    "as accurate": "on which side of the limit of 1 point does the whole interval of the loss lie?",
}
_REDO = {
    "comparison_record": "delete the record and measure again; raw samples are never repaired by hand",
    "claims_verdicts": "read the numbers of the record that is there now, and write the claims again",
    "claims_evidence": "take the numbers from the record that is there now, and write the claims again",
    "claims_scope": "say for whom the sentence holds and to whom nobody may say it",
}

Json = dict[str, Any]


def write(folder: str | Path, config: str, claims: Mapping[str, Any], threads: int = 1) -> Path:
    """Save ``claims.json`` about version ``config``, bound to the record in ``folder``, whole or not at all.

    ``claims``: {claim: {"verdict" ("true", "false" or "inconclusive"), "evidence" {name: number}, "scope" {"holds_for",
    "not_for" (sentences), "measure_again_elsewhere" (bool)}}} for the four :data:`CLAIMS`.

    Raises FileError without a record, EvidenceError for the first thing that the format does not allow.
    """
    folder = Path(folder)
    content = files.read_bytes(folder / RECORD, files.MAX_JSON_BYTES)
    record = files.parse_json(content, RECORD)
    value = {
        "schema": SCHEMA,
        "record": {"file": RECORD, "sha256": files.sha256_bytes(content)},
        "config": config,
        "baseline": look(record, "configs", config, "baseline"),
        "threads": threads,
        "claims": _plain(claims),
    }
    schemas.validate(value, "claims", FILE)
    files.write_json(folder / FILE, value)
    return folder / FILE


def check(folder: str | Path) -> list[Finding]:
    """What in ``quantization.json`` and ``claims.json`` is missing, damaged or does not follow; never raises for it."""
    folder = Path(folder)
    record, content, problem = _read(folder / RECORD, files.MAX_JSON_BYTES)
    found = [("", problem)] if problem else comparison_check.problems(record, folder)
    findings = [_finding("comparison_record", RECORD, *one) for one in found]
    claims, _, absent = _read(folder / FILE, MAX_CLAIMS_BYTES)
    if absent:
        # A record from which nobody concluded anything is what every "run all" makes.
        return findings + [_finding(area, FILE, "", absent) for area in AREAS]
    return findings + list(_check_claims(claims, record, files.sha256_bytes(content)))


def expected(record: Mapping[str, Any], config: str, threads: int) -> dict[str, Json]:
    """{claim: {"verdict", "evidence"}} about one version, from the raw samples and predictions of a whole record.

    Raises KeyError for a version or thread count that the record does not hold, or one without a baseline.
    """
    again = comparison_check.recomputed(record)
    configs = {
        name: {**facts, "loss": again["loss"][name]}
        for name, facts in record["configs"].items()
    }  # fmt: skip
    rows = {str(threads): again["speed"][config][str(threads)]}
    judged = claims_of(configs, {config: rows})[config]
    numbers = {
        name: judged[name]["evidence"].get(str(threads), judged[name]["evidence"])
        for name in CLAIMS
    }  # fmt: skip
    return {
        name: {"verdict": judged[name]["verdict"], "evidence": {key: numbers[name][key] for key in EVIDENCE[name]}}
        for name in CLAIMS
    }


def _check_claims(claims: Any, record: Any, sha256: str) -> Iterator[Finding]:
    violated = []
    for pointer, words in schemas.violations(claims, "claims"):
        violated.append(pointer)
        yield from (_finding(area, FILE, pointer, words) for area in _areas_of(pointer))
    if look(claims, "record", "sha256") != sha256:
        words = f"is not that of the {RECORD} here: expected the record that the claims were made from"
        yield _finding("claims_evidence", FILE, "/record/sha256", words)
    truth, problem = _truth(claims, record)
    if truth is None:
        yield from (_finding(area, FILE, "/config", problem) for area in ("claims_verdicts", "claims_evidence"))
    for name in CLAIMS:
        pointer = f"/claims/{name}"
        if f"{pointer}/verdict" not in violated and truth and look(claims, "claims", name):
            yield from _verdict(name, look(claims, "claims", name, "verdict"), truth[name]["verdict"])
        if truth:
            yield from _evidence(name, look(claims, "claims", name, "evidence"), truth[name]["evidence"], violated)
    yield from _scope(claims)


def _areas_of(pointer: str) -> tuple[str, ...]:
    """The areas that a violation of the format concerns: its own part of a claim, or all."""
    for part, area in (("verdict", "claims_verdicts"), ("evidence", "claims_evidence"), ("scope", "claims_scope")):
        if f"/{part}" in pointer:
            return (area,)
    return AREAS[1:]


def _truth(claims: Any, record: Any) -> tuple[dict[str, Json] | None, str]:
    """What the claims should say, or None and why nobody can know."""
    config, threads = look(claims, "config"), look(claims, "threads")
    facts = look(record, "configs", str(config))
    if not isinstance(facts, dict) or facts.get("baseline") is None:
        return None, f"is {one_line(str(config), 60)!r}: expected an int8 version that the record holds"
    if look(claims, "baseline") != facts["baseline"]:
        return None, f"is compared with {one_line(str(look(claims, 'baseline')), 60)!r}: expected {facts['baseline']!r}"
    try:
        return expected(record, str(config), threads), ""
    except (DeepLearningCasesError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return None, f"cannot be judged: the {RECORD} here has no usable samples of it with {threads} thread(s)"


def _verdict(name: str, stated: Any, right: str) -> Iterator[Finding]:
    if stated != right:
        words = f"is {one_line(str(stated), 40)!r}, which the record does not give: {_ASK[name]}"
        yield _finding("claims_verdicts", FILE, f"/claims/{name}/verdict", words)


def _evidence(name: str, stated: Any, right: Json, violated: list[str]) -> Iterator[Finding]:
    for key, value in right.items():
        pointer = f"/claims/{name}/evidence/{key}"
        given = look(stated, key)
        if pointer in violated:
            continue
        if (given is None) != (value is None) or (value is not None and not _near(given, value)):
            words = f"is {given}: expected {value if value is None else format(value, '.4g')}, from the raw record"
            yield _finding("claims_evidence", FILE, pointer, words)


def _near(given: Any, value: float) -> bool:
    return isinstance(given, int | float) and abs(given - value) <= max(ROUNDED, ROUNDED * abs(value))


def _scope(claims: Any) -> Iterator[Finding]:
    outside = []
    for name in CLAIMS:
        scope, pointer = look(claims, "claims", name, "scope"), f"/claims/{name}/scope"
        if not isinstance(scope, dict):
            continue  # the format has been complained about
        said = {key: " ".join(str(scope.get(key, "")).lower().split()) for key in ("holds_for", "not_for")}
        outside.append(said["not_for"])
        for key, sentence in said.items():
            if len(sentence.split()) < LEAST_WORDS:
                words = f"says too little: expected a sentence of at least {LEAST_WORDS} words"
                yield _finding("claims_scope", FILE, f"{pointer}/{key}", words)
        if said["holds_for"] == said["not_for"]:
            yield _finding("claims_scope", FILE, pointer, "says that it holds for whom it does not hold")
        if name.startswith("faster") and scope.get("measure_again_elsewhere") is False:
            words = "is false: expected true, since these times were taken on one machine only"
            yield _finding("claims_scope", FILE, f"{pointer}/measure_again_elsewhere", words)
    if len(outside) == len(CLAIMS) and len(set(outside)) == 1:
        words = "all four claims end at the same place: is the size of a file in doubt wherever its speed is?"
        yield _finding("claims_scope", FILE, "/claims", words)


def _read(path: Path, max_bytes: int) -> tuple[Any, bytes, str]:
    content, problem = read_regular(path, max_bytes)
    if content is None:
        return None, b"", problem
    try:
        return files.parse_json(content, path.name), content, ""
    except DeepLearningCasesError as error:
        return None, content, one_line(error)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, and verdicts that are Python's own true and false as the words of the format."""
    if isinstance(value, Mapping):
        plain = {str(key): _plain(child) for key, child in value.items()}
        if isinstance(plain.get("verdict"), bool):
            plain["verdict"] = str(plain["verdict"]).lower()
        return plain
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _finding(area: str, file: str, pointer: str, message: str) -> Finding:
    return Finding(area, file, pointer, message, _REDO[area])
