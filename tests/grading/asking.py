"""Ask a student's text in this process, for tests of the judge: same answers as the sandbox gives, without its wall."""

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grading.exercises.latency_stats import judge, questions
from grading.judging.flags import Flag
from grading.judging.items import ItemResult
from grading.sandbox.behind_wall import coerce

CASES = Path(__file__).parents[1] / "submissions" / "latency_stats"
SEED = "a seed for the tests only"


def ask(source: str, calls: Sequence[Mapping[str, Any]], used: dict[str, bool] | None = None) -> dict[str, Any]:
    """Run ``source`` and answer the calls; an exception in the source leaves the function undefined."""
    used = used or {"library": False}
    namespace: dict[str, Any] = {"__name__": "__main__"}
    answers = {}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(Exception):
            exec(compile(source, "cell", "exec"), namespace)
        for call in calls:
            answers[call["id"]] = _answer(namespace.get(call["function"]), call, used)
    return answers


def _answer(function: Any, call: Mapping[str, Any], used: dict[str, bool]) -> dict[str, Any]:
    import numpy as np

    make: dict[str, Callable[[Any], Any]] = {
        "list": list,
        "tuple": tuple,
        "numpy": lambda samples: np.array(samples, float),
    }
    held = make[call["container"]](call["samples"])
    answer: dict[str, Any] = {"ok": False, "value": None, "returned": None, "error": None}
    if not callable(function):
        answer["error"] = {"type": "NotDefined", "mro": []}
    else:
        try:
            returned = function(held, call["batch_size"])
        except Exception as error:
            mro = [ancestor.__name__ for ancestor in type(error).__mro__]
            answer["error"] = {"type": type(error).__name__, "mro": mro}
        else:
            answer |= {"ok": True, "returned": coerce.type_name(returned)} | coerce.describe(returned)
    answer["samples_after"] = coerce.samples_after(held, len(call["samples"]))
    answer["used_library"] = used["library"]
    return answer


def grade(source: str, seed: str = SEED) -> tuple[dict[str, ItemResult], list[Flag]]:
    """Items by id, and flags, of one solution text."""
    hidden = questions.load(seed)
    items, flags = judge.judge(hidden, ask(source, judge.calls(hidden)), True, source)
    return {item.id: item for item in items}, flags


def points(items: dict[str, ItemResult]) -> float:
    return sum(item.points for item in items.values())
