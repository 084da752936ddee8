"""The machine of a classroom: what it needs, its UNIX users and folders, and how all of it goes away again."""

import contextlib
import fcntl
import grp
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from deep_learning_cases.ground.files import write_json

__all__ = ["CHECKOUT", "Machine", "clear", "left_behind", "prepare_environment", "reserved", "unfit", "unprepared"]

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("DLCASES_CLASSROOM", "/opt/deep-learning-cases-classroom"))
"""Outside any private home: a student's server must be able to execute the environment."""

CHROMIUM = Path("/usr/bin/chromium")
SYSTEM_PYTHON = Path("/usr/bin/python3")
STUDENTS, INSTRUCTORS = "dlct-students", "dlct-instructors"
PREFIX = "dlct-"
PROXY_VERSION = "5"


def unfit() -> str | None:
    """Why no classroom can be held on this machine, in one line; None if one can."""
    if os.geteuid() != 0:
        return "it makes UNIX users: expected to run as root"
    for command in ("useradd", "runuser", "bwrap", "npm"):
        if shutil.which(command) is None:
            return f"no command {command!r}: expected a Debian machine; make classroom installs what is missing"
    if not CHROMIUM.exists():
        return f"no {CHROMIUM}: expected Debian's chromium; apt-get install chromium"
    asked = [str(SYSTEM_PYTHON), "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"]
    if not SYSTEM_PYTHON.exists() or subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        return f"{SYSTEM_PYTHON} is no Python 3.11 with venv, which every user can run; apt-get install python3-venv"
    with contextlib.suppress(ImportError):
        import playwright  # noqa: F401

        return None
    return "no playwright: expected the classroom extra; pip install -e '.[classroom]'"


def unprepared(home: Path = HOME) -> str | None:
    """Why the hub cannot start yet, in one line; None if it can."""
    if not (home / "proxy" / "node_modules" / ".bin" / "configurable-http-proxy").exists():
        return f"no hub environment at {home}: make classroom builds it (a few minutes, once)"
    return None


@contextlib.contextmanager
def reserved(home: Path = HOME) -> Iterator[None]:
    """Nobody else prepares, holds or clears a classroom here meanwhile; a killed holder reserves nothing any more."""
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"another classroom is being held or prepared at {home}: wait for its end") from None
        yield


def prepare_environment(home: Path = HOME) -> None:
    """Make the hub's environment (once) and put this checkout's library into it (every time)."""
    python = home / "venv" / "bin" / "python"
    wanted = (CHECKOUT / "pyproject.toml").read_text() + (CHECKOUT / "constraints.txt").read_text()
    ready = home / "venv" / ".ready"
    if not ready.exists() or ready.read_text() != wanted:
        _run(SYSTEM_PYTHON, "-m", "venv", home / "venv")
        _run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
        constraints = ["--constraint", CHECKOUT / "constraints.txt"]
        _run(python, "-m", "pip", "install", "--quiet", *constraints, f"{CHECKOUT}[torch,lab,service,grading,hub]")
        ready.write_text(wanted)
    _run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", CHECKOUT)
    if not (home / "proxy" / "node_modules").exists():
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", home / "proxy"]
        _run(*npm, f"configurable-http-proxy@{PROXY_VERSION}")


def _run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


