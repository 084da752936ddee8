"""Attacks on the box: each ends in time, earns only what its answers deserve, and leaves the next submission alone."""

# ruff: noqa: E501

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.sandbox.box import Box, open_box
from grading.sandbox.limits import Limits
from grading.sandbox.run_parts import Call, Cell, Run

CASES = Path(__file__).parents[2] / "submissions" / "attacks" / "cell"
HONEST = """
import math
def latency_stats(samples_us, batch_size):
    xs = sorted(samples_us)
    n = len(xs)
    return {"n": n, "p50_us": (xs[(n - 1) // 2] + xs[n // 2]) / 2, "p95_us": xs[math.ceil(0.95 * n) - 1],
            "images_per_second": batch_size * n * 1e6 / sum(xs)}
"""
RIGHT = {"n": 3, "p50_us": 2.25, "p95_us": 7.125, "images_per_second": 32 * 3e6 / 10.875}
CALLS = [Call(f"call{number}", [7.125, 1.5, 2.25], 32) for number in range(3)]
LIMITS = Limits(
    seconds_per_cell=4, seconds_total=20, seconds_per_call=1, seconds_all_calls=8, memory_mb=400, folder_mb=32, file_mb=8,
    output_kb=64, processes=32,
)  # fmt: skip


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    with open_box(LIMITS, isolation="bubblewrap") as opened:
        yield opened


def attack(box: Box, source: str, *more: str, calls: list[Call] | None = None) -> Run:
    cells = [Cell("solution", source), *(Cell(f"more{number}", text) for number, text in enumerate(more))]
    return box.run(cells, calls=CALLS if calls is None else calls)


def printed(run: Run, cell: str = "solution") -> str:
    return "".join(
        str(output.get("text", "")) + "".join(output.get("traceback", [])) + str(output.get("evalue", ""))
        for output in run.outputs[cell]
    )


def assert_next_is_untouched(box: Box) -> None:
    """An honest submission after the attack: same answers, clean folders, nothing planted, no process left."""
    look = (
        "import os, sys\n"
        # A checkout in /tmp is laid over the wall's own /tmp, read-only: the way to its Python is nothing left behind.
        "known = ['work', *sys.prefix.split('/')[2:3]]\n"
        "left = [f for d in ('.', '..', '/tmp', '/dev/shm') for f in os.listdir(d) if f not in known]\n"
        "mine = [p for p in os.listdir('/proc') if p.isdigit() and p != '1']\n"
        "print(left, len(mine), 'PLANTED' in globals())"
    )
    run = attack(box, HONEST, look)
    assert run.stopped is None
    assert printed(run, "more0") == "[] 1 False\n"
    assert [answer["value"] for answer in run.answers.values()] == [RIGHT] * 3


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_the_known_attacks_earn_nothing_they_do_not_deserve(box: Box, path: Path) -> None:
    run = attack(box, path.read_text())
    right = [answer["value"] == RIGHT for answer in run.answers.values()]
    assert right == [path.stem == "leaks_hidden_inputs"] * 3
    everything = str(run.outputs) + str(run.files)
    assert "7.125" not in everything
    assert "LEAK" not in everything
    assert "NETWORK open" not in everything
    assert "FOUND grading" not in everything
    assert run.seconds < LIMITS.seconds_total + LIMITS.seconds_all_calls + 5
    assert not Path("/root/.ipython/profile_default/startup/00-planted.py").exists()
    assert not Path("/tmp/.ipython").exists()
    assert_next_is_untouched(box)


