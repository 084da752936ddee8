"""What a student must not reach: formgrader, other people's servers and files, and any answer."""

import json
import re
import subprocess
from pathlib import Path

from tests.classroom.machine import CHECKOUT, Machine
from tests.classroom.walk import Walk

__all__ = ["check_access", "needles"]

_SEARCH = r"""
import json, os, sys
from pathlib import Path
question = json.load(sys.stdin)
skipped = {"torch", "nbgrader", "node_modules", "__pycache__"}
read, found = 0, []
for root in question["roots"]:
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in skipped]
        for name in files:
            path = Path(folder, name)
            try:
                if path.is_symlink() or path.stat().st_size > 4 << 20:
                    continue
                text = path.read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            read += 1
            found += [[str(path), needle] for needle in question["needles"] if needle in text]
print(json.dumps({"read": read, "found": found}))
"""


def needles() -> list[str]:
    """Lines that stand in a solution, a list of mistakes or a hidden check, and nowhere in what students get."""
    given = "\n".join(path.read_text() for path in (CHECKOUT / "labs").rglob("*.ipynb"))
    given += "\n".join(path.read_text() for path in (CHECKOUT / "deep_learning_cases").rglob("*.py"))
    lines = ["### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS"]
    for master in sorted((CHECKOUT / "grading" / "masters").rglob("*.py")):
        for block in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", master.read_text(), re.DOTALL):
            lines += [line.strip() for line in block.splitlines()]
    lines += re.findall(r'^equals = "(.*)"$', (CHECKOUT / "grading" / "mistakes.toml").read_text(), re.MULTILINE)
    # As they stand in a notebook's JSON: a quote would be escaped there.
    return sorted(
        {line for line in lines if (len(line) >= 34 or "###" in line) and '"' not in line and line not in given}
    )


def check_access(machine: Machine, walk: Walk) -> dict[str, int]:
    """Every refusal, tried; returns what the search for answers has read."""
    ada, ben = walk.ada, walk.ben
    own = ada.page.request.get(ada.address("/formgrader/manage_assignments"))
    assert own.status == 404, f"formgrader on a student's server answers {own.status}"
    for person, path in ((ben, "/lab"), (ben, "/api/contents"), (walk.grader, "/formgrader/manage_assignments")):
        other = ada.page.request.get(person.address(path))
        assert other.status == 403, f"{person.user}{path} answers {other.status} to {ada.user}"
    assert ada.page.request.get(f"{ada.url}/hub/admin").status == 403
    course = machine.exchange / "deep-learning-cases"
    for folder in (
        machine.folder(ben.user),
        machine.folder(machine.instructor),
        course / "inbound",
        machine.run / "state",
    ):
        listed = machine.as_user(ada.user, "ls", folder)
        assert listed.returncode != 0, f"{ada.user} can list {folder}: {listed.stdout}"
    for command in (["mv", course, f"{course}-moved"], ["touch", course / "outbound" / "planted"]):
        assert machine.as_user(ada.user, *command).returncode != 0, f"{ada.user} may {command}"
    handed_in = next((course / "inbound").glob(f"{ben.user}+*"))
    assert machine.as_user(ada.user, "mv", handed_in, handed_in.with_name("gone")).returncode != 0
    return _search(machine, ada.user)


def _search(machine: Machine, user: str) -> dict[str, int]:
    wanted = needles()
    assert len(wanted) > 40, wanted
    site = machine.venv / "lib" / "python3.11" / "site-packages"
    roots = [str(machine.run), str(site), str(machine.venv / "share"), str(machine.venv / "etc")]
    question = json.dumps({"roots": roots, "needles": wanted})
    command: list[str | Path] = ["runuser", "-u", user, "--", machine.venv / "bin" / "python", "-I", "-c", _SEARCH]
    done = subprocess.run(command, input=question, capture_output=True, text=True, timeout=600, check=True, cwd="/")
    answer = json.loads(done.stdout)
    assert answer["read"] > 1000, answer
    assert not answer["found"], answer["found"][:10]
    # The search can fail: root, who may read the instructor's home, finds plenty.
    done = subprocess.run(
        [machine.venv / "bin" / "python", "-I", "-c", _SEARCH],
        input=json.dumps({"roots": [str(machine.folder(machine.instructor))], "needles": wanted}),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert len(json.loads(done.stdout)["found"]) > 40
    return {"files_read": answer["read"], "lines_looked_for": len(wanted)}
