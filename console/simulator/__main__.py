"""`python -m console.simulator`: serve on loopback until told to stop."""

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
import uvloop

from console import env
from console.simulator import settings
from console.simulator.simulator import Simulator

FAREWELL_SECONDS = 2  # for answers that are on their way; watches have been ended before


class Server(uvicorn.Server):
    """uvicorn's server without its hands on the signals: it would raise them again before we have ended in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `serve`."""
        yield


async def serve(simulator: Simulator) -> None:
    """Serve, and live, until SIGTERM or SIGINT."""
    config = uvicorn.Config(
        simulator, host="127.0.0.1", port=simulator.settings.port, log_level="warning", access_log=False, lifespan="off",
        server_header=False, date_header=False, timeout_graceful_shutdown=FAREWELL_SECONDS, timeout_keep_alive=75, ws="none",
    )  # fmt: skip
    server, told = Server(config), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():  # noqa: ASYNC110  # uvicorn tells of its start by an attribute only
        await asyncio.sleep(0.01)
    if server.started:
        await simulator.start()
        await told.wait()
        await simulator.stop()
        server.should_exit = True
    await serving
    simulator.close()


def main() -> int:
    """The process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        simulator = Simulator(settings.read())
    except env.SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logging.getLogger("console.simulator").info("Kubernetes APIs below %s/clusters/", simulator.settings.origin)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(simulator))
    return 0


if __name__ == "__main__":
    sys.exit(main())
