"""A receiver on loopback, as real as can be: it answers what a test tells it to and remembers what it got."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answers` are used up from the left: status, headers, body; then it says 200."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    hang: threading.Event | None = None  # set by a test that wants it to say nothing until it is set

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/T0/B0/a-secret-path"


@contextmanager
def receiving() -> Iterator[Receiver]:
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            here.got.append(Got(self.path, dict(self.headers.items()), body))
            if here.hang is not None:
                here.hang.wait(20)
            status, headers, answer = here.answers.pop(0) if here.answers else (200, {}, b"ok")
            self.send_response(status)
            for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # whoever asked has read enough
                self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Tests read what came, not a log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        if here.hang is not None:
            here.hang.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
