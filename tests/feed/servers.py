"""A Redis that a test may kill, and the web server with real sockets."""

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import redis
import uvicorn
from django.conf import settings
from websockets.asyncio.client import ClientConnection, connect

from console.asgi import application
from console.runner import install
from console.runner.redis import program
from tests.feed.line import Page, World

SMALL = 8192  # bytes: buffers of a kernel that is in no mood to hide a slow reader


class Redis:
    """A server of this test's own: it can die and come back under the same address."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="halftide-redis-")  # short: the path of a socket has 107 characters
        self.path = Path(self.folder.name) / "s"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.path}?db=0"

    def start(self) -> None:
        binary = program(install.packages_of(Path(sys.executable).parent.parent))
        command = [str(binary), "--port", "0", "--unixsocket", str(self.path), "--save", "", "--dir", self.folder.name]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        redis.Redis(unix_socket_path=str(self.path), retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.02), 500)).ping()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.path.unlink(missing_ok=True)

    def cut_subscribers(self) -> int:
        """As Redis does to a subscriber whose output buffer overflows."""
        with redis.Redis(unix_socket_path=str(self.path)) as client:
            return int(client.execute_command("CLIENT", "KILL", "TYPE", "pubsub"))


@asynccontextmanager
async def web() -> AsyncIterator[int]:
    """uvicorn on this loop; its port. What it sends waits in small buffers."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    server = uvicorn.Server(uvicorn.Config(application, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def a_browser(port: int, world: World, page: Page) -> ClientConnection:
    """A real socket that takes one frame at a time from its kernel and unpacks nothing."""
    ours = socket.socket()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    ours.setblocking(False)
    await asyncio.get_running_loop().sock_connect(ours, ("127.0.0.1", port))
    return await connect(
        f"ws://localhost:{port}/live/{world.id}/?since={page.revision}&epoch={page.epoch}",
        sock=ours,
        origin="http://localhost",
        additional_headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={world.session}"},
        compression=None,
        max_queue=1,
    )
