"""``python -m grading report ASSIGNMENT``: one HTML page about a class, for its instructor.

Read one submission at a time from what the runs left, so that the page costs the same memory for any class.  It names
students, mistakes and flags: not a page to hand out.
"""

import argparse
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError, InputError
from deep_learning_cases.ground.command_line import say
from deep_learning_cases.ground.files import write_bytes
from grading.class_run.machine_faults import raise_if_of_all, sentence
from grading.class_run.quiet import quiet_nbgrader
from grading.class_run.records import Result, SpoolEntry
from grading.class_run.spool import FAILED, Spool
from grading.commands import report_page as page
from grading.course.places import COURSE

__all__ = ["ClassFacts", "add_parser", "build", "collect", "run", "write"]

SHOWN = 30
"""How many names a list shows before it says how many more there are."""


def add_parser(subparsers: Any) -> None:
    """The command's arguments."""
    parser = subparsers.add_parser("report", help="write the class report of an assignment")
    parser.add_argument("assignment", help="name of the assignment, for example release")
    parser.add_argument("--to", type=Path, metavar="FILE", help="where (default: report-ASSIGNMENT.html in the course)")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="course folder (default: grading/)")


def run(args: argparse.Namespace) -> int:
    """Write the page and say where it is; status 1 if somebody's results cannot be read."""
    course = Path(args.course).resolve()
    facts = collect(course, args.assignment)
    say(str(write(course, args.assignment, facts, args.to)))
    for student in sorted(facts.unread):
        say(f"{student}: not in the report: {facts.failed[student]}", error=True)
    return 1 if facts.unread else 0


@dataclass
class ClassFacts:
    """What the page says: counts and names, no submission as a whole."""

    scores: dict[str, tuple[float, float, bool]] = field(default_factory=dict)
    """Student -> points after late penalty, penalty, whether a person still has to look."""
    max_score: float = 0.0
    items: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    mistakes: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    words: dict[tuple[str, str], str] = field(default_factory=dict)
    flags: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    stopped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, str] = field(default_factory=dict)
    isolation: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    """Of ``failed``, those whose results are there and cannot be read."""

    def include(self, one: "ClassFacts") -> None:
        """Add what was read of one submission."""
        for name in ("items", "mistakes", "flags", "notes", "left_out", "stopped"):
            for key, values in getattr(one, name).items():
                getattr(self, name)[key] += values
        for key, words in one.words.items():
            self.words.setdefault(key, words)
        self.failed |= one.failed
        self.isolation += one.isolation
        self.seconds |= one.seconds


def build(course: Path, assignment: str, path: Path | None = None) -> Path:
    """Write the page; returns its path. InputError where nothing was graded, FileError where it cannot be written."""
    course = Path(course).resolve()
    return write(course, assignment, collect(course, assignment), path)


def write(course: Path, assignment: str, facts: ClassFacts, path: Path | None = None) -> Path:
    """As :func:`build`, from what was collected."""
    path = path or course / f"report-{assignment}.html"
    write_bytes(path, render(assignment, facts).encode("utf-8"))
    return path


def collect(course: Path, assignment: str) -> ClassFacts:
    """Everything the page says, from ``.results/`` and the gradebook."""
    if not course.is_dir():
        raise FileError(f"no course folder {course}: expected one that was graded; check --course")
    spool = Spool(course, assignment)
    students = spool.students()
    if not students:
        raise InputError(
            f"nothing graded of {assignment!r} in {course}: expected results; "
            f"run `python -m grading autograde {assignment}`"
        )
    facts = ClassFacts()
    for student in students:
        one = ClassFacts()
        try:
            _add_entry(one, student, spool.get(student))
        except Exception as error:
            raise_if_of_all(error)
            facts.unread.add(student)
            one = ClassFacts(failed={student: sentence(error, "read from its results")})
        facts.include(one)
    _add_scores(facts, course, assignment)
    return facts


def _add_entry(facts: ClassFacts, student: str, entry: SpoolEntry | None) -> None:
    if entry is None:
        return
    if entry.get("state") == FAILED:
        facts.failed[student] = str(entry.get("error"))
    elif isinstance(entry.get("result"), dict):
        _add(facts, student, entry["result"])


