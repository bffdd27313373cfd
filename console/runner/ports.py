"""Is a port free, and if not, who has it? Asked before anything starts, so that the answer is a sentence, not a log."""

import errno
import socket
from pathlib import Path

from console.runner.errors import RunnerError

LISTENING = "0A"


def require_free(variable: str, port: int, host: str = "127.0.0.1") -> None:
    """Refuse with a sentence when `port` cannot be listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the servers do: a connection of the last run that is still fading away is no reason to refuse.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise RunnerError(f"Port {port} is taken by {owner(port)}: set {variable} to another port.") from None
            raise RunnerError(f"Port {port} cannot be opened ({error.strerror}): set {variable} to another port.") from error


def owner(port: int, proc: Path = Path("/proc")) -> str:
    """Who listens on `port`, as "name (pid 12)"; other users' processes cannot be seen without root."""
    inodes = {f"socket:[{inode}]" for inode in _listeners(port, proc)}
    for process in proc.glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
        except OSError:
            continue  # it ended meanwhile, or it is not ours to look into
    return "another program"


def _listeners(port: int, proc: Path) -> list[str]:
    found: list[str] = []
    for table in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        fields = (row.split() for row in rows)
        found += [row[9] for row in fields if row[3] == LISTENING and int(row[1].rsplit(":", 1)[1], 16) == port]
    return found
