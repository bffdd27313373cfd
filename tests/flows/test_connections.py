"""Connections to the database: no more than the processes may have, and new ones by themselves after a restart of the server."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import redis
from celery import Celery
from playwright.sync_api import BrowserContext
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from console.settings import broker
from tests.flows.conftest import cluster_row, settled, sign_in
from tests.installation import Installation, within

# As docs/operations.md has it: 8 for web, 5 for watch, 2 for each of the workers' six children; and the identity provider's.
MOST = 8 + 5 + 2 * 6 + 8
SOCKETS, TASKS = 200, 300


def connections(stack: Installation) -> int:
    query = "SELECT count(*) AS open FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    return int(stack.rows(query)[0]["open"])


def answers(stack: Installation) -> bool:
    with suppress(httpx.HTTPError):
        return stack.api("GET", "/v1/compute/clusters").status_code == 200
    return False


def come_and_go(address: str, cookie: str) -> None:
    """A browser that opens a page's socket, hears something and leaves."""
    headers = {"Cookie": cookie, "Origin": address.split("/live")[0].replace("ws:", "http:")}
    with connect(address, additional_headers=headers, open_timeout=60) as socket, suppress(ConnectionClosed, TimeoutError):
        socket.recv(timeout=20)


def test_sockets_tasks_and_a_restart_of_postgresql_leave_no_connection_behind_and_none_broken(
    stack: Installation, context: BrowserContext
) -> None:
    """Threads, tasks and consumers each kept one until the limit was reached, or failed with a closed one for ever
    (deepfence/ThreatMapper#784, celery/celery#4878, django/channels#871, #1234)."""
    page = context.new_page()
    sign_in(page, "Olu, operator")
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in context.cookies(stack.address))
    cluster = cluster_row(stack, "aurora-train")["id"]
    address = f"{stack.address.replace('http:', 'ws:')}/live/{cluster}/?since=0"
    with ThreadPoolExecutor(20) as browsers:
        list(browsers.map(come_and_go, [address] * SOCKETS, [cookie] * SOCKETS))
    queue = stack.runtime()["REDIS_URL"]
    with Celery(broker=broker(queue)) as sender, redis.Redis.from_url(queue) as client:
        for _ in range(TASKS):
            sender.send_task("capacity.sweep", queue="urgent")
        assert within(120, lambda: client.llen("urgent") == 0, 0.5)
    assert within(20, lambda: connections(stack) <= MOST, 0.5), connections(stack)

    before, first = stack.processes(), stack.pid("bin/postgres")
    assert first
    os.kill(first, signal.SIGINT)
    assert within(30, lambda: stack.pid("bin/postgres") not in (None, first), 0.1)
    assert within(30, lambda: answers(stack), 0.2)
    wanted = 48 if cluster_row(stack, "aurora-train")["desired_preemptible_gpus"] != 48 else 40
    stack.api("PUT", f"/v1/compute/clusters/{cluster}", {"num_preemptible_gpus": wanted}).raise_for_status()
    assert within(60, lambda: settled(stack), 0.2), cluster_row(stack, "aurora-train")
    assert all(answers(stack) for _ in range(20))
    console = {pid for pid, command in before.items() if "postgres" not in command}
    assert console <= stack.processes().keys(), "a process had to be started again"
    assert connections(stack) <= MOST


def test_frames_are_not_compressed_for_each_socket(stack: Installation, context: BrowserContext) -> None:
    """Every browser offers it, and a thousand of them would each have cost a zlib state and a compression of the same frame."""
    page = context.new_page()
    sign_in(page, "Ada, admin")
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in context.cookies(stack.address))
    address = f"{stack.address.replace('http:', 'ws:')}/live/{cluster_row(stack, 'aurora-train')['id']}/?since=0"
    with connect(address, additional_headers={"Cookie": cookie, "Origin": stack.address}, compression="deflate") as socket:
        assert "permessage-deflate" in str(socket.request.headers["Sec-WebSocket-Extensions"])
        assert "Sec-WebSocket-Extensions" not in socket.response.headers
        assert socket.recv(timeout=20)
