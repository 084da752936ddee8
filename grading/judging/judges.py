"""Which judge outside belongs to which item.

Two kinds: a *function judge* asks a student's function hidden questions through the sandbox and is found by its folder
in ``grading/exercises`` (``items.EXERCISE_ITEMS``), a *folder judge* looks at the evidence that was handed in.  A test
cell whose item has neither is run as an ordinary nbgrader test.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grading.judging.evidence import LATENCY, QUANTIZATION, RELEASE
from grading.judging.flags import Flag
from grading.judging.function_judge import CallRecord
from grading.judging.items import EXERCISE_ITEMS, ItemResult, Judge

__all__ = ["FOLDER_JUDGES", "FUNCTION_JUDGES", "FunctionJudge", "judged_outside"]


@dataclass(frozen=True, eq=False)
class FunctionJudge(Judge):
    """``exercise`` is a folder of ``grading/exercises``, whose modules are loaded when they are first needed.

    Its ``questions`` has ``load(seed)``; its ``judge`` has ``calls(questions)`` and ``judge``.
    """

    exercise: str

    def ask(self, seed: str) -> tuple[list[Any], list[CallRecord]]:
        """The hidden questions of this seed, and the calls that put them to the student's function."""
        asked = self._module("questions").load(seed)
        return asked, self._module("judge").calls(asked)

    def judge(self, questions: list[Any], run: Mapping[str, Any], source: str) -> tuple[list[ItemResult], list[Flag]]:
        """Items and flags for the answers of a run."""
        items, flags = self._module("judge").judge(questions, run["answers"], bool(run["asked"]), source)
        return list(items), list(flags)

    def _module(self, name: str) -> Any:
        return importlib.import_module(f"grading.exercises.{self.exercise}.{name}")


FUNCTION_JUDGES = tuple(FunctionJudge(items, exercise) for exercise, items in EXERCISE_ITEMS.items())
FOLDER_JUDGES = (RELEASE, LATENCY, QUANTIZATION)


def judged_outside(item: str) -> bool:
    """Whether an item has a judge here, so that its test cell need not run."""
    return any(item in judge.items for judge in (*FUNCTION_JUDGES, *FOLDER_JUDGES))
