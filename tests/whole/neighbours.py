"""Grade honest students behind one attacker each, with one worker and with two; print what they got, as JSON.

A script, so that another user can run it: ``python -m tests.whole.neighbours FOLDER [ISOLATION]``.
"""

import json
import sys
from pathlib import Path

from grading.commands.autograde import autograde
from tests.grading.classroom import ASSIGNMENT, CASES, INTERPOLATED, RIGHT, automatic, hand_in, make_course

ATTACKS = CASES / "attacks"
CELLS = ["acl_on_work_root", "fills_the_disk", "startup_file_for_the_next_kernel", "update_display_flood"]
LIMITS = {"seconds_per_cell": 5, "seconds_total": 20, "seconds_per_call": 1, "seconds_all_calls": 6, "memory_mb": 512}


def main(folder: Path, isolation: str) -> None:
    course = make_course(folder)
    attacks = [*sorted((ATTACKS / "ordinary_user").glob("*.py")), *(ATTACKS / "cell" / f"{name}.py" for name in CELLS)]
    pairs = sorted(path.stem.removesuffix("_step7") for path in (ATTACKS / "leak").glob("*_step7.py"))
    hand_in(course, "s00_honest")
    hand_in(course, "s01_interpolated", answer=INTERPOLATED)
    number = 2
    for path in attacks:
        hand_in(course, f"s{number:02}_attack_{path.stem}", answer=path.read_text())
        hand_in(course, f"s{number + 1:02}_honest", answer=f"{RIGHT}\nopen('own.txt', 'w').write('x' * 5000)")
        number += 2
    for name in pairs:
        seven, eight = ((ATTACKS / "leak" / f"{name}_step{step}.py").read_text() for step in (7, 8))
        hand_in(course, f"s{number:02}_leak_{name}", answer=seven, twice=f"def twice(x): return 2 * x\n{eight}")
        number += 1
    hand_in(course, f"s{number:02}_honest")
    hand_in(course, f"s{number + 1:02}_interpolated", answer=INTERPOLATED)
    told = {}
    for jobs in (1, 2):
        summary = autograde(course, ASSIGNMENT, jobs=jobs, limits=LIMITS, force=True, isolation=isolation)
        records = list((course / "autograded").rglob(".grading.json"))
        kinds = {json.loads(path.read_text())["isolation"]["kind"] for path in records}
        leaks = [str(path) for path in (course / "autograded").rglob("*.ipynb") if _leaks(path)]
        told[jobs] = {"failed": summary.failed, "scores": automatic(course), "kinds": sorted(kinds), "leaks": leaks}
    print("TOLD" + json.dumps(told))


def _leaks(path: Path) -> bool:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    return any("LEAK" in json.dumps(cell["outputs"]) for cell in cells)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "auto")
