"""``python -m tests.classroom``: a whole course in a real hub and a real browser; ``--short`` for one student's way."""

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from tests.classroom.machine import (
    CHECKOUT,
    HOME,
    Machine,
    clear,
    left_behind,
    prepare_environment,
    reserved,
    unfit,
    unprepared,
)

KEPT = CHECKOUT / "work" / "classroom"


class Steps:
    """Runs named steps, prints what each took, and remembers it all for ``report.json``."""

    def __init__(self) -> None:
        self.done: list[dict[str, Any]] = []

    def __call__(self, name: str, act: Callable[[], Any]) -> Any:
        began = time.monotonic()
        print(f"{name} ...", end=" ", flush=True)
        try:
            value = act()
        except BaseException:
            print("FAILED", flush=True)
            self.done.append({"step": name, "passed": False, "seconds": round(time.monotonic() - began, 1)})
            raise
        seconds = round(time.monotonic() - began, 1)
        self.done.append({"step": name, "passed": True, "seconds": seconds} | ({"value": value} if value else {}))
        print(f"{seconds} s{f': {value}' if value else ''}", flush=True)
        return value

    def attempt(self, name: str, act: Callable[[], Any]) -> None:
        """A step that nothing later needs: its failure is remembered, and the walk goes on."""
        try:
            self(name, act)
        except Exception:
            traceback.print_exc()

    def failed(self) -> list[str]:
        """The names of the steps that did not pass."""
        return [one["step"] for one in self.done if not one["passed"]]


def whole(step: Steps, students: int) -> None:
    """Everything, with this many students starting at once."""
    from tests.classroom import access, faults, walk
    from tests.classroom.browser import chromium
    from tests.classroom.hub import Hub

    crowd = [f"s{number:02d}" for number in range(1, students - 1)]
    with Machine(["ada", "ben", *crowd]) as machine:
        step("a hub without its proxy says so", lambda: faults.no_proxy(machine))
        step("a hub without an exchange says so", lambda: faults.exchange_missing(machine))
        with Hub(machine) as hub, chromium() as browser:
            course = walk.Walk(machine, hub, browser, KEPT)
            ada, ben = machine.students[:2]
            try:
                step("the course is built", course.build_course)
                step("released with formgrader's button", course.release_assignment)
                step("ada fetches and runs steps 1 to 6", lambda: course.student_prepares(course.ada))
                step("ada types, measures, validates, decides", course.ada_answers)
                step("ada downloads her package", course.ada_takes_it_with_her)
                step("ben fetches and runs steps 1 to 6", lambda: course.student_prepares(course.ben))
                step("ben makes a known mistake", course.ben_interpolates)
                step("both hand in", course.hand_in)
                step.attempt("no student reaches what is not theirs", lambda: access.check_access(machine, course))
                step("collected, autograded in the sandbox", course.grade)
                step("feedback generated and released", course.give_feedback)
                step("the feedback names the mistake and no number", course.read_feedback)
                step.attempt("two tabs on one notebook", lambda: faults.two_tabs(course.ada, "14-two-tabs"))
                step.attempt(
                    "a server killed in mid-bench", lambda: faults.server_killed(machine, hub, course.ada.user)
                )
                step.attempt(
                    "an exchange that is read-only", lambda: faults.exchange_read_only(machine, hub, course.ben.user)
                )
                step.attempt("an exchange that goes away", lambda: faults.exchange_gone(machine, hub, course.ben.user))
                step.attempt("a home that is full", lambda: faults.home_full(machine, hub, ada))
                (KEPT / "console.txt").write_text("\n".join(course.complaints()) + "\n")
            except Exception:
                course.photograph_all("failed")
                raise
            finally:
                (KEPT / "hub.log").write_text(hub.log.read_text(errors="replace"))
            for user in (ada, ben, machine.instructor):
                hub.stop_server(user)
            step(f"{students} students start at once", lambda: walk.all_at_once(hub, machine.students))


def short(step: Steps) -> None:
    """One student and a known mistake, from the first login to the feedback that names it."""
    from tests.classroom import walk
    from tests.classroom.browser import chromium
    from tests.classroom.hub import Hub

    with Machine(["ben"]) as machine, Hub(machine) as hub, chromium() as browser:
        course = walk.Walk(machine, hub, browser, KEPT.with_name("classroom-short"))
        try:
            step("the course is built", course.build_course)
            step("released with formgrader's button", course.release_assignment)
            step("ben fetches and runs steps 1 to 6", lambda: course.student_prepares(course.ben))
            step("ben makes a known mistake", course.ben_interpolates)
            step("he hands in", course.hand_in)
            status = hub.server("GET", course.ben.user, "/formgrader/manage_assignments")[0]
            assert status == 404, f"formgrader answers {status} on a student's server"
            step("collected, autograded in the sandbox", course.grade)
            step("feedback generated and released", course.give_feedback)
            step("the feedback names the mistake and no number", course.read_feedback)
        except Exception:
            course.photograph_all("failed")
            raise


def main() -> int:
    """0 if everything held; 1 with the failed step; 2 where no classroom can be held."""
    parser = argparse.ArgumentParser(prog="python -m tests.classroom", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one student alone, and none of the faults")
    parser.add_argument("--students", type=int, default=10, metavar="N", help="how many start at once (default 10)")
    parser.add_argument("--prepare", action="store_true", help="make or renew the hub's environment first")
    parser.add_argument("--prepare-only", action="store_true", help="make or renew it, if a classroom can be held here")
    parser.add_argument("--clear", action="store_true", help="only remove what a killed run has left behind")
    args = parser.parse_args()
    # Told to end, it clears up all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return _act(args)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C: everything that it made is removed again", file=sys.stderr)
        return 130


def _act(args: argparse.Namespace) -> int:
    if args.clear:
        with reserved():
            clear(HOME)
        return 0
    if (reason := unfit()) is not None:
        print(f"no classroom here: {reason}", file=sys.stderr)
        return 2
    with reserved():
        if args.prepare or args.prepare_only:
            prepare_environment()
        if args.prepare_only:
            return 0
        if (reason := unprepared()) is not None:
            print(f"no classroom here: {reason}", file=sys.stderr)
            return 2
        return _hold(args)


def _hold(args: argparse.Namespace) -> int:
    kept = KEPT.with_name("classroom-short") if args.short else KEPT
    kept.mkdir(parents=True, exist_ok=True)
    for old in kept.iterdir():
        old.unlink()
    step, began, failed = Steps(), time.monotonic(), False
    try:
        short(step) if args.short else whole(step, args.students)
    except Exception:
        failed = True
        traceback.print_exc()
    remains = left_behind()
    facts = {"steps": step.done, "seconds": round(time.monotonic() - began, 1), "left_behind": remains}
    (kept / "report.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{len(step.done)} steps in {facts['seconds']} s; left behind: {remains or 'nothing'}; kept: {kept}")
    return 1 if failed or step.failed() or remains else 0


if __name__ == "__main__":
    sys.exit(main())
