"""Which judge outside belongs to which item: the one place where an assignment's items are registered.

Two kinds: a *function judge* asks a student's function hidden questions through the sandbox, a *folder judge* looks at
the evidence that was handed in.  A test cell whose item has neither is run as an ordinary nbgrader test.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grading.items import COMPARISON_ITEMS, EVIDENCE_ITEMS, PER_CLASS_ITEMS, STATS_ITEMS, ItemResult
from grading.policy_checks import POLICY_ITEMS

__all__ = ["FOLDER_JUDGES", "FUNCTION_JUDGES", "FolderJudge", "FunctionJudge", "judged_outside"]

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Judge:
    """``items`` and their points; ``checks`` names the module that judges them."""

    items: Mapping[str, float]
    checks: str

    def concerns(self, wanted: Mapping[str, float]) -> bool:
        """Whether any of these items is this judge's."""
        return bool(set(wanted) & set(self.items))


@dataclass(frozen=True, eq=False)
class FunctionJudge(_Judge):
    """``questions`` names a module with ``load(seed)``; ``checks`` has ``calls(questions)`` and ``judge``."""

    questions: str

    def ask(self, seed: str) -> tuple[list[Any], list[Json]]:
        """The hidden questions of this seed, and the calls that put them to the student's function."""
        asked = importlib.import_module(self.questions).load(seed)
        return asked, importlib.import_module(self.checks).calls(asked)

    def judge(self, questions: list[Any], run: Json, source: str) -> tuple[list[ItemResult], list[Any]]:
        """Items and flags for the answers of a run."""
        checks = importlib.import_module(self.checks)
        items, flags = checks.judge(questions, run["answers"], bool(run["asked"]), source)
        return list(items), list(flags)


class FolderJudge(_Judge):
    """``checks`` has ``judge_folder(folder, box)``: items, or items and flags."""

    def judge(self, folder: Any, box: Any) -> tuple[list[ItemResult], list[Any]]:
        """Items and flags for an evidence folder."""
        found = importlib.import_module(self.checks).judge_folder(folder, box)
        items, flags = found if isinstance(found, tuple) else (found, [])
        return list(items), list(flags)


FUNCTION_JUDGES = (
    FunctionJudge(STATS_ITEMS, "grading.stats_checks", "grading.fixtures"),
    FunctionJudge(PER_CLASS_ITEMS, "grading.per_class_checks", "grading.per_class_questions"),
)
FOLDER_JUDGES = (
    FolderJudge(EVIDENCE_ITEMS, "grading.evidence_checks"),
    FolderJudge(POLICY_ITEMS, "grading.policy_checks"),
    FolderJudge(COMPARISON_ITEMS, "grading.claims_checks"),
)


def judged_outside(item: str) -> bool:
    """Whether an item has a judge here, so that its test cell need not run."""
    return any(item in judge.items for judge in (*FUNCTION_JUDGES, *FOLDER_JUDGES))
