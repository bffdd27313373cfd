"""The state folder (`.halftide/`): who may use it, which version wrote it, and the secrets made for it.

One `flock` decides who runs here. supervisord inherits it, so that a second `make up` after a killed runner waits until
the last process of the first is gone, without trusting any pid that was written to a file.
"""

import base64
import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from console.env import read_env_file
from console.runner.errors import RunnerError

# Raise it when an older checkout could no longer use what this one writes.
STATE_VERSION = 1

# Longest socket folder: the kernel allows 107 bytes for a socket's path, and `.s.PGSQL.5432.lock` is still to come.
SOCKET_DIR_BYTES = 80

# A supervisord whose runner was killed needs up to 15 s for its processes and 2 s for PostgreSQL.
LAST_RUN_SECONDS = 25.0


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


# What the demo needs and nobody should have to invent. Made once, kept in secrets.env.
SECRETS: dict[str, Callable[[], str]] = {
    "HALFTIDE_SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "HALFTIDE_ENCRYPTION_KEY": _fernet_key,
    "HALFTIDE_IDP_SECRET_KEY": lambda: secrets.token_urlsafe(48),
}


def digest(path: Path) -> str:
    """A short name for a path, safe in any folder."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


def open_state(path: Path) -> None:
    """Make the folder, or check that this version and this user may use the one that is there."""
    try:
        # As root, PostgreSQL's own user has to pass through; every file with a secret in it is 0600 anyway.
        path.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        for name in ("log", "run"):
            (path / name).mkdir(exist_ok=True, mode=0o700)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        raise RunnerError(
            f"No right to write in {path} ({error.strerror}): run as the user who owns it, "
            "or set HALFTIDE_STATE to a folder of your own."
        ) from error
    check_version(path / "version")


def check_version(file: Path) -> None:
    """Refuse state of a newer version; sign state that has no version yet."""
    try:
        found = int(file.read_text())
    except FileNotFoundError:
        file.write_text(f"{STATE_VERSION}\n")
        return
    except ValueError:
        raise RunnerError(f"{file} holds no version number: `make reset` forgets this state.") from None
    if found > STATE_VERSION:
        raise RunnerError(
            f"The state in {file.parent} was written by a newer version (state {found}, this one knows up to "
            f"{STATE_VERSION}): update the checkout, or forget the state with `make reset`."
        )


def take_lock(path: Path, say: Callable[[str], None] = print) -> int:
    """Take the folder for this process and return the descriptor that holds it; wait for a last run that is ending."""
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LAST_RUN_SECONDS
    told = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            runner = os.pread(lock, 32, 0).decode().strip()
            if _is_runner(runner) or time.monotonic() > deadline:
                os.close(lock)
                raise RunnerError(
                    f"Halftide runs in {path} already (pid {runner or 'unknown'}): stop that one first with Ctrl-C."
                ) from None
            if not told:
                say("  waiting for the processes of the last run to end")
                told = True
            time.sleep(0.2)
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _is_runner(pid: str) -> bool:
    try:
        return b"console.runner" in Path(f"/proc/{int(pid)}/cmdline").read_bytes()
    except (ValueError, OSError):
        return False


def write_private(file: Path, values: dict[str, str]) -> None:
    """Write `NAME=value` lines that only their owner may read, whole or not at all."""
    draft = file.with_name(file.name + ".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.writelines(f"{name}={value}\n" for name, value in values.items() if "\n" not in value)
    draft.replace(file)


def demo_secrets(path: Path) -> dict[str, str]:
    """The demo's secrets: those made before, and new ones for what is new."""
    known = read_env_file(path / "secrets.env")
    made = {name: known.get(name) or make() for name, make in SECRETS.items()}
    if made != known:
        write_private(path / "secrets.env", made)
    return made


def socket_dir(state: Path, owner: int) -> Path:
    """A folder for Unix sockets that only `owner` (and root) can enter, with a path short enough for the kernel."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") if owner == os.geteuid() else None
    name = f"halftide-{os.geteuid()}-{digest(state)}"
    candidates = [Path(base) / name for base in (runtime, tempfile.gettempdir(), "/tmp") if base]
    folder = next(path for path in candidates if path.parent.is_dir() and len(os.fsencode(path)) <= SOCKET_DIR_BYTES)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner, os.geteuid()):
        raise RunnerError(f"{folder} belongs to somebody else, and sockets are to be made there: remove it.")
    folder.chmod(0o700)
    if found.st_uid != owner:
        os.chown(folder, owner, -1)
    return folder
