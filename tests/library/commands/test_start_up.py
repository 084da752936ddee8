"""No command imports what it does not need: starting is most of what the short ones take."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deep_learning_cases.commands import table
from tests.library.served import Scripted, running

ROOT = Path(__file__).resolve().parents[3]

CALLS = {
    "run": ("run", "NEW", "--json"),
    "build": ("build", "NEW"),
    "regress": ("regress", "DIR"),
    "bench": ("bench", "DIR"),
    "release": ("release", "DIR"),
    "check": ("check", "DIR"),
    "report": ("report", "DIR"),
    "pack": ("pack", "DIR"),
    "doctor": ("doctor",),
    "latency": ("latency", "--batches", "1", "--trials", "2", "--warmups", "1", "--out", "NEW"),
    "batching": (
        "batching", "--rate", "100", "--simulate", "--max-batch", "4", "--requests", "2000",
        "--service", "const:0.001",
    ),
    "quantize": (
        "quantize", "--configs", "fp32,onnx_int8", "--epochs", "1", "--iters", "2", "--warmup", "1",
        "--rounds", "2", "--batches", "1", "--threads", "1", "--out", "NEW",
    ),
    "serve": ("serve", "DIR"),
    "load": ("load", "URL", "--rate", "20", "--seconds", "0.5", "--out", "NEW"),
    "lab": ("lab", "NEW", "--no-start"),
}  # fmt: skip
"""Each command on something small: a real folder, a new one, a scripted service."""

FORMAT_CHECKERS = {"rfc3987_syntax"}
HEAVY = {"torch", "matplotlib", "sklearn"}
NEVER = {
    **dict.fromkeys(("check", "regress", "release", "bench", "load", "serve", "batching", "doctor", "lab"), HEAVY),
    "report": {"torch", "sklearn"},
    "pack": {"torch", "sklearn"},
}
"""What the others need, they need: building and quantizing train, and the latency case draws."""

CODE = """
import json, sys
from deep_learning_cases import cli
try:
    code = cli.main(sys.argv[2:])
finally:
    with open(sys.argv[1], "w") as out:
        json.dump(sorted(sys.modules), out)
sys.exit(code)
"""


def commands() -> list[str]:
    (parsers,) = [action for action in table._parser([])._actions if action.choices]
    return sorted(parsers.choices)


def test_every_command_is_called_here():
    assert sorted(CALLS) == commands()


@pytest.fixture
def loaded(evidence, tmp_path):
    """The modules in memory after a command, or after the service it started was asked to stop."""

    def after(words: tuple[str, ...], url: str = "") -> set[str]:
        places = {"DIR": str(evidence), "NEW": str(tmp_path / "new"), "URL": url}
        out = tmp_path / "modules.json"
        with subprocess.Popen(
            [sys.executable, "-c", CODE, str(out), *(places.get(word, word) for word in words)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            if words[0] == "serve":
                assert process.stdout.readline().startswith("http://")
                process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        return set(json.loads(out.read_text()))

    return after


@pytest.mark.parametrize("command", commands())
def test_a_command_imports_no_checker_of_links_and_nothing_heavy_that_it_does_not_need(command, loaded):
    if command in ("run", "build", "quantize"):
        pytest.importorskip("torch")
    words = CALLS[command]
    if command == "load":
        with running(Scripted()) as started:
            modules = loaded(words, started.url)
    else:
        modules = loaded(words)
    assert modules & FORMAT_CHECKERS == set()
    assert modules & NEVER.get(command, set()) == set()
