"""The parts that stand between a submission and the grader: lines, answers, numbers, outputs, staged folders, walls."""

import json
import math
import os
import shutil
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.sandbox.answers import checked, failed, known_names
from grading.sandbox.behind_wall import coerce
from grading.sandbox.limits import Limits
from grading.sandbox.lines import Lines, parse
from grading.sandbox.outputs import Outputs
from grading.sandbox.run_parts import Call, Cell
from grading.sandbox.staged import read_folder
from grading.sandbox.wall.filters import DENIED, compiled_filter
from grading.sandbox.wall.kinds import make_plan

KNOWN = known_names(["class Mine(ValueError): pass"])


# Lines ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 7))
def test_lines_come_back_whatever_the_pieces(numbers: list[int], size: int) -> None:
    data = b"".join(json.dumps({"type": "x", "n": n}).encode() + b"\n" for n in numbers)
    lines = Lines(100)
    found = [value["n"] for at in range(0, len(data), size) for value, _ in lines.feed(data[at : at + size])]
    assert found == numbers


def test_a_line_that_is_too_long_is_skipped_and_the_next_is_read() -> None:
    lines = Lines(40)
    assert list(lines.feed(b'{"type": "x", "a": "' + b"y" * 100)) == []
    assert len(lines._held) == 0
    assert [value for value, _ in lines.feed(b'"}\n{"type": "z"}\n')] == [{"type": "z"}]
    assert lines.skipped == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"7",
        b"{}",
        b'{"type": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type": "x", "n": ' + b"9" * 9999 + b"}",
        b"{",
    ],
    ids=["empty", "list", "number", "no type", "type 3", "no UTF-8", "deep", "long number", "half"],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert parse(line) is None


# Answers -------------------------------------------------------------------------------------------------------------


def answer(**fields: object) -> dict:
    whole = {"ok": True, "value": {"n": 1}, "types": {}, "notes": {}, "returned": "dict", "error": None}
    return checked(json.dumps(whole | fields).encode(), KNOWN, 5)


def test_numbers_pass_and_missing_keys_are_named() -> None:
    assert answer()["value"] == {"n": 1, "p50_us": "missing", "p95_us": "missing", "images_per_second": "missing"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "bool"),
        (None, None),
        (1e308 * 10, None),
        (10**400, "int"),
        ("str", "str"),
        ("LEAK 1.5", "a class of its own"),
        ([1], None),
    ],
)
def test_what_is_no_number_never_becomes_one(value: object, expected: object) -> None:
    assert answer(value={"n": value})["value"]["n"] == expected


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"[" * 100_000, b"nonsense", b"null", b'"text"'],
    ids=["empty", "list", "deep", "text", "null", "string"],
)
def test_a_line_that_is_no_answer_is_a_bad_answer(line: bytes) -> None:
    assert checked(line, KNOWN, 5) == failed("BadAnswer")


def test_names_are_shown_only_if_they_stood_in_the_source() -> None:
    good = answer(ok=False, error={"type": "Mine", "mro": ["Mine", "ValueError"]})
    assert good["error"] == {"type": "Mine", "mro": ["Mine", "ValueError"]}
    bad = answer(ok=False, error={"type": "x7p25", "mro": [7, "x7p25"] + ["ValueError"] * 50})
    assert bad["error"]["type"] == "a class of its own"
    assert len(bad["error"]["mro"]) == 12


def test_samples_after_are_bounded() -> None:
    assert answer(samples_after=list(range(100)))["samples_after"] == [0, 1, 2, 3, 4, 5]
    assert answer(samples_after={"a": 1})["samples_after"] is None


# Numbers -------------------------------------------------------------------------------------------------------------


class Liar(float):
    def __float__(self) -> float:
        return 7.0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __add__(self, other: float) -> float:
        return 8.0


class IntegerLiar(int):
    def __int__(self) -> int:
        return 7

    def __add__(self, other: int) -> int:
        return 8


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3), (2.5, 2.5), (np.int64(3), 3), (np.float32(0.5), 0.5), (np.array(4.0), 4.0), (np.longdouble(1.5), 1.5),
        (np.uint8(255), 255), (Fraction(1, 4), 0.25), (Decimal("0.5"), 0.5), (Liar(3.5), 3.5), (IntegerLiar(4), 4),
    ],
)  # fmt: skip
def test_numbers_of_every_kind_become_plain(value: object, expected: float) -> None:
    number = coerce.plain(value)
    assert number == expected
    assert type(number) is type(expected)


@pytest.mark.parametrize(
    "value", [True, np.True_, "3", b"3", None, 1j, [1], np.array([1.0]), object(), 1 << 5000, Decimal("sNaN"), int, len]
)
def test_other_values_are_no_numbers(value: object) -> None:
    assert coerce.plain(value) is None


def test_not_finite_values_are_null_with_a_note() -> None:
    described = coerce.describe({"n": math.inf, "p50_us": -math.inf, "p95_us": np.nan, "images_per_second": 1})
    assert described["value"] == {"n": None, "p50_us": None, "p95_us": None, "images_per_second": 1}
    assert described["notes"] == {"n": "inf", "p50_us": "-inf", "p95_us": "nan"}


