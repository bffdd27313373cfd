"""`python -m console.simulator`: serve on loopback until told to stop."""

import asyncio
import logging
import sys

import uvicorn
import uvloop

from console import env
from console.simulator import settings
from console.simulator.simulator import Simulator

FAREWELL_SECONDS = 1  # open watches do not end by themselves


async def serve(simulator: Simulator) -> None:
    """Serve, and live, until SIGTERM or SIGINT."""
    config = uvicorn.Config(
        simulator, host="127.0.0.1", port=simulator.settings.port, log_level="warning", access_log=False, lifespan="off",
        server_header=False, timeout_graceful_shutdown=FAREWELL_SECONDS, timeout_keep_alive=75, ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():  # noqa: ASYNC110  # uvicorn tells of its start by an attribute only
        await asyncio.sleep(0.01)
    if server.started:
        await simulator.start()
    await serving
    await simulator.stop()


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