REFUSED = {
    "trace the server": "libc.ptrace(16, 2, 0, 0)",
    "mount": "libc.mount(b'none', b'/home/student', b'tmpfs', 0, None)",
    "unshare a user namespace": "libc.unshare(0x10000000)",
    "clone a namespace": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "bpf": "libc.syscall(321, 0, 0, 0)",
    "keyctl": "libc.syscall(250, 0, 0, 0, 0, 0)",
    "add_key": "libc.syscall(248, b'user', b'k', b'v', 1, -3)",
    "perf_event_open": "libc.syscall(298, 0, 0, 0, 0, 0)",
    "io_uring": "libc.syscall(425, 8, 0)",
    "userfaultfd": "libc.syscall(323, 0)",
    "read another process's memory": "libc.syscall(310, 1, 0, 0, 0, 0, 0)",
    "system V shared memory": "libc.shmget(1234, 4096, 0o1600)",
    "message queue": "libc.msgget(77, 0o1600)",
    "chroot": "libc.chroot(b'/tmp')",
    "become root": "libc.setuid(0)",
    "raise the limit": "libc.prlimit(0, 7, (ctypes.c_ulong * 2)(99999, 99999), None)",
    "open a handle": "libc.syscall(304, 0, 0, 0)",
    "set an attribute": "libc.setxattr(b'.', b'user.probe', b'1', 1, 0)",
    "set an attribute by the newer call": "libc.syscall(463, -100, b'.', 0, b'user.probe', 0, 0)",
    "ask which pages are cached": "libc.mincore(0, 4096, 0)",
    "ask for the cache's counts": "libc.syscall(451, 0, 0, 0, 0)",
    "read only what is cached": "libc.preadv2(os.open(os.__file__, 0), 0, 0, 0, 8)",
    "push pages out": "libc.madvise(0, 4096, 21)",
    "watch a file": "libc.inotify_init1(0)",
    "take a lease": "libc.fcntl(os.open(os.__file__, 0), 1024, 0)",
    "secret memory": "libc.syscall(447, 0)",
    "signal by a descriptor": "libc.syscall(424, 0, 9, 0, 0)",
    "set the times of a device": "libc.utimensat(-100, b'/dev/null', None, 0)",
    "set the times of a library": "libc.utimensat(-100, os.__file__.encode(), None, 0)",
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_system_calls_that_lead_out_are_refused(box: Box, call: str) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86-64")
    run = attack(box, f"import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nprint('RESULT', {call})", calls=[])
    assert "RESULT -1" in printed(run)
    assert run.stopped is None
    assert box.restarts == 0


UNREACHABLE = {
    "memory of the first process": "open('/proc/1/mem', 'rb')",
    "environment of the first process": "open('/proc/1/environ', 'rb').read()",
    "descriptors of the first process": "os.listdir('/proc/1/fd')",
    "settings of the first process": "open('/proc/1/oom_score_adj', 'w').write('1')",
    "shadow": "open('/etc/shadow').read()",
    "host names": "open('/etc/hostname').read()",
    "write to the code": "open('/lab/sandbox/behind_wall/calls.py', 'a')",
    "write to the library": "open('/lab/lib/deep_learning_cases/__init__.py', 'a')",
    "write to the packages": "open(os.__file__, 'a')",
    "write to passwd": "open('/etc/passwd', 'a')",
    "write to the root": "open('/planted', 'w')",
    "write to the device folder": "open('/dev/planted', 'w')",
    "write to kernel settings": "open('/proc/sys/kernel/core_pattern', 'w')",
    "write to the server's folder": "open('/run/server/planted', 'w')",
    "internet socket": "__import__('socket').socket()",
    "netlink socket": "__import__('socket').socket(16, 3, 0)",
    "vsock": "__import__('socket').socket(40, 1)",
    "the grader": "__import__('grading')",
}


@pytest.mark.parametrize("expression", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_files_and_networks_outside_are_unreachable(box: Box, expression: str) -> None:
    source = f"import os\ntry:\n    {expression}\nexcept (OSError, ImportError) as e:\n    print('refused')\nelse:\n    print('REACHED')"
    assert printed(attack(box, source, calls=[])) == "refused\n"


def test_no_course_file_is_anywhere_in_sight(box: Box) -> None:
    source = (
        "import os\nfound = []\n"
        "for folder, folders, names in os.walk('/'):\n"
        "    if folder in ('/proc', '/usr', '/opt', '/dev') or folder.endswith(('site-packages', '/lib/python3')): folders.clear()\n"
        "    found += [n for n in names if n in {'gradebook.db', 'fixtures.seed', 'nbgrader_config.py', 'mistakes.toml', 'DESIGN.md'}]\n"
        "print(found)"
    )
    assert printed(attack(box, source, calls=[])) == "[]\n"


def test_nothing_outside_the_world_has_a_number_in_it(box: Box) -> None:
    source = (
        "import os, resource, signal\n"
        "print(os.getppid(), sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [1, os.getpid()])\n"
        "for number in (signal.SIGKILL, signal.SIGSTOP):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: pass\n"
        "reached = []\n"
        "for pid in range(2, 70000):\n"
        "    if pid == os.getpid(): continue\n"
        "    try: resource.prlimit(pid, resource.RLIMIT_FSIZE); reached.append(pid)\n"
        "    except ProcessLookupError: pass\n"
        "print(reached)"
    )
    run = attack(box, source, HONEST)
    assert printed(run) == "0 True\n[]\n"
    assert [answer["value"] for answer in run.answers.values()] == [RIGHT] * 3
    assert_next_is_untouched(box)


def test_locks_and_hints_on_shared_files_succeed_and_do_nothing(box: Box) -> None:
    """A lock is a sign to whoever tries for it in another box; libraries that lock their own files go on."""
    source = (
        "import fcntl, os, sqlite3, subprocess, sys\n"
        "f = open(os.__file__, 'rb')\nfcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_SH)\n"
        "os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "look = 'import fcntl, os; fcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)'\n"
        "print(subprocess.run([sys.executable, '-c', look]).returncode)\n"
        "base = sqlite3.connect('own.db')\n"
        "base.execute('create table a (b)'); base.execute('insert into a values (1)'); base.commit()\n"
        "print(base.execute('select b from a').fetchall())"
    )
    assert printed(attack(box, source, calls=[])) == "0\n[(1,)]\n"


def test_what_was_set_on_the_folders_themselves_is_gone(box: Box) -> None:
    look = (
        "import os\n"
        "folders = ('.', '..', '/tmp', '/dev/shm', '/dev/pts', '/run/server')\n"
        "print([(oct(os.stat(f).st_mode), os.stat(f).st_mtime < 1e9, os.listxattr(f)) for f in folders])\n"
    )
    leave = (
        "for folder in folders:\n"
        "    for change in (lambda: os.chmod(folder, 0o711), lambda: os.utime(folder, (1, 1)),\n"
        "                   lambda: os.setxattr(folder, 'user.left', b'1')):\n"
        "        try: change()\n"
        "        except OSError: pass\n"
    )
    first, second = printed(attack(box, look + leave, calls=[])), printed(attack(box, look, calls=[]))
    assert first == second
    assert_next_is_untouched(box)


ENDINGS = {
    "exit": "import os\nos._exit(0)",
    "kill itself": "import os\nos.kill(os.getpid(), 9)",
    "kill all": "import os\nif os.fork() == 0: os.kill(-1, 9)\nos.wait()",
    "segmentation fault": "import ctypes\nctypes.string_at(0)",
    "another program": "import os\nos.execv('/bin/true', ['true'])",
    "close every descriptor": "import os\nos.closerange(0, 1024)",
    "stack overflow": "import sys\nsys.setrecursionlimit(10**9)\nf = lambda: f()\nimport ctypes\nctypes.string_at(0)",
}


@pytest.mark.parametrize("source", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_process_that_ends_costs_its_own_submission_only(box: Box, source: str) -> None:
    run = attack(box, "print('before', flush=True)", source, HONEST)
    assert run.stopped is not None
    assert run.stopped["why"] == "died"
    assert run.stopped["cell"] == "more0"
    assert printed(run) == "before\n"
    assert {answer["error"]["type"] for answer in run.answers.values()} == {"NotAsked"}
    assert_next_is_untouched(box)


def test_memory_is_bounded_for_one_process_and_for_all(box: Box) -> None:
    run = attack(box, "try:\n    x = bytearray(500 << 20)\nexcept MemoryError:\n    print('no memory')", HONEST)
    assert printed(run) == "no memory\n"
    assert run.stopped is None
    assert run.answers["call0"]["ok"]


@pytest.mark.slow
def test_many_processes_cannot_take_more_memory_together(box: Box) -> None:
    source = (
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        hoard = bytearray(os.urandom(1 << 20) * 300)\n"
        "        time.sleep(30)\n"
        "        os._exit(0)\n"
        "time.sleep(4)"
    )
    run = attack(box, source, calls=[])
    assert run.seconds < 15
    assert_next_is_untouched(box)


@pytest.mark.slow
def test_a_fork_bomb_is_bounded_and_gone_afterwards(box: Box) -> None:
    run = attack(
        box,
        "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass",
        calls=[],
    )
    assert run.stopped is not None
    assert run.seconds < 20
    assert_next_is_untouched(box)


def test_daemons_do_not_hold_the_run_open_or_outlive_it(box: Box) -> None:
    source = (
        "import os, time, signal\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        for n in range(1, 65):\n"
        "            try: signal.signal(n, signal.SIG_IGN)\n"
        "            except (OSError, ValueError): pass\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(600)\n"
        "        os._exit(0)\n"
    )
    run = attack(box, source, HONEST)
    assert run.seconds < 5
    assert [answer["value"] for answer in run.answers.values()] == [RIGHT] * 3
    assert_next_is_untouched(box)


def test_disk_is_bounded(box: Box) -> None:
    source = (
        "total = 0\n"
        "for folder in ('/tmp', '.', '/dev/shm'):\n"
        "    try:\n"
        "        for i in range(200):\n"
        "            with open(f'{folder}/f{i}', 'wb') as f: total += f.write(b'x' * (4 << 20))\n"
        "    except OSError as e: print(e.strerror)\n"
        "print(total >> 20 < 160)"
    )
    run = attack(box, source, calls=[])
    assert printed(run).count("No space left") == 3
    assert "True" in printed(run)
    assert len(run.files) <= 200
    assert_next_is_untouched(box)


HARD_TO_REMOVE = {
    "no rights": "import os\nos.makedirs('a/b'); open('a/b/c', 'w'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)",
    "deep": "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')",
    "many": "for i in range(3000): open(f'/tmp/{i}', 'w')",
    "link to the root": "import os\nos.symlink('/', 'root'); os.rmdir(os.getcwd()) if 0 else None",
    "work folder a link": "import os\nos.chdir('/tmp'); os.rename(os.path.expanduser('~/work'), '/home/student/w'); os.symlink('/usr', '/home/student/work')",
    "odd names": "import os\nopen(b'\\xff\\xfe\\n', 'w'); open('a\\nb', 'w'); open('-rf', 'w')",
    "a pipe": "import os\nos.mkfifo('pipe')",
}


@pytest.mark.parametrize("source", HARD_TO_REMOVE.values(), ids=HARD_TO_REMOVE.keys())
def test_files_that_are_hard_to_remove_do_not_stay(box: Box, source: str) -> None:
    run = attack(box, source, calls=[])
    assert printed(run) == ""
    assert Path("/usr/bin").exists()
    assert Path("/etc/passwd").exists()
    assert_next_is_untouched(box)


SOCKET = (
    "import os, socket, stat, json, struct\n"
    "fds = [n for n in range(3, 200) if os.path.exists(f'/proc/self/fd/{n}') and os.readlink(f'/proc/self/fd/{n}').startswith('socket')]\n"
    "def say(data):\n"
    "    for n in fds:\n"
    "        try: os.write(n, data)\n"
    "        except OSError: pass\n"
)
FORGED = {
    "garbage": "say(b'\\x00\\xff{{{\\n' * 1000)",
    "deep": "say(b'[' * 900_000 + b'\\n')",
    "deep object": "say(b'{\"type\":\"display_data\",\"content\":' + b'{\"data\":' * 20_000 + b'}' * 20_001 + b'\\n')",
    "a billion entries": "say(b'{\"type\":\"stream\",\"content\":[' + b'0,' * 400_000 + b'0]}\\n')",
    "endless line": "[say(b'x' * 65536) for _ in range(40)]",
    "huge number": "say(b'{\"type\":\"done\",\"id\":' + b'9' * 50_000 + b'}\\n')",
    "wrong kinds": 'say(b\'{"type":"stream","content":{"name":7,"text":[]}}\\n{"type":"error"}\\n{"type":"execute_result","content":{"data":{"x":{}},"metadata":3}}\\n\')',
    "unknown media": "say(json.dumps({'type':'display_data','content':{'data':{'text/plain':{'a':1},'application/json':[1]},'metadata':{}}}).encode()+b'\\n')",
    "surrogate": 'say(b\'{"type":"stream","content":{"name":"stdout","text":"\\\\ud800"}}\\n\')',
    "early done": 'say(b\'{"type":"done","id":"cell-0","count":true}\\n{"type":"done","id":"cell-1","count":7}\\n\')',
    "server's frames": 'say(struct.pack(\'!I\', 30) + b\'{"event": "exited", "status": 0}\')',
}


@pytest.mark.parametrize("source", FORGED.values(), ids=FORGED.keys())
def test_forged_protocol_lines_hurt_their_own_run_at_most(box: Box, source: str) -> None:
    import nbformat

    run = attack(box, SOCKET + source, HONEST)
    assert run.seconds < 15
    for outputs in run.outputs.values():
        cell = nbformat.v4.new_code_cell("", outputs=[nbformat.from_dict(output) for output in outputs])
        nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
        str(outputs).encode("utf-8")
    assert_next_is_untouched(box)


def test_the_answer_channel_can_forge_only_numbers_of_its_own_call(box: Box) -> None:
    source = (
        SOCKET + "def latency_stats(samples_us, batch_size):\n"
        "    for n in range(3, 100):\n"
        "        try: os.write(n, b'[' * 200000 + b'\\n')\n"
        "        except OSError: pass\n"
        "    return {}\n"
    )
    run = attack(box, source)
    assert not any(answer["ok"] and answer["value"] == RIGHT for answer in run.answers.values())
    assert_next_is_untouched(box)


def test_output_is_cut_with_a_note_and_the_rest_of_the_notebook_runs(box: Box) -> None:
    run = attack(box, "print('x' * 200_000)", "import os\nos.system('yes | head -c 3000000')", "print('after')")
    assert "output cut" in printed(run)
    assert len(printed(run)) < 70_000
    assert "output cut" in printed(run, "more0")
    assert len(printed(run, "more0")) < 70_000
    assert printed(run, "more1") == "after\n"
    assert run.cut == ["solution", "more0"]
    assert run.stopped is None


def test_an_endless_flood_is_stopped(box: Box) -> None:
    run = attack(box, "import os\nwhile True: os.write(1, b'y' * 65536)", calls=[])
    assert run.stopped is not None
    assert run.stopped["why"] in ("output", "time")
    assert_next_is_untouched(box)


@pytest.mark.slow
def test_a_cell_that_swallows_interrupts_is_killed(box: Box) -> None:
    run = attack(box, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", HONEST)
    assert run.stopped == {
        "why": "time",
        "cell": "solution",
        "message": "stopped after 4 s: the cell was still running",
    }
    assert run.answers["call0"]["error"]["type"] == "NotAsked"
    assert_next_is_untouched(box)


def test_hidden_inputs_cannot_leave_by_class_names_or_file_names(box: Box) -> None:
    source = (
        "def latency_stats(samples_us, batch_size):\n"
        "    name = 'L' + '_'.join(str(s).replace('.', 'p') for s in samples_us)\n"
        "    open(name, 'w').close()\n"
        "    raise type(name, (ValueError,), {})(name)\n"
    )
    run = attack(box, source)
    everything = str(run.to_dict())
    assert "7p125" not in everything
    assert run.answers["call0"]["error"] == {
        "type": "a class of its own",
        "mro": ["a class of its own", "ValueError", "Exception", "BaseException", "object"],
    }