def test_a_dict_that_lies_about_its_items_is_read_by_the_base() -> None:
    class Mapping(dict):
        def __getitem__(self, key: str) -> int:
            return 99

    assert coerce.describe(Mapping(n=1))["value"]["n"] == 1


def test_a_type_name_that_is_no_name_is_not_shown() -> None:
    assert coerce.clean_name(type("7 1.5", (), {})) == "object"


# Outputs -------------------------------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "content",
                        "data",
                        "name",
                        "text",
                        "text/plain",
                        "metadata",
                        "transient",
                        "display_id",
                        "traceback",
                        "wait",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(
        ["stream", "display_data", "execute_result", "update_display_data", "error", "clear_output", "status", "x"]
    ),
)
def test_any_message_leaves_a_valid_notebook(content: object, kind: str) -> None:
    outputs = Outputs(1, 10_000, "cut")
    outputs.message(0, {"type": kind, "content": content}, 10)
    outputs.message(0, {"type": "stream", "content": {"name": "stdout", "text": "\ud800 end"}}, 10)
    (cell,) = outputs.finished()
    node = nbformat.v4.new_code_cell("", outputs=[nbformat.from_dict(output) for output in cell])
    nbformat.validate(nbformat.v4.new_notebook(cells=[node]))
    str(cell).encode("utf-8")


def test_more_than_the_limit_is_cut_with_a_note() -> None:
    outputs = Outputs(2, 1000, "too much")
    for _ in range(5):
        outputs.message(0, {"type": "stream", "content": {"name": "stdout", "text": "x" * 400}}, 400)
    outputs.message(1, {"type": "stream", "content": {"name": "stdout", "text": "fine"}}, 4)
    first, second = outputs.finished()
    assert first[0]["text"] == "x" * 800
    assert first[1]["text"] == "\n[too much]\n"
    assert second == [{"output_type": "stream", "name": "stdout", "text": "fine"}]


# Folders and walls ---------------------------------------------------------------------------------------------------


def test_only_regular_files_are_staged_and_never_more_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    assert read_folder(tmp_path, Limits(file_mb=1)) == [("sub/a.txt", b"abc")]
    assert len(read_folder(tmp_path, Limits(files_in=1))) == 1


def test_the_filter_names_what_leads_out() -> None:
    assert {"ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "open_by_handle_at"} <= set(
        DENIED
    )
    assert len(compiled_filter()) % 8 == 0
    assert len(compiled_filter()) > 400


def test_the_wall_binds_an_allow_list_and_nothing_of_the_course(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/bwrap")
    plan = make_plan("bubblewrap", Limits(), 3, False)
    plan.close()
    course = Path(__file__).resolve().parents[3]
    bound = [plan.command[at + 1] for at, word in enumerate(plan.command) if word in ("--ro-bind", "--ro-bind-try")]
    assert not [word for word in plan.command if word in ("--bind", "--share-net")]
    devices = {plan.command[at + 1] for at, word in enumerate(plan.command) if word == "--dev-bind"}
    assert devices == {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    inside_course = {path for path in bound if Path(path).is_relative_to(course)}
    allowed = {str(course / "grading/sandbox/behind_wall"), str(course / "deep_learning_cases")}
    assert all(path in allowed or "venv" in path or "site-packages" in path for path in inside_course)
    assert str(course) not in plan.config["path"]
    assert "/" not in bound
    assert "/etc" not in bound
    assert str(Path.home()) not in bound


def test_cells_and_calls_are_taken_from_plain_json() -> None:
    assert Cell.of({"id": "a", "source": "x"}) == Cell("a", "x", True)
    assert Call.of({"id": "a", "samples": [1], "batch_size": 2, "container": "tuple"}) == Call("a", [1], 2, "tuple")
    with pytest.raises(ValueError, match="'set'"):
        Call("a", [1], 2, "set")
    assert Limits.from_dict(Limits(processes=3).to_dict()).processes == 3


OTHER_PYTHON = """
from grading.sandbox.box import open_box
with open_box(isolation="bubblewrap") as box:
    source = "import os; open('/tmp/left', 'w').close(); print('ran')"
    run = box.run([{"id": "a", "source": source, "run": True}])
    run = box.run([{"id": "a", "source": source.replace("open", "os.path.exists('/tmp/left') or open")}])
    print(box.isolation["kind"], run.outputs["a"][0]["text"].strip(), box.restarts)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_checkout_in_the_temporary_folder_has_the_same_wall(tmp_path):
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("temporary files of this machine are not in /tmp, where the wall has a folder of its own")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "venv" / "lib" / version / "site-packages" / "ours.pth").write_text(ours)
    root = Path(__file__).resolve().parents[3]
    by_detour = f"{tmp_path}/venv/lib/../bin/python"
    done = subprocess.run(
        [by_detour, "-c", OTHER_PYTHON],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["bubblewrap", "ran", "0"], done.stderr
