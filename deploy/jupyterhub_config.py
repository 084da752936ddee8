"""JupyterHub on one machine: UNIX users, nbgrader's exchange, students and instructors told apart by UNIX group.

Run as root; deploy/README.md goes through it from an empty Debian machine.  What a site changes are variables of the
environment, which site_settings.py reads and checks.
"""

import grp
import os
import pwd
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import site_settings  # noqa: E402 - found by the path above
from server_group import PROCESSES  # noqa: E402


def stop(message: object) -> NoReturn:
    """One line and no traceback: the operator reads it in the terminal or the journal."""
    sys.exit(f"jupyterhub_config.py: {message}")


try:
    SITE = site_settings.read(os.environ)
except site_settings.SettingError as fault:
    stop(fault)

# How often servers and proxy report use. With the 300 s of JupyterHub, less patience would stop servers in use.
ACTIVITY_SECONDS = min(300, SITE.idle_seconds // 4)
STOP_SECONDS = 15  # for a server to end by itself; documents that are not saved live in the browser
ENVIRONMENT_BIN = Path(sys.prefix) / "bin"


def found_proxy() -> str:
    path = shutil.which(SITE.proxy, path=f"{ENVIRONMENT_BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if path is None:
        stop(f"no command {SITE.proxy!r}: expected the proxy; npm install -g configurable-http-proxy, or DLCASES_PROXY")
    return path


def check_exchange() -> None:
    """nbgrader refuses to work with less than this, and says so to a student only."""
    if not SITE.exchange.is_dir():
        stop(f"no exchange at {SITE.exchange}: expected a folder of mode 1777; install -d -m 1777 {SITE.exchange}")
    if SITE.exchange.stat().st_mode & 0o777 != 0o777:
        stop(f"{SITE.exchange} is not writable for everybody, as nbgrader expects; chmod 1777 {SITE.exchange}")
    if os.statvfs(SITE.exchange).f_flag & os.ST_RDONLY:
        stop(f"{SITE.exchange} is on a read-only file system: nobody could hand in; mount it writable")


def check_groups() -> None:
    names = {group.gr_name for group in grp.getgrall()}
    for name in (SITE.students, SITE.instructors):
        if name not in names:
            stop(f"no UNIX group {name!r}: it decides who is who; groupadd {name}")


def is_instructor(user: pwd.struct_passwd) -> bool:
    """Whether this UNIX user is in the instructors' group now; asked at every start of a server."""
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return grp.getgrnam(SITE.instructors).gr_gid in groups


def before_start(spawner: Any) -> None:
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
        "DLCASES_EXCHANGE": str(SITE.exchange),
    }
    if role == "instructor":
        spawner.environment["DLCASES_CHECKOUT"] = str(home / SITE.checkout)


if os.geteuid() != 0:
    stop("expected to run as root, which starts servers as other users")
check_groups()
check_exchange()
SITE.state.mkdir(mode=0o700, parents=True, exist_ok=True)
if SITE.state.stat().st_mode & 0o077:
    stop(f"{SITE.state} is open to others: expected a folder of the hub's own, 0700; chmod 0700 {SITE.state}")

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by traitlets

c.JupyterHub.bind_url = SITE.url
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.subdomain_host = SITE.subdomains_of
c.JupyterHub.db_url = f"sqlite:///{SITE.state / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(SITE.state / "cookie_secret")
c.ConfigurableHTTPProxy.command = [found_proxy()]
c.ConfigurableHTTPProxy.pid_file = str(SITE.state / "proxy.pid")

# Names and passwords are the machine's own.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.open_sessions = False
c.LocalAuthenticator.allowed_groups = {SITE.students, SITE.instructors}

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
c.Spawner.mem_limit = SITE.memory
c.Spawner.cpu_limit = SITE.cores
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
        "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={SITE.idle_seconds}"],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
