"""The catalogue: each mistake is wrong somewhere, unlike every other, in words that hide nothing and blame nobody."""

import math
import re
from pathlib import Path

import pytest

from grading.exercises.latency_stats import questions
from grading.exercises.latency_stats.arithmetic import Case, true_answer
from grading.exercises.latency_stats.diagnosis import diagnose
from grading.exercises.latency_stats.mistakes import CATALOGUE, RAISED, sentences, variants
from grading.exercises.latency_stats.rules import FINISHES, RULES
from grading.exercises.latency_stats.views import VIEWS
from grading.judging import function_judge
from grading.judging.function_judge import RELATIVE_TOLERANCE

SEEDS = ["seed-number-one-for-tests", "another-seed-for-the-tests", "third-seed-for-the-tests", "f" * 64]
QUANTITIES = list(RULES)


def cases(seed):
    made = [Case(f.samples, int(f.batch_size)) for f in questions.load(seed) if not f.bad]
    return [Case(case.samples, case.batch_size, true_answer(case)) for case in made]


def apart(first, second):
    """Whether two answers differ by ten times what is forgiven."""
    if first == RAISED or second == RAISED:
        return first != second
    return abs(first - second) > 10 * RELATIVE_TOLERANCE * max(abs(first), abs(second))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_no_two_mistakes_give_the_same_answers(seed, quantity):
    asked = cases(seed)
    truth = [case.own[quantity] for case in asked]
    table = [(variant.ids[0], [variant.answer(case) for case in asked]) for variant in variants(quantity)]
    # A rate rounded to a thousandth of an image is right.
    table = [(mistake, answers) for mistake, answers in table if any(map(apart, answers, truth))]
    same = {
        frozenset((first[0], second[0]))
        for index, first in enumerate(table)
        for second in table[:index]
        if first[0] != second[0] and not any(map(apart, first[1], second[1]))
    }
    assert same == set()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_mistake_is_wrong_somewhere(seed, quantity):
    asked = cases(seed)
    truth = [case.own[quantity] for case in asked]
    wrong = {variant.ids[0] for variant in variants(quantity) if any(map(apart, map(variant.answer, asked), truth))}
    assert wrong == {variant.ids[0] for variant in variants(quantity)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mistake_in_p50_p95_or_throughput_shows_on_more_than_one_input(seed):
    # One wrong input out of many would be a matter of luck: a clipped index, a special case for few samples.
    for quantity in QUANTITIES[1:]:
        asked = cases(seed)
        for mistake in {variant.ids[0] for variant in variants(quantity)}:
            most = max(
                sum(apart(variant.answer(case), case.own[quantity]) for case in asked)
                for variant in variants(quantity)
                if variant.ids[0] == mistake
            )
            assert most >= 2, (quantity, mistake)


def test_the_right_answer_by_hand():
    answer = true_answer(Case((40.0, 10.0, 30.0, 20.0), 32))
    assert answer == {"n": 4, "p50_us": 25.0, "p95_us": 40.0, "images_per_second": 1_280_000.0}
    twenty = true_answer(Case(tuple(range(1, 21)), 1))
    assert (twenty["p50_us"], twenty["p95_us"]) == (10.5, 19)
    assert twenty["images_per_second"] == pytest.approx(20e6 / 210)


def test_every_mistake_has_words_and_every_word_a_mistake():
    in_rules = {mistake for rules in RULES.values() for mistake, _ in rules}
    in_rules |= {mistake for finishes in FINISHES.values() for mistake, _ in finishes}
    in_rules |= {mistake for mistake, _ in VIEWS}
    in_rules.discard(None)
    assert in_rules <= set(CATALOGUE)
    beside = Path(questions.__file__).parent
    files = (beside / "readings.py", beside / "judge.py", Path(function_judge.__file__))
    source = "".join(path.read_text() for path in files)
    assert all(f'"{mistake}"' in source for mistake in set(CATALOGUE) - in_rules)


@pytest.mark.parametrize("mistake", sorted(CATALOGUE))
def test_two_sentences_without_number_or_blame(mistake):
    entry = CATALOGUE[mistake]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", mistake)
    assert entry.equals.endswith(".")
    assert entry.ask.endswith("?")
    text = sentences(mistake, "p95_us")
    assert "{" not in text
    blame = re.search(r"\b(wrong|fail\w*|careless|simply|just|obviously|should have)\b", text, re.IGNORECASE)
    assert blame is None or (mistake, blame[0]) == ("wrong-error-type", "wrong")
    assert set(re.findall(r"\d[\d.,]*\d|\d", re.sub(r"p\d\d|_us", "", text))) <= {"0.95", "1"}


def test_the_mistake_that_explains_everything_comes_first():
    asked = cases(SEEDS[0])
    upper = [sorted(case.samples)[len(case.samples) // 2] for case in asked]
    assert diagnose("p50_us", asked, upper)[0].ids == ("upper-median",)
    right = [case.own["p50_us"] for case in asked]
    assert diagnose("p50_us", asked, right) == []
    odd = [math.sqrt(case.samples[0]) + 7 for case in asked]
    assert diagnose("p50_us", asked, odd) == []


def test_an_index_past_the_end_is_part_of_the_diagnosis():
    asked = cases(SEEDS[0])
    answers = []
    for case in asked:
        ordered, rank = sorted(case.samples), math.ceil(0.95 * len(case.samples))
        answers.append(ordered[rank] if rank < len(ordered) else RAISED)
    found = diagnose("p95_us", asked, answers)[0]
    assert found.ids == ("rank-used-as-index",)
    assert found.raises == frozenset(index for index, answer in enumerate(answers) if answer == RAISED)


def test_two_mistakes_at_once_are_both_named():
    asked = cases(SEEDS[0])
    calls_per_millisecond = [len(case.samples) * 1000 / math.fsum(case.samples) for case in asked]
    found = diagnose("images_per_second", asked, calls_per_millisecond)[0]
    assert set(found.ids) == {"calls-named-images", "wrong-unit"}


def test_most_wrong_answers_are_enough_when_the_rest_is_odd():
    asked = cases(SEEDS[0])
    answers = [sum(case.samples) / len(case.samples) for case in asked]
    answers[0] = answers[0] + 12.5
    found = diagnose("p50_us", asked, answers)[0]
    assert (found.ids, found.everywhere) == (("mean-for-median",), False)


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_ways_are_tried_in_their_order_and_none_is_made_in_vain(quantity, together, monkeypatch):
    from grading.exercises.latency_stats import mistakes

    made = []
    real = mistakes.Variant
    monkeypatch.setattr(mistakes, "Variant", lambda *parts: made.append(real(*parts)) or made[-1])
    found = mistakes.variants.__wrapped__(quantity, together)
    assert len(made) == len(found), "a search makes thousands: one that is thrown away costs every worker its time"
    views = [view for view in VIEWS if quantity != "n" or view[0] in (None, "drops-ties")]
    wanted = [
        ((view_id is not None, finish_id is not None), ids, view, rule, finish)
        for rule_id, rule in RULES[quantity]
        for view_id, view in views
        for finish_id, finish in FINISHES[quantity]
        if len(set(ids := tuple(i for i in (view_id, rule_id, finish_id) if i is not None))) == len(ids) == together
    ]
    wanted.sort(key=lambda one: one[0])
    assert list(found) == [tuple(one[1:]) for one in wanted]


def test_the_right_answer_is_computed_once_for_a_whole_class(monkeypatch):
    from deep_learning_cases.measuring import stats

    asked, real = [], stats.latency_summary
    monkeypatch.setattr(stats, "latency_summary", lambda *given: asked.append(given) or real(*given))
    case = Case((1.0, 2.5, 99.125), 7)
    true_answer(case)["n"] = 0
    assert true_answer(case)["n"] == 3, "what a judge does to its copy stays there"
    assert len(asked) == 1