def _add(facts: ClassFacts, student: str, result: Result) -> None:
    facts.seconds[student] = float(result.get("seconds", 0.0))
    facts.isolation[page.isolation(result.get("isolation", {}))] += 1
    for flag in result.get("flags", []):
        facts.flags[str(flag.get("id")), str(flag.get("reason"))].append(student)
    for left in result.get("left_out", []):
        facts.left_out[student].append(f"{left['name']}: {left['why']}")
    for name in result.get("not_copied", []):
        facts.left_out[student].append(f"{name}: a browser would run it, so it is only in submitted/")
    for name, notebook in result["notebooks"].items():
        if notebook["status"] != "graded":
            facts.notes[name, notebook["status"].replace("_", " ")].append(student)
        if stopped := notebook.get("stopped"):
            facts.stopped[str(stopped.get("message"))].append(student)
        for note in notebook.get("notes", []):
            facts.notes[name, note["message"]].append(student)
        for item in notebook.get("items", []):
            facts.items[item["id"]].append((item["points"], item["max_points"]))
            if isinstance(mistake := item.get("mistake"), str):
                key = (item["id"], mistake)
                facts.mistakes[key].append(student)
                facts.words.setdefault(key, item["message"])


def _add_scores(facts: ClassFacts, course: Path, assignment: str) -> None:
    quiet_nbgrader()
    from grading.class_run.gradebook import shared
    from grading.commands.export import scores_of
    from grading.course_config import course_directory

    with shared(course_directory(course)[0].db_url) as gradebook:
        found = [a for a in gradebook.assignments if a.name == assignment]
        if not found:
            raise InputError(
                f"no assignment {assignment!r} in the gradebook: expected it; run `python -m grading build`"
            )
        facts.max_score = float(found[0].max_score)
        for student, row in scores_of(gradebook, found[0]).items():
            facts.scores[student] = (row["final"], row["penalty"], bool(row["needs_manual_grade"]))


def render(assignment: str, facts: ClassFacts) -> str:
    """The page as HTML: no script, nothing loaded from elsewhere."""
    points = [score for score, _, _ in facts.scores.values()]
    waiting = sorted(student for student, (_, _, waits) in facts.scores.items() if waits)
    parts = [
        page.heading(f"Class report: {assignment}"),
        page.figures(
            {
                "submissions": len(facts.scores),
                "mean": f"{statistics.fmean(points):.1f} of {facts.max_score:g}" if points else "-",
                "median": f"{statistics.median(points):.1f}" if points else "-",
                "wait for a person": len(waiting),
                "not graded": len(facts.failed),
            }
        ),
    ]
    parts.append(page.table("Not graded", ["student", "reason"], sorted(facts.failed.items())))
    parts.append(page.histogram("Scores", points, facts.max_score))
    parts.append(page.items("Items", facts.items))
    return page.document(f"Class report: {assignment}", [*parts, _mistakes(facts), *_remarks(facts), *_runs(facts)])


def _remarks(facts: ClassFacts) -> Iterator[str]:
    flagged = [(key, reason, page.names(who, SHOWN)) for (key, reason), who in _by_frequency(facts.flags)]
    header = ["flag", "reason", "students"]
    yield page.table("Flags: worth a look, worth no points", header, flagged, "Nothing was flagged.")
    stopped = [(why, len(who), page.names(who, SHOWN)) for why, who in _by_frequency(facts.stopped)]
    yield page.table("Stopped runs", ["why", "times", "students"], stopped, "Every run came to its end.")
    notes = [(where, what, len(who), page.names(who, SHOWN)) for (where, what), who in _by_frequency(facts.notes)]
    header = ["notebook", "what", "times", "students"]
    yield page.table("Changed notebooks", header, notes[:200], "Nobody changed any.")
    left = [(student, "; ".join(files[:10])) for student, files in sorted(facts.left_out.items())[:200]]
    yield page.table("Files left out", ["student", "files"], left, "None.")


def _runs(facts: ClassFacts) -> Iterator[str]:
    yield page.table("Isolation in force", ["wall", "submissions"], facts.isolation.most_common(), "None.")
    yield page.times("Time per submission", facts.seconds)
    rows = [
        (s, f"{score:g}", f"{penalty:g}" if penalty else "", "yes" if waits else "")
        for s, (score, penalty, waits) in sorted(facts.scores.items())
    ]
    yield page.table("Students", ["student", "points", "late penalty", "waits for a person"], rows, "None.")


def _mistakes(facts: ClassFacts) -> str:
    rows = [
        (item, mistake, len(who), facts.words[item, mistake], page.names(who, SHOWN))
        for (item, mistake), who in _by_frequency(facts.mistakes)
    ]
    header = ["item", "mistake", "times", "what these students read", "students"]
    return page.table("Mistakes, most frequent first", header, rows, "No known mistake was made.")


def _by_frequency(groups: dict[Any, list[str]]) -> list[tuple[Any, list[str]]]:
    return sorted(groups.items(), key=lambda pair: (-len(pair[1]), str(pair[0])))
