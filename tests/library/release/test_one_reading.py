"""A folder whose files change under a reader: all answers are of the state that was read first, and no mixture."""

import json
import shutil
from pathlib import Path

import pytest

from deep_learning_cases import release, report
from deep_learning_cases.errors import EvidenceError
from deep_learning_cases.ground import archive
from deep_learning_cases.models import artefacts
from deep_learning_cases.release import pack
from deep_learning_cases.release.evidence import Evidence

ASK = {
    "check": lambda folder: [str(one) for one in release.check(folder)],
    "check of a reading": lambda folder: [str(one) for one in release.check(Evidence.open(folder))],
    "collect": release.collect,
    "make": release.make,
    "report": lambda folder: report.build(folder).read_bytes(),
    "pack": lambda folder: archive.read_zip(pack.pack(folder)),
}


def outcome(ask, folder: Path):
    try:
        return ask(folder)
    except EvidenceError as error:
        return str(error)


def numbers(folder: Path) -> None:
    """Damage that a report can still draw: a decision and a median that are not those of the files."""
    path = folder / artefacts.RELEASE
    record = json.loads(path.read_text())
    record["decision"] = {"release": "reject", "reject": "release"}[record["decision"]]
    path.write_text(json.dumps(record))
    path = folder / artefacts.BENCHMARK
    record = json.loads(path.read_text())
    record["summary"]["int8"]["1"]["p50_us"] *= 2
    path.write_text(json.dumps(record))


def rounds(folder: Path) -> None:
    """Damage that nothing can be drawn from."""
    path = folder / artefacts.BENCHMARK
    record = json.loads(path.read_text())
    record["protocol"]["rounds"] = 2
    path.write_text(json.dumps(record))


def models(folder: Path) -> None:
    """Cut short: what the check reads besides the records."""
    for name in (artefacts.DATA, artefacts.INT8, artefacts.WEIGHTS):
        (folder / name).write_bytes((folder / name).read_bytes()[:-100])


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("damage", [numbers, rounds, models])
@pytest.mark.parametrize("mended", [False, True], ids=["damaged-meanwhile", "mended-meanwhile"])
def test_everybody_speaks_of_the_state_that_was_read_first(evidence, tmp_path, monkeypatch, ask, damage, mended):
    sound, damaged = tmp_path / "sound", tmp_path / "damaged"
    for state in (sound, damaged):
        shutil.copytree(evidence, state)
    damage(damaged)
    first, second = (damaged, sound) if mended else (sound, damaged)

    def lay(state: Path) -> None:
        shutil.copytree(state, evidence, dirs_exist_ok=True)

    lay(second)
    other = outcome(ASK[ask], evidence)
    lay(first)
    expected = outcome(ASK[ask], evidence)
    real, readings = Evidence.open.__func__, []

    def open_and_swap(cls, folder):
        reading = real(cls, folder)
        if not readings:
            lay(second)
        readings.append(reading)
        return reading

    lay(first)
    monkeypatch.setattr(Evidence, "open", classmethod(open_and_swap))
    assert outcome(ASK[ask], evidence) == expected
    assert all(one is readings[0] for one in readings)
    assert expected != other
