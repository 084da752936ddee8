"""Many solutions, right and mistaken, and the points and names they get."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.exercises.latency_stats import judge, questions
from grading.judging.flags import source_flags
from grading.judging.items import STATS_ITEMS
from tests.grading.asking import CASES, SEED, ask, grade, points

OTHER_SEED = "another seed for the tests only"
CORRECT = sorted((CASES / "correct").glob("*.py"))
MISTAKEN = sorted((CASES / "mistaken").glob("*.py"))
FREE_WORDS = re.compile(r"p50|p95|\b\d+(?:\.\d+)? of \d+\b")


def text_of(path):
    return path.read_text(encoding="utf-8")


def named(path):
    return text_of(path).splitlines()[0].removeprefix("# mistake: ")


def test_there_are_enough_cases():
    assert len(CORRECT) >= 20
    assert len(MISTAKEN) >= 60


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_a_right_solution_gets_every_point(path, seed):
    items, flags = grade(text_of(path), seed)
    assert {item.id: item.points for item in items.values()} == STATS_ITEMS
    assert not any(item.mistake for item in items.values())
    assert flags == []


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
@pytest.mark.parametrize("path", MISTAKEN, ids=lambda path: path.stem)
def test_a_mistake_costs_points_and_is_named(path, seed):
    items, _ = grade(text_of(path), seed)
    assert points(items) < sum(STATS_ITEMS.values())
    assert named(path) in {item.mistake for item in items.values()}
    for item in items.values():
        assert item.passed == (item.points == item.max_points)
        assert item.passed != bool(item.mistake) or item.message == judge.GATE


@pytest.mark.parametrize("path", CORRECT + MISTAKEN, ids=lambda path: path.stem)
def test_no_message_holds_a_number_of_its_own(path):
    # Every figure that may stand in a message is listed: a sample, a size or an expected value cannot be among them.
    items, flags = grade(text_of(path))
    for text in [item.message for item in items.values()] + [flag.reason for flag in flags]:
        figures = re.findall(r"\d+(?:\.\d+)?", FREE_WORDS.sub("", text))
        assert set(figures) <= {"0.95", "1"}, text


def value_items(items):
    return [items[item].points for item in ("stats_p50", "stats_p95", "stats_throughput")]


@pytest.mark.parametrize(
    "name", ["blank", "passes", "renamed", "constant", "visible_example_only", "always_valueerror", "syntax_error"]
)
def test_a_blank_or_an_empty_shell_earns_nothing_anywhere(name):
    items, _ = grade(text_of(CASES / "mistaken" / f"{name}.py"))
    assert points(items) == 0


def test_pure_and_errors_need_a_right_answer():
    items, _ = grade(text_of(CASES / "mistaken" / "constant.py"))
    assert items["stats_pure"].message == items["stats_errors"].message == judge.GATE
    items, _ = grade(text_of(CASES / "mistaken" / "upper_and_maximum.py"))
    assert value_items(items) == [0, 0, 0]
    assert (items["stats_pure"].points, items["stats_errors"].points) == (1, 1)


def test_a_value_that_is_right_for_few_samples_only_opens_nothing():
    # The least of one sample is its median, and the greatest of nineteen their p95: luck, not an answer.
    items, _ = grade(text_of(CASES / "mistaken" / "one_sample_logic.py"))
    assert points(items) == 0


def test_of_two_names_for_one_answer_the_one_that_other_values_show_is_given():
    # Without the slowest call the p95 stands at the rank that rounding down gives; the other values tell which it was.
    items, _ = grade(text_of(CASES / "mistaken" / "slowest_call_dropped.py"))
    shown = {items[item].mistake for item in ("stats_p50", "stats_p95", "stats_throughput")}
    assert shown == {"drops-slow-samples"}


def test_sorting_in_place_pays_in_one_place_only():
    items, _ = grade(text_of(CASES / "mistaken" / "sorts_in_place.py"))
    assert value_items(items) == [2, 3, 2]
    assert items["stats_pure"].points == 0


def test_an_exception_on_a_few_inputs_leaves_half_of_what_is_right():
    items, _ = grade(text_of(CASES / "mistaken" / "lists_only.py"))
    assert value_items(items) == [1, 1.5, 1]
    assert "NumPy arrays and tuples" in items["stats_p50"].message
    items, _ = grade(text_of(CASES / "mistaken" / "rank_index_raises.py"))
    assert {items[item].mistake for item in ("stats_p50", "stats_p95", "stats_throughput")} == {"rank-used-as-index"}


def test_a_wrong_count_leaves_half_of_the_throughput():
    items, _ = grade(text_of(CASES / "mistaken" / "n_counts_images.py"))
    assert items["stats_throughput"].points == 1
    assert value_items(items)[:2] == [2, 3]


def test_other_exceptions_than_valueerror_leave_half_of_the_errors():
    items, _ = grade(text_of(CASES / "mistaken" / "asserts_for_errors.py"))
    assert items["stats_errors"].points == 0.5


def test_a_batch_size_that_is_not_whole_is_a_remark_and_costs_nothing():
    items, _ = grade(text_of(CASES / "correct" / "batch_type_not_checked.py"))
    assert items["stats_errors"].points == 1
    assert "costs nothing" in items["stats_errors"].message


def test_two_mistakes_in_one_value_are_both_in_the_message():
    items, _ = grade(text_of(CASES / "mistaken" / "calls_and_milliseconds.py"))
    message = items["stats_throughput"].message
    assert "calls per second" in message
    assert "another unit" in message


def test_an_unknown_mistake_gets_a_hint_where_it_is_off():
    source = text_of(CASES / "correct" / "plain.py").replace("(xs[mid - 1] + xs[mid]) / 2", "xs[mid] + 0.77")
    items, _ = grade(source)
    assert items["stats_p50"].mistake == "unknown"
    assert "only for an even number of samples" in items["stats_p50"].message


def test_only_calling_the_library_is_writing_nothing():
    source = "from deep_learning_cases import stats\n\ndef latency_stats(samples_us, batch_size):\n    raise OFF\n"
    hidden = questions.load(SEED)
    answers = ask(source, judge.calls(hidden), used={"library": True})
    items, flags = judge.judge(hidden, answers, True, source)
    assert sum(item.points for item in items) == 0
    assert {item.mistake for item in items} == {"calls-the-library"}
    assert "Write it yourself" in items[0].message
    assert [flag.id for flag in flags] == ["calls-the-library"]


def test_a_right_solution_that_also_calls_the_library_is_flagged_and_keeps_its_points():
    hidden = questions.load(SEED)
    source = text_of(CASES / "correct" / "plain.py")
    answers = ask(source, judge.calls(hidden), used={"library": True})
    items, flags = judge.judge(hidden, answers, True, source)
    assert sum(item.points for item in items) == 9
    assert [flag.id for flag in flags] == ["calls-the-library"]


def test_an_exceptions_name_cannot_carry_hidden_numbers_out():
    source = (
        "def latency_stats(samples_us, batch_size):\n"
        "    raise type('LEAK' + str(samples_us[0]).replace('.', '_'), (ValueError,), {})()\n"
    )
    items, _ = grade(source)
    assert not any("LEAK" in item.message for item in items.values())


def test_a_run_that_was_stopped_says_why():
    hidden = questions.load(SEED)
    items, _ = judge.judge(hidden, {}, False, "while True: pass", "stopped after 30 s: the cell was still running")
    assert {item.mistake for item in items} == {"stopped"}
    assert all("stopped after 30 s" in item.message for item in items)


def test_calls_carry_the_inputs_and_nothing_else():
    hidden = questions.load(SEED)
    asked = judge.calls(hidden)
    assert len(asked) == len(hidden)
    assert {frozenset(call) for call in asked} == {frozenset({"id", "function", "samples", "container", "batch_size"})}


def test_code_that_looks_around_is_flagged_and_judged_by_its_answers():
    source = "import sys, gc\n_ = sys._getframe, gc.get_objects\n" + text_of(CASES / "correct" / "plain.py")
    items, flags = grade(source)
    assert points(items) == 9
    assert {flag.id for flag in flags} == {"reads-frames", "searches-memory"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
ANSWER = JSON | st.fixed_dictionaries(
    {
        "ok": st.booleans(),
        "value": JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(("n", "p50_us", "p95_us"), JSON)),
        "returned": JSON,
        "error": JSON,
        "samples_after": JSON,
        "used_library": JSON,
    }
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=6), st.booleans())
def test_rubbish_for_answers_is_judged_without_a_point(rubbish, reached):
    hidden = questions.load(SEED)
    answers = {fixture.id: rubbish[index % len(rubbish)] for index, fixture in enumerate(hidden)}
    items, _ = judge.judge(hidden, answers, reached, "")
    assert [item.id for item in items] == list(STATS_ITEMS)
    assert sum(item.points for item in items) == 0


@pytest.mark.parametrize(
    ("source", "flagged"),
    [
        ("import inspect\nexec(inspect.getsource(stats.latency_summary), names)", True),
        ("copy = types.FunctionType(stats.latency_summary.__code__, dict(vars(stats)))", True),
        ("from deep_learning_cases.measuring.stats import latency_summary\nprint(latency_summary([1.0], 1))", False),
        ("exec('x = 1')", False),
    ],
)
def test_a_second_copy_of_the_librarys_function_is_flagged(source, flagged):
    """Such a copy escapes the switch, so its points stand until a person has looked."""
    assert ("copies-the-library" in {flag.id for flag in source_flags(source)}) is flagged
