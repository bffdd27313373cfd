"""Every process of `make up`, in one table; the supervisor's configuration, the docs and the tests read it from here."""

from dataclasses import dataclass, field
from pathlib import Path

from console.runner import postgres, redis

# PostgreSQL and Redis start before the others and stop after them; two groups, because supervisord stops one whole
# group after the other.
DATA, CONSOLE = "data", "console"

# A worker told to stop in the instant in which a task arrives may wait for its own pool until it is killed (Celery 5.7;
# seen three times, in `billiard.pool.join`). Its soft stop gives running tasks a moment (CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT)
# and then ends the pool itself; a task cut off by that is delivered again.
SOFT_STOP = {"REMAP_SIGTERM": "SIGQUIT"}

STOP_SECONDS = {DATA: 10, CONSOLE: 15}


@dataclass(frozen=True)
class Process:
    """One supervised process. `death` is what it gets when the supervisor itself dies, `stop` when it is asked to end."""

    name: str
    group: str
    command: list[str]
    stop: str = "TERM"
    death: str = "SIGKILL"
    user: str | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """What supervisord calls it."""
        return f"{self.group}:{self.name}"


def postgres_process(place: postgres.Place, sockets: Path) -> Process:
    """PostgreSQL: INT is its fast stop (sessions are ended, nothing is lost), QUIT its immediate one."""
    return Process("postgres", DATA, postgres.command(place, sockets), stop="INT", death="SIGQUIT", user=place.user)


def redis_process(packages: Path, data: Path, sockets: Path) -> Process:
    """Redis: TERM writes its file and ends."""
    return Process("redis", DATA, redis.command(packages, data, sockets))


def console_processes(state: Path, port: int, idp_port: int) -> list[Process]:
    """The console's own processes, the demo's simulator and its identity provider, in the order they are started."""
    beat_state = str(state / "run" / "beat")
    return [
        Process("simulator", CONSOLE, ["-m", "console.simulator"]),
        # The feed and the requests keep their connections; a frame is text that is sent once to each socket, not compressed anew.
        Process(
            "web", CONSOLE, [*_asgi("console.web:application", port), "--ws-per-message-deflate", "false"],
            environment={"HALFTIDE_DB_POOL": "8"},
        ),
        Process(
            "idp", CONSOLE, _asgi("console.idp.asgi:application", idp_port),
            environment={"DJANGO_SETTINGS_MODULE": "console.idp.settings"},
        ),
        Process("worker-urgent", CONSOLE, _worker("urgent", "drains,urgent", 4), environment=SOFT_STOP),
        Process("worker", CONSOLE, _worker("default", "default,bulk", 2), environment=SOFT_STOP),
        # No pid file: beat trusts a stale one. A doubled beat costs nothing, since sweeps take rows with SKIP LOCKED.
        Process("beat", CONSOLE, ["-m", "celery", "-A", "console.beat", "beat", "--pidfile=", "-s", beat_state]),
        Process("watch", CONSOLE, ["-m", "manage", "watch"]),
    ]  # fmt: skip


def _asgi(application: str, port: int) -> list[str]:
    # Open sockets would hold a stop for as long as a browser keeps its page open. Compression of frames, which every browser
    # offers, is a zlib state of a quarter MiB and a compression of the same text for each socket.
    return ["-m", "uvicorn", application, "--host", "127.0.0.1", "--port", str(port), "--ws-per-message-deflate", "false",
            "--timeout-graceful-shutdown", "5", "--no-access-log", "--lifespan", "off"]  # fmt: skip


def _worker(name: str, queues: str, concurrency: int) -> list[str]:
    # Workers have nothing to say to each other: gossip and mingle would only make a start wait for them.
    return ["-m", "celery", "-A", "console", "worker", "-n", f"{name}@%h", "-Q", queues, "--concurrency", str(concurrency),
            "--prefetch-multiplier", "1", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]  # fmt: skip
