"""JupyterHub on one machine: UNIX users, nbgrader's exchange, students and instructors told apart by UNIX group.

Run as root; deploy/README.md goes through it from an empty Debian machine.  What a site changes are the variables of
the environment read below, each with its default.
"""

import grp
import os
import pwd
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from server_group import PROCESSES  # noqa: E402 - found by the path above

URL = os.environ.get("DLCASES_HUB_URL", "http://127.0.0.1:8000")
SUBDOMAINS_OF = os.environ.get("DLCASES_SUBDOMAINS_OF", "")
STATE = Path(os.environ.get("DLCASES_HUB_STATE", "/var/lib/deep-learning-cases"))
EXCHANGE = Path(os.environ.get("DLCASES_EXCHANGE", "/srv/nbgrader/exchange"))
CHECKOUT = os.environ.get("DLCASES_CHECKOUT", "deep-learning-cases")  # within an instructor's home
STUDENTS = os.environ.get("DLCASES_STUDENTS", "dlcases-students")
INSTRUCTORS = os.environ.get("DLCASES_INSTRUCTORS", "dlcases-instructors")
MEMORY = os.environ.get("DLCASES_MEMORY", "2G")
# One thread measures while the server itself answers the browser: with a single core, the limit would be measured.
CORES = float(os.environ.get("DLCASES_CORES", "2"))
IDLE_SECONDS = int(os.environ.get("DLCASES_IDLE_SECONDS", "3600"))
# How often servers and proxy report use. With the 300 s of JupyterHub, less patience would stop servers in use.
ACTIVITY_SECONDS = min(300, IDLE_SECONDS // 4)
PROXY = os.environ.get("DLCASES_PROXY", "configurable-http-proxy")
STOP_SECONDS = 15  # for a server to end by itself; documents that are not saved live in the browser
ENVIRONMENT_BIN = Path(sys.prefix) / "bin"


def stop(message):
    """One line and no traceback: the operator reads it in the terminal or the journal."""
    sys.exit(f"jupyterhub_config.py: {message}")


def found_proxy():
    path = shutil.which(PROXY, path=f"{ENVIRONMENT_BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if path is None:
        stop(
            f"no command {PROXY!r}: expected the hub's proxy; npm install -g configurable-http-proxy, or DLCASES_PROXY"
        )
    return path


def check_exchange():
    """nbgrader refuses to work with less than this, and says so to a student only."""
    if not EXCHANGE.is_dir():
        stop(f"no exchange at {EXCHANGE}: expected a folder of mode 1777; install -d -m 1777 {EXCHANGE}")
    if EXCHANGE.stat().st_mode & 0o777 != 0o777:
        stop(f"{EXCHANGE} is not writable for everybody, as nbgrader expects; chmod 1777 {EXCHANGE}")
    if os.statvfs(EXCHANGE).f_flag & os.ST_RDONLY:
        stop(f"{EXCHANGE} is on a read-only file system: nobody could hand in; mount it writable")


def check_groups():
    names = {group.gr_name for group in grp.getgrall()}
    for name in (STUDENTS, INSTRUCTORS):
        if name not in names:
            stop(f"no UNIX group {name!r}: it decides who is who; groupadd {name}")


def is_instructor(user):
    """Whether this UNIX user is in the instructors' group now; asked at every start of a server."""
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return grp.getgrnam(INSTRUCTORS).gr_gid in groups


def before_start(spawner):
    """Close the home to others, and give the server the configuration of its user's role."""
    user = pwd.getpwnam(spawner.user.name)
    home = Path(user.pw_dir)
    if home.stat().st_mode & 0o077:
        spawner.log.warning("%s was open to others; it is 0700 now", home)
        home.chmod(0o700)
    role = "instructor" if is_instructor(user) else "student"
    spawner.environment = {
        **spawner.environment,
        "JUPYTER_CONFIG_PATH": str(HERE / role),
        "DLCASES_EXCHANGE": str(EXCHANGE),
    }
    if role == "instructor":
        spawner.environment["DLCASES_CHECKOUT"] = str(home / CHECKOUT)


if os.geteuid() != 0:
    stop("expected to run as root, which starts servers as other users")
if IDLE_SECONDS < 120:
    stop(f"DLCASES_IDLE_SECONDS is {IDLE_SECONDS}: expected 120 or more, since use is reported every 30 s at best")
check_groups()
check_exchange()
STATE.mkdir(mode=0o700, parents=True, exist_ok=True)

c = get_config()  # noqa: F821 - given by traitlets

c.JupyterHub.bind_url = URL
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.subdomain_host = SUBDOMAINS_OF
c.JupyterHub.db_url = f"sqlite:///{STATE / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")
c.ConfigurableHTTPProxy.command = [found_proxy()]
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")

# Names and passwords are the machine's own.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.open_sessions = False
c.LocalAuthenticator.allowed_groups = {STUDENTS, INSTRUCTORS}

if Path("/run/systemd/system").is_dir() and shutil.which("systemd-run") and find_spec("systemdspawner"):
    c.JupyterHub.spawner_class = "systemd"
    c.SystemdSpawner.isolate_tmp = True
    c.SystemdSpawner.disable_user_sudo = True
    c.SystemdSpawner.unit_extra_properties = {
        "TasksMax": str(PROCESSES),
        "MemorySwapMax": "0",
        # By default systemd ends the kernels together with their server, which takes that for a crash and starts them
        # anew; then its own end fails, and it hangs until systemd loses patience, after 90 seconds.
        "KillMode": "mixed",
        "TimeoutStopSec": str(STOP_SECONDS),
    }
    # They are units of their own: a new start of the hub finds them again, and nobody loses a kernel.
    c.JupyterHub.cleanup_servers = False
else:
    c.JupyterHub.spawner_class = "limited_spawner.LimitedProcessSpawner"
    # A server that is told to stop while a kernel starts may not listen; 65 s by default until it is killed.
    c.LocalProcessSpawner.interrupt_timeout = STOP_SECONDS
    c.LocalProcessSpawner.term_timeout = 5
c.Spawner.mem_limit = MEMORY
c.Spawner.cpu_limit = CORES
c.Spawner.pre_spawn_hook = before_start
c.Spawner.default_url = "/lab"
c.Spawner.notebook_dir = "~"
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
# The hub passes almost nothing on; without PATH a kernel finds neither bash nor nbgrader's own commands.
c.Spawner.environment = {
    "PATH": f"{ENVIRONMENT_BIN}:/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JUPYTERHUB_ACTIVITY_INTERVAL": str(ACTIVITY_SECONDS),
}
c.JupyterHub.last_activity_interval = ACTIVITY_SECONDS

c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={IDLE_SECONDS}"],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
