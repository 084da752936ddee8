"""``dlcases batching`` as a shell sees it: the keys, the table, the figure, one line for nonsense."""

import argparse
import json

import pytest

from deep_learning_cases.batching import Bursts, Exponential, Linear, Mix, Poisson, Regular
from deep_learning_cases.commands import batching
from deep_learning_cases.errors import InputError

KEYS = {
    "mean_wait_s", "wait_p50_s", "wait_p95_s", "wait_p99_s", "mean_time_in_system_s", "time_in_system_p50_s",
    "time_in_system_p95_s", "time_in_system_p99_s", "utilisation", "mean_batch", "standard_error_s",
}  # fmt: skip


def run(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--json", action="store_true")
    batching.add_arguments(parser)
    return batching.command(parser.parse_args([str(word) for word in words]))


SIMULATE = (
    "--simulate",
    "--rate",
    0.8,
    "--service",
    "const:1",
    "--max-batch",
    1,
    "--max-wait",
    0,
    "--requests",
    200_000,
)


def test_simulate_gives_exactly_the_promised_keys(capsys):
    assert run(*SIMULATE, "--seed", 3, "--json") == 0
    output = capsys.readouterr()
    result = json.loads(output.out)
    assert set(result) == KEYS
    assert output.err == ""
    assert abs(result["mean_wait_s"] - 2) < 3 * result["standard_error_s"]
    assert result["mean_time_in_system_s"] == pytest.approx(result["mean_wait_s"] + 1)
    run(*SIMULATE, "--seed", 3, "--json")
    assert json.loads(capsys.readouterr().out) == result


def test_simulate_prints_a_table_for_a_person(capsys):
    assert run(*SIMULATE) == 0
    text = capsys.readouterr().out
    assert "batch 1, greedy; load 0.8" in text
    assert "180000 requests counted after 20000 of warm-up" in text
    assert "standard error of the mean wait" in text


def test_a_bound_adds_what_was_refused(capsys):
    run(
        "--simulate",
        "--rate",
        2,
        "--service",
        "exp:1",
        "--max-batch",
        1,
        "--queue-bound",
        3,
        "--requests",
        20_000,
        "--json",
    )
    result = json.loads(capsys.readouterr().out)
    assert set(result) == KEYS | {"offered", "refused"}
    assert result["offered"] == 20_000
    assert result["refused"] > 9000


@pytest.mark.parametrize(("rate", "load"), [(1.0, "1,"), (1.5, "1.5,")])
def test_an_unstable_queue_says_so(capsys, rate, load):
    assert run("--simulate", "--rate", rate, "--service", "exp:1", "--max-batch", 1, "--requests", 5000, "--json") == 0
    output = capsys.readouterr()
    assert f"unstable: the load is {load} expected below 1" in output.err
    assert set(json.loads(output.out)) == KEYS


def test_a_short_run_says_that_its_error_is_a_guess(capsys):
    run("--simulate", "--rate", 0.95, "--service", "exp:1", "--max-batch", 1, "--requests", 3000, "--json")
    assert "raise --requests" in capsys.readouterr().err
    run("--simulate", "--rate", 0.5, "--service", "exp:1", "--max-batch", 1, "--requests", 2, "--json")
    output = capsys.readouterr()
    assert "too few requests" in output.err
    assert json.loads(output.out)["standard_error_s"] is None


@pytest.fixture
def measured(tmp_path):
    path = tmp_path / "latency.json"
    rows = {str(batch): {"samples_ms": [2 + 0.25 * batch + 0.01 * k for k in range(5)]} for batch in (1, 8, 32)}
    path.write_text(json.dumps({"results": rows}))
    return path


CHOOSE = ("--rate", 400, "--slo-p95-ms", 20, "--seeds", 2, "--requests", 2000)


@pytest.mark.parametrize("name", ["knee.png", "knee.svg", "knee.pdf"])
def test_choosing_prints_the_table_and_writes_the_figure(capsys, tmp_path, measured, name):
    figure = tmp_path / name
    assert run(*CHOOSE, "--from", measured, "--figure", figure, "--max-batch", "1,8", "--max-wait", "0,0.005") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("400 requests/s; p95 of the time in the system at most 20 ms")
    assert sum(line.startswith("batch ") for line in lines) == 4
    assert lines[-3].startswith("chosen: batch 8, wait 5 ms: p95 ")
    assert lines[-2] == f"figure: {figure}"
    assert figure.stat().st_size > 5000


def test_choosing_as_json(capsys, tmp_path, measured):
    assert run(*CHOOSE, "--from", measured, "--figure", tmp_path / "knee.png", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["chosen"]["verdict"] == "meets"
    assert len(result["candidates"]) == 16
    assert result["alt_text"].startswith("Line chart")


def test_none_meets_is_an_answer(capsys, tmp_path, measured):
    path = tmp_path / "knee.png"
    run("--rate", 1e6, "--slo-p95-ms", 20, "--from", measured, "--figure", path, "--seeds", 2, "--requests", 2000)
    out = capsys.readouterr().out
    assert "grows for ever" in out
    assert "none: every queue grows for ever" in out


@pytest.mark.slow
def test_a_file_of_several_models_needs_a_name(tmp_path, capsys):
    path = tmp_path / "benchmark.json"
    runs = [{"model": name, "samples_us": {"1": [900.0, 1000.0], "4": [1500.0]}} for name in ("fp32", "int8")]
    path.write_text(json.dumps({"runs": runs}))
    with pytest.raises(InputError, match=r"no --model, and .* holds fp32, int8: expected one of them"):
        run(*CHOOSE, "--from", path)
    with pytest.raises(InputError, match="--model int4"):
        run(*CHOOSE, "--from", path, "--model", "int4")
    assert run(*CHOOSE, "--from", path, "--model", "int8", "--figure", tmp_path / "knee.png") == 0
    assert "chosen: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "service"),
    [
        ("exp:0.5", Exponential(0.5)),
        ("const:2e-3", Linear(0.002, 0.0)),
        ("linear:0.0018,0.0002", Linear(0.0018, 0.0002)),
        ("mix:0.005@0.9,0.025@0.1", Mix((0.005, 0.025), (0.9, 0.1))),
    ],
)
def test_service_times_are_read(text, service):
    assert batching.parse_service(text) == service


def test_arrivals_are_read():
    assert batching.parse_arrivals("poisson")(2.0) == Poisson(2.0)
    assert batching.parse_arrivals("constant")(2.0) == Regular(2.0)
    assert batching.parse_arrivals("burst:8")(2.0) == Bursts(2.0, 8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--simulate", "--rate", 1, "--max-batch", 1), "--simulate without --service"),
        (("--simulate", "--rate", 1, "--service", "const:1"), "--simulate without --max-batch"),
        ((*SIMULATE, "--max-batch", "1,2"), "takes one policy"),
        ((*SIMULATE, "--max-batch", "x"), "--max-batch: expected comma-separated numbers, got 'x'"),
        ((*SIMULATE, "--max-batch", "0"), "largest batch is 0"),
        ((*SIMULATE, "--max-wait", "-1"), "longest wait .* is -1"),
        ((*SIMULATE, "--max-wait", "nan"), "longest wait .* is nan"),
        ((*SIMULATE, "--service", "uniform:1"), "--service is 'uniform:1': expected const:S"),
        ((*SIMULATE, "--service", "const:1,2"), "expected 1 number, got '1,2'"),
        ((*SIMULATE, "--service", "linear:1"), "expected 2 numbers, got '1'"),
        ((*SIMULATE, "--service", "mix:1@0.5,2@0.6"), r"add up to 1\.1"),
        ((*SIMULATE, "--service", "mix:1,2"), "expected 2 numbers"),
        ((*SIMULATE, "--service", "const:-1"), "a time of --service const:-1 is -1"),
        ((*SIMULATE, "--arrivals", "burst"), "expected 1 number"),
        ((*SIMULATE, "--arrivals", "weekly"), "--arrivals is 'weekly'"),
        ((*SIMULATE, "--rate", "nan"), "rate .* is nan"),
        ((*SIMULATE, "--rate", "-1"), "rate .* is -1"),
        ((*SIMULATE, "--requests", "0"), "requests is 0"),
        ((*SIMULATE, "--seed", "-1"), "seed is -1"),
        ((*SIMULATE, "--max-batch", "8", "--queue-bound", "2"), "queue bound is 2"),
        (
            (*SIMULATE, "--max-batch", "1000000000"),
            "largest batch is 1000000000: expected a whole number from 1 to 100000",
        ),
        ((*SIMULATE, "--max-batch", "9" * 400), r"largest batch is 9+\.\.\.: expected a whole number"),
        ((*SIMULATE, "--max-batch", "9" * 5000), "--max-batch: expected comma-separated numbers"),
        (
            (*SIMULATE, "--max-wait", "1e300"),
            r"longest wait \(seconds\) is 1e\+300: expected a finite number of at least 0, at most 1e\+06",
        ),
        ((*SIMULATE, "--max-wait", "inf"), "longest wait .* is inf"),
        ((*SIMULATE, "--service", "const:1e308"), r"a time of --service const:1e308 is 1e\+308"),
        ((*SIMULATE, "--service", "exp:1e308"), "a time of --service exp"),
        ((*SIMULATE, "--service", "linear:1e308,1e308"), "a time of --service linear"),
        ((*SIMULATE, "--service", "mix:1e308@1"), "a time of --service mix"),
        ((*SIMULATE, "--arrivals", "burst:1000000000000"), "burst size is 1000000000000"),
        ((*SIMULATE, "--rate", "1e308"), r"rate .* is 1e\+308: expected a finite number above 0, at most"),
        ((*SIMULATE, "--rate", "1e-308"), "rate .* is 1e-308: expected at least"),
        (
            (*SIMULATE, "--requests", 10**13),
            "requests is 10000000000000: expected a whole number from 1 to 10000000000",
        ),
        ((*SIMULATE, "--queue-bound", 10**20), "queue bound is 1"),
        (("--rate", 1, "--seeds", 10**9), "seeds is 1000000000"),
        (("--rate", 1, "--slo-p95-ms", "1e300"), "--slo-p95-ms is 1e"),
        (("--rate", -1), "rate .* is -1"),
        (("--rate", 1, "--arrivals", "weekly"), "--arrivals is 'weekly'"),
        (("--rate", 1, "--max-batch", "0"), "largest batch is 0"),
        (("--rate", 1, "--slo-p95-ms", "-5"), "--slo-p95-ms is -5"),
        (("--rate", 1, "--simulate", "--max-batch", "0"), "largest batch is 0"),
        (("--rate", 1, "--simulate", "--service", "weekly"), "--service is 'weekly'"),
        (("--rate", 1), "needs --from FILE and --slo-p95-ms MS"),
        (("--rate", 1, "--from", "x.json", "--slo-p95-ms", 1, "--figure", "x.jpeg"), r"ends in \.png, \.svg or \.pdf"),
    ],
)
def test_nonsense_is_one_clear_line(words, message):
    with pytest.raises(InputError, match=message) as caught:
        run(*words)
    assert "\n" not in str(caught.value)
