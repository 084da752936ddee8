"""Run a command as a user who is not root, with a home of their own, wherever Python and the checkout lie."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
UID = 54321

# In a mount namespace of its own: a closed folder on the way (root's home) is covered, what is needed laid over it.
_SCRIPT = """
set -e
hold=$1; uid=$2; home=$3; shift 3
mount --make-rprivate /
mount -t tmpfs hold "$hold"
number=0; closed=$1; shift
for folder in $NEEDED; do mkdir "$hold/$number"; mount --rbind "$folder" "$hold/$number"; number=$((number + 1)); done
for folder in $closed; do mount -t tmpfs -o mode=755 cover "$folder"; done
number=0
for folder in $NEEDED; do mkdir -p "$folder"; mount --rbind "$hold/$number" "$folder"; number=$((number + 1)); done
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME="$home" "$@"
"""


@contextlib.contextmanager
def ordinary_home() -> Iterator[Path]:
    """A folder for that user; pytest's own lie in one that it closes to others."""
    home = Path(tempfile.mkdtemp(prefix="ordinary-user-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def as_ordinary_user(command: Sequence[str | Path], home: Path) -> "subprocess.CompletedProcess[str]":
    """The command's outcome; ``home`` is given to the user, with all that is in it. Skips where nobody may change."""
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("setpriv and unshare (util-linux) are not installed")
    subprocess.run(["chown", "-R", f"{UID}:{UID}", "--", home], check=True)
    wanted = [Path(sys.base_prefix), Path(sys.prefix), CHECKOUT]
    closed = sorted({parent for path in wanted for parent in path.parents if not parent.stat().st_mode & 0o001})
    needed = [path for path in wanted if any(parent in path.parents for parent in closed)]
    hold = home / ".hold"
    hold.mkdir(exist_ok=True)
    script = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        _SCRIPT,
        "sh",
        str(hold),
        str(UID),
        str(home),
        " ".join(map(str, closed[:1])),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "XDG"))}
    environment |= {"NEEDED": " ".join(map(str, needed)), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(home)}
    return subprocess.run(
        [*script, *command], capture_output=True, text=True, timeout=600, cwd="/", env=environment, check=False
    )
