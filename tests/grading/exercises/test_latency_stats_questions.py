"""The hidden inputs: what they hold, and that they follow from a secret that stays secret."""

import math
import stat
from collections import Counter

import pytest

from deep_learning_cases.errors import FileError, InputError
from grading.cli import main
from grading.exercises.latency_stats import questions
from grading.judging.seed import course_seed, read_seed, write_seed

SEEDS = ["seed-number-one-for-tests", "another-seed-for-the-tests", "0" * 64]


def proper(seed):
    return [fixture for fixture in questions.load(seed) if not fixture.bad]


def faulty(seed):
    return [fixture for fixture in questions.load(seed) if fixture.bad]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_size_and_container_is_asked(seed):
    assert {len(fixture.samples) for fixture in proper(seed)} >= {1, 2, 3, 19, 20, 21, 100, 300}
    assert {fixture.container for fixture in proper(seed)} == {"list", "tuple", "numpy"}
    assert len({fixture.batch_size for fixture in proper(seed)}) > 5
    assert all(math.isfinite(sample) and sample > 0 for fixture in proper(seed) for sample in fixture.samples)


@pytest.mark.parametrize("seed", SEEDS)
def test_shapes_that_tell_mistakes_apart(seed):
    big = [fixture.samples for fixture in proper(seed) if len(fixture.samples) >= 100]
    assert any(len(set(samples)) < len(samples) / 4 for samples in big), "ties"
    assert any(list(samples) == sorted(samples, reverse=True) for samples in big), "descending"
    assert any(max(samples) > 20 * sorted(samples)[len(samples) // 2] for samples in big), "heavy tail"
    assert any(all(isinstance(sample, int) for sample in samples) for samples in big), "whole numbers"
    slow_rounds = Counter()
    for fixture in proper(seed):
        if fixture.rounds == 3 and len(fixture.samples) == 300:
            rounds = [fixture.samples[k : k + 100] for k in (0, 100, 200)]
            limit = 5 * sorted(fixture.samples)[150]
            slow = [sum(sample > limit for sample in one) for one in rounds]
            if sorted(slow)[:2] == [0, 0] and max(slow) > 15:
                slow_rounds[slow.index(max(slow))] += 1
    assert set(slow_rounds) == {0, 1, 2}, "slow samples in one round only, each of the three"


def test_bad_inputs_are_those_that_the_definition_names():
    kinds = {fixture.bad for fixture in faulty(SEEDS[0])}
    assert kinds == {"no samples", "not finite", "not positive", "batch size", "batch not whole"}
    for fixture in faulty(SEEDS[0]):
        sound = fixture.samples and all(math.isfinite(sample) and sample > 0 for sample in fixture.samples)
        whole = fixture.batch_size >= 1 and float(fixture.batch_size).is_integer()
        assert not (sound and whole), fixture
        assert type(fixture.batch_size) in (int, float)
        assert fixture.container == "list"


def test_a_seed_gives_the_same_inputs_and_another_seed_others():
    assert repr(questions.load(SEEDS[0])) == repr(questions.load(SEEDS[0]))
    # Whole numbers may meet by chance.
    first, second = (
        {sample for fixture in proper(seed) for sample in fixture.samples if isinstance(sample, float)}
        for seed in SEEDS[:2]
    )
    assert first.isdisjoint(second)


def test_ids_tell_nothing_and_the_order_follows_the_seed():
    orders = [[(len(fixture.samples), fixture.bad) for fixture in questions.load(seed)] for seed in SEEDS]
    assert orders[0] != orders[1]
    assert all(fixture.id[0] == "q" and fixture.id[1:].isdigit() for fixture in questions.load(SEEDS[0]))


def test_the_command_writes_a_secret_for_its_owner_only(tmp_path, capsys):
    path = tmp_path / "course.seed"
    assert main(["fixtures", "--seed-file", str(path)]) == 0
    seed = read_seed(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(seed) == 64
    assert seed not in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path], "no part is left behind"


def test_an_existing_seed_is_kept_unless_it_is_to_be_replaced(tmp_path, capsys):
    path = tmp_path / "course.seed"
    before = write_seed(path)
    assert main(["fixtures", "--seed-file", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--replace" in error
    assert read_seed(path) == before
    assert main(["fixtures", "--seed-file", str(path), "--replace"]) == 0
    assert read_seed(path) != before


def test_the_checkouts_own_seed_is_made_on_first_use(tmp_path, monkeypatch):
    monkeypatch.setattr("grading.judging.seed.DEFAULT_SEED_FILE", tmp_path / "fixtures.seed")
    assert course_seed() == course_seed()
    assert stat.S_IMODE((tmp_path / "fixtures.seed").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"two words that are long enough", b"\xff" * 40, b"x" * 5000])
def test_a_file_that_is_no_seed_is_refused(tmp_path, content):
    path = tmp_path / "seed"
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no seed"):
        read_seed(path)


def test_missing_and_unwritable_seed_files(tmp_path):
    with pytest.raises(FileError, match="cannot read the seed file"):
        course_seed(tmp_path / "none")
    with pytest.raises(FileError, match="cannot write the seed file"):
        write_seed(tmp_path / "no" / "folder")
