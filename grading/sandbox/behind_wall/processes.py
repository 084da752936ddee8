"""Find the processes of a submission, also those that left its session."""

import contextlib
import os


def strangers(ours: set[int], uid: int | None, pid_namespace: bool) -> list[int]:
    """Live processes beside ``ours``: of user ``uid`` if it is given, of the namespace or else our descendants."""
    if pid_namespace:
        candidates = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    else:
        candidates = descendants(os.getpid(), ours - {os.getpid()})
    return [pid for pid in candidates if pid not in ours and _is_students(pid, uid)]


def descendants(root: int, leave_out: set[int]) -> list[int]:
    """Children, their children and so on; orphans are ours too where we are their reaper."""
    found, level = [], [root]
    while level:
        parent = level.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as stream:
                children = [int(text) for text in stream.read().split()]
        except (OSError, ValueError):
            continue
        children = [pid for pid in children if pid not in leave_out]
        found += children
        level += children
    return found


def private_bytes(pids: list[int]) -> int:
    """Memory that these processes do not share with the libraries' files, in bytes."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as stream:
            fields = stream.read().split()
            total += (int(fields[1]) - int(fields[2])) * page
    return total


def _is_students(pid: int, uid: int | None) -> bool:
    """Not a zombie, and of the user; /proc shows a process that is not dumpable as root's, so its status is read."""
    try:
        with open(f"/proc/{pid}/status") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return False
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
    if fields.get("State", ["Z"])[0] == "Z":
        return False
    return uid is None or str(uid) in fields.get("Uid", [])
