"""The judge of per_class_accuracy: odd but right styles earn all, known mistakes are named, nothing hidden is said."""

import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from grading.exercises.per_class_accuracy import judge, mistakes
from grading.exercises.per_class_accuracy.questions import load
from grading.judging import function_judge
from grading.judging.items import PER_CLASS_ITEMS
from grading.sandbox.behind_wall import coerce

CASES = Path(__file__).parents[2] / "submissions" / "per_class_accuracy"
CORRECT, MISTAKEN = sorted((CASES / "correct").glob("*.py")), sorted((CASES / "mistaken").glob("*.py"))
SEEDS = ["a seed for the tests only", "another seed, as long as it"]


def _ask(source: str, calls: list[dict]) -> dict:
    """Answers as the sandbox gives them, from this process."""
    space: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "cell", "exec"), space)
        return {call["id"]: _answer(space.get("per_class_accuracy"), call) for call in calls}


def _answer(function, call: dict) -> dict:
    make = {"list": list, "tuple": tuple, "numpy_int": lambda values: np.array(values, np.int64)}[call["container"]]
    held = [make(one) if isinstance(one, list) else one for one in call["arguments"]]
    answer = {"ok": False, "value": None, "items": None, "returned": None, "error": {"type": "NotDefined", "mro": []}}
    if callable(function):
        try:
            with np.errstate(all="ignore"):
                returned = function(*held)
        except Exception as error:
            mro = [ancestor.__name__ for ancestor in type(error).__mro__]
            answer["error"] = {"type": type(error).__name__, "mro": mro}
        else:
            answer |= {"ok": True, "error": None, "returned": coerce.type_name(returned)} | coerce.describe(returned)
            answer["items"] = coerce.items(returned)
    answer["samples_after"] = [int(value) for one in held[:2] for value in one]
    return json.loads(json.dumps(answer))


def _grade(source: str, seed: str = SEEDS[0]) -> dict:
    questions = load(seed)
    items, _ = judge.judge(questions, _ask(source, judge.calls(questions)), True, source)
    return {item.id: item for item in items}


def test_there_are_enough_cases():
    assert len(CORRECT) >= 10
    assert len(MISTAKEN) >= 15


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.stem)
def test_a_right_function_of_any_style_earns_everything(case, seed):
    items = _grade(case.read_text(), seed)
    assert {item.id: item.points for item in items.values()} == PER_CLASS_ITEMS, items
    assert all(item.passed and item.mistake is None for item in items.values())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", MISTAKEN, ids=lambda case: case.stem)
def test_a_mistake_is_named_and_costs_its_own_item(case, seed):
    source = case.read_text()
    mistake, points = re.search(r"# mistake: (.+)\n# points: (.+)", source).groups()
    items = _grade(source, seed)
    assert [items[item].points for item in PER_CLASS_ITEMS] == [float(part) for part in points.split("/")], items
    first = next(item for item in items.values() if not item.passed)
    assert first.mistake == mistake, first


@pytest.mark.parametrize("case", MISTAKEN + CORRECT, ids=lambda case: case.stem)
def test_no_message_holds_a_number_of_the_hidden_inputs(case):
    for item in _grade(case.read_text()).values():
        numbers = set(re.findall(r"-?\d+(?:\.\d+)?", item.message))
        assert numbers <= {"0", "1", "2", "3", "-1", "100", "1."}, item.message
        assert "\n" not in item.message


def test_the_questions_follow_from_the_seed_and_differ_between_seeds():
    one, same, other = (load(seed) for seed in (SEEDS[0], SEEDS[0], SEEDS[1]))
    assert one == same
    assert {question.labels for question in one}.isdisjoint(question.labels for question in other)
    assert [question.id for question in one] == [f"c{number:02d}" for number in range(1, len(one) + 1)]


def test_the_truth_is_what_scikit_learn_calls_recall():
    metrics = pytest.importorskip("sklearn.metrics")
    for question in load(SEEDS[1]):
        if question.bad or not all(question.images):
            continue
        recall = metrics.recall_score(question.labels, question.predictions, average=None)
        assert question.truth == pytest.approx(list(recall), rel=1e-12)


def test_calls_tell_nothing_of_what_is_expected():
    calls = judge.calls(load(SEEDS[0]))
    assert {frozenset(call) for call in calls} == {frozenset({"id", "function", "arguments", "container"})}


@pytest.mark.parametrize("answer", [None, 3, {}, {"ok": True}, {"ok": True, "items": [[1]]}, {"error": "x"}])
def test_a_forged_answer_is_no_answer_and_raises_nothing(answer):
    questions = load(SEEDS[0])
    items, _ = judge.judge(questions, {question.id: answer for question in questions})
    assert sum(item.points for item in items) == 0


def test_every_text_belongs_to_a_mistake_that_can_be_found():
    known = set(mistakes.CATALOGUE)
    code = "".join(Path(module.__file__).read_text() for module in (judge, mistakes, function_judge))
    assert {mistake for mistake in known if f'"{mistake}"' not in code} == set()


def test_a_library_function_that_counts_by_class_is_a_remark_only():
    source = CORRECT[0].read_text() + "\n# recall_score would do\n"
    questions = load(SEEDS[0])
    items, flags = judge.judge(questions, _ask(source, judge.calls(questions)), True, source)
    assert sum(item.points for item in items) == sum(PER_CLASS_ITEMS.values())
    assert [flag.id for flag in flags] == ["calls-a-library"]