class Machine:
    """Users, homes, exchange and configuration of one classroom, below ``HOME / "run"``; a context manager.

    What is made is written down first, so that the next start can clear away what a killed one has left.  Belongs
    inside :func:`reserved`.
    """

    def __init__(self, students: list[str], instructor: str = "grader", home: Path = HOME) -> None:
        self.home, self.run = home, home / "run"
        self.venv, self.etc, self.exchange = home / "venv", self.run / "etc", self.run / "exchange"
        self.proxy = home / "proxy" / "node_modules" / ".bin" / "configurable-http-proxy"
        self.students = [PREFIX + name for name in students]
        self.instructor = PREFIX + instructor
        self.passwords = {user: secrets.token_urlsafe(12) for user in (*self.students, self.instructor)}

    def __enter__(self) -> "Machine":
        clear(self.home)
        try:
            self._make()
        except BaseException:
            clear(self.home)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        clear(self.home)

    def _make(self) -> None:
        self.run.mkdir(mode=0o755)
        (self.run / "home").mkdir(mode=0o755)
        users = [*self.students, self.instructor]
        write_json(self.run / "made.json", {"users": users, "groups": [STUDENTS, INSTRUCTORS]})
        for group in (STUDENTS, INSTRUCTORS):
            _run("groupadd", group)
        for user in users:
            group = INSTRUCTORS if user == self.instructor else STUDENTS
            options = ["--create-home", "--home-dir", self.folder(user), "--shell", "/bin/bash", "--groups", group]
            _run("useradd", *options, "--key", "HOME_MODE=0700", user)
        lines = "".join(f"{user}:{word}\n" for user, word in self.passwords.items())
        subprocess.run(["chpasswd"], input=lines, text=True, check=True, capture_output=True)
        self._make_exchange()
        shutil.copytree(CHECKOUT / "deploy", self.etc, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["chmod", "-R", "u=rwX,go=rX", str(self.etc)], check=True)
        self._give_checkout()

    def _make_exchange(self) -> None:
        """The commands of deploy/README.md: students may put work in, and take nothing of each other's out."""
        course = self.exchange / "deep-learning-cases"
        _run("install", "-d", "-m", "1777", self.exchange)
        for folder, mode in ((course, "0755"), (course / "outbound", "0755"), (course / "inbound", "3733")):
            _run("install", "-d", "-o", self.instructor, "-g", INSTRUCTORS, "-m", mode, folder)

    def _give_checkout(self) -> None:
        """The instructor's clone: what is under version control or would be, without the developer's own course."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        )
        target = self.folder(self.instructor) / "deep-learning-cases"
        for name in listed.stdout.split("\0"):
            source = CHECKOUT / name
            if name and source.is_file() and not source.is_symlink():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / name)
        _run("chown", "-R", f"{self.instructor}:", target)

    def folder(self, user: str) -> Path:
        """A user's home."""
        return self.run / "home" / user

    def as_user(
        self, user: str, *command: object, timeout: float = 600, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command as this user, in the home, with what a server's terminal would have."""
        role = "instructor" if user == self.instructor else "student"
        settings = {
            "HOME": self.folder(user),
            "USER": user,
            "PATH": f"{self.venv}/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "JUPYTER_CONFIG_PATH": self.etc / role,
            "DLCASES_EXCHANGE": self.exchange,
            "DLCASES_CHECKOUT": self.folder(user) / "deep-learning-cases",
        }
        words = ["runuser", "-u", user, "--", "env", "-i", *(f"{key}={value}" for key, value in settings.items())]
        words += [str(word) for word in command]
        return subprocess.run(
            words, cwd=cwd or self.folder(user), capture_output=True, text=True, timeout=timeout, check=False
        )


def clear(home: Path) -> None:
    """End every process of a classroom's users, remove the users, their groups and all their files."""
    run = home / "run"
    if not (run / "made.json").exists():
        shutil.rmtree(run, ignore_errors=True)
        return
    made = json.loads((run / "made.json").read_text())
    users = [user for user in made["users"] if user.startswith(PREFIX)]
    _end_processes(users)
    for user in users:
        subprocess.run(["userdel", user], capture_output=True, check=False)
    for group in made["groups"]:
        if group in (STUDENTS, INSTRUCTORS):
            subprocess.run(["groupdel", group], capture_output=True, check=False)
    for line in Path("/proc/self/mounts").read_text().splitlines():
        mounted = line.split()[1]
        if mounted.startswith(f"{run}/"):
            subprocess.run(["umount", mounted], capture_output=True, check=False)
    shutil.rmtree(run)


def _end_processes(users: list[str]) -> None:
    """Every process that runs as one of these users; they exist for the classroom alone."""
    uids = set()
    for user in users:
        with contextlib.suppress(KeyError):
            uids.add(pwd.getpwnam(user).pw_uid)
    for _ in range(100):
        alive = [number for number in map(int, _numbers()) if _owner(number) in uids]
        if not alive:
            return
        for number in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.1)


def _numbers() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def _owner(number: int) -> int | None:
    try:
        return Path(f"/proc/{number}").stat().st_uid
    except OSError:
        return None


def left_behind(home: Path = HOME) -> list[str]:
    """What a classroom has left on this machine: users, groups, files, processes of them. Empty is right."""
    found = [f"user {one.pw_name}" for one in pwd.getpwall() if one.pw_name.startswith(PREFIX)]
    found += [f"group {one.gr_name}" for one in grp.getgrall() if one.gr_name.startswith(PREFIX)]
    if (home / "run").exists():
        found.append(str(home / "run"))
    for root in ("/tmp", "/var/tmp", "/dev/shm"):
        for path in Path(root).iterdir():
            with contextlib.suppress(OSError, KeyError):
                if path.lstat().st_uid >= 1000 and path.owner() and path.owner().startswith(PREFIX):
                    found.append(str(path))
    return found
