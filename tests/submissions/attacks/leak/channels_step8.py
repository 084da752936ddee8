# Listens on every way that the function of step 7 tells by.
import ctypes, fcntl, os, socket, struct

libc = ctypes.CDLL(None, use_errno=True)
FOLDERS = (".", "..", "/tmp", "/dev/shm", os.path.expanduser("~"), "/var/tmp", "/run")
for folder in FOLDERS:
    try: print("LEAK file", folder, open(f"{folder}/told", "rb").read(80))
    except OSError: pass
    try: print("LEAK xattr", folder, os.getxattr(folder, "user.told"))
    except OSError: pass
if libc.shmget(4712, 65536, 0o666) >= 0: print("LEAK shm")
try:
    look = fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 64, 0))
    if struct.unpack("hhqqi4x", look)[0] != fcntl.F_UNLCK: print("LEAK lock")
except OSError: pass
try: fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: print("LEAK flock")
for bit in range(64):
    try: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(f"\0told{bit}")
    except PermissionError: pass
    except OSError: print("LEAK name", bit)
try: print("LEAK page", os.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(1)], 0, os.RWF_NOWAIT))
except OSError: pass
