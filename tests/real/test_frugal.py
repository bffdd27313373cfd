"""What a large cluster costs a real API server and us: counted in requests, revisions, rows and bytes.

With a thousand nodes and ten pods each it is the same arithmetic (`make bench` measures those); here it has to be quick.
"""

import asyncio
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil
from typing import Any

import pytest

from console.clusters import secrets
from console.clusters.models import Node, Pod
from console.kube.client import Kube
from console.sync import tasks
from console.timeline.models import Entry, Stream
from tests.controlplane.plane import Json
from tests.real.world import Fleet, Watching, pod
from tests.simulator.conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)

TOTAL = 1
NODES, PODS = 520, 1040
PAGE = 500  # objects in one answer
NOTE = 4096  # bytes of an annotation on each pod, as what deploys them leaves it
MARK = "test.halftide.io/large"
KINDS = ("nodes", "pods", "events")


def at_once(work: Callable[[int], Any], count: int) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(count)))


def name(number: int) -> str:
    return f"large-{number:04}"


def heartbeat(fleet: Fleet, number: int, beat: int) -> None:
    """As a kubelet says that nothing has changed: another time in a condition."""
    at = f"2026-12-01T00:00:{beat:02}Z"
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": at,
        "lastTransitionTime": "2026-12-01T00:00:00Z",
    }
    body = {"status": {"conditions": [ready], "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}
    fleet.ask("PATCH", f"/api/v1/nodes/{name(number)}/status", body, "application/strategic-merge-patch+json")


@contextmanager
def large(fleet: Fleet) -> Iterator[None]:
    """Hundreds of nodes and pods beside the fleet's own."""

    def node(number: int) -> None:
        fleet.ask(
            "POST", "/api/v1/nodes", {"metadata": {"name": name(number), "labels": {MARK: ""}}, "spec": {"unschedulable": True}}
        )
        heartbeat(fleet, number, 0)

    def a_pod(number: int) -> None:
        about = {"name": f"large-{number:04}", "labels": {MARK: "yes"}, "annotations": {"example.com/deployed": "x" * NOTE}}
        body = {"metadata": about, "spec": pod(nodeName=name(number % NODES))}
        fleet.ask("POST", "/api/v1/namespaces/{ns}/pods", body)

    try:
        at_once(node, NODES)
        at_once(a_pod, PODS)
        yield
    finally:
        fleet.ask("DELETE", f"/api/v1/namespaces/{{ns}}/pods?labelSelector={MARK}", {"gracePeriodSeconds": 0})
        fleet.ask("DELETE", f"/api/v1/nodes?labelSelector={MARK}", {})


def known(fleet: Fleet) -> tuple[int, int]:
    mine = {"cluster": fleet.cluster, "name__startswith": "large-"}
    return Node.objects.filter(**mine).count(), Pod.objects.filter(**mine).count()


def say(fleet: Fleet) -> Callable[[], bool]:
    """An Event, and whether it is in the timeline: whatever came before it has been written."""
    mark = uuid.uuid4().hex
    about: Json = {"kind": "Node", "name": name(0), "apiVersion": "v1"}
    body = {
        "metadata": {"name": mark},
        "involvedObject": about,
        "reason": "Marked",
        "message": mark,
        "type": "Normal",
        "count": 1,
    }
    fleet.ask("POST", "/api/v1/namespaces/default/events", {**body, "metadata": {"name": mark, "namespace": "default"}})
    return lambda: Entry.objects.filter(stream=fleet.cluster.stream, message=mark).exists()


def revision(fleet: Fleet) -> int:
    return Stream.objects.get(pk=fleet.cluster.stream).revision


def only_told(fleet: Fleet, before: int) -> bool:
    """Whether everything since a revision is an entry: the controllers go on saying that new nodes are registered."""
    rows = Entry.objects.filter(stream=fleet.cluster.stream, revision__gt=before)
    return revision(fleet) - before == rows.count()


def held(fleet: Fleet, page: int) -> tuple[int, int]:
    """Of a list of all pods: the bytes that are kept of it, and how many more there were at most while it came in."""

    async def listed() -> tuple[int, int]:
        async with Kube(secrets.connection(fleet.cluster)) as kube:
            await kube.version()  # what a connection needs is there before anything is counted
            tracemalloc.start()
            try:
                listing = await kube.list("pods", page=page)
                assert len(listing.items) >= PODS
                kept, most = tracemalloc.get_traced_memory()
                return kept, most - kept
            finally:
                tracemalloc.stop()

    return asyncio.run(listed())


def lists(asked: list[Any]) -> dict[str, int]:
    return {kind: sum(one.verb == "list" and one.resource == kind for one in asked) for kind in KINDS}


def test_a_large_cluster_is_listed_in_pages_and_its_heartbeats_cost_nothing(fleet: Fleet) -> None:
    """kubernetes/kubernetes#29772: a beat is no row and no frame. HolmesGPT/holmesgpt#2438, skypilot-org/skypilot PR#7469: a list
    is asked for in pages, each of which is let go before the next, and of an object nothing is kept that nobody reads.
    """
    account = fleet.account.user
    emitted = Entry.objects.filter(reason="TogetherScaledUp", seen_at=None).exclude(own_event=None)
    fleet.until(lambda: not emitted.exists())  # else the next watch rightly emits them again
    fleet.watching.stop()
    with large(fleet):
        events = len(fleet.ask("GET", "/api/v1/events")["items"])
        pages = {
            "nodes": ceil((NODES + TOTAL) / PAGE),
            "pods": ceil(len(fleet.ask("GET", "/api/v1/pods")["items"]) / PAGE),
            "events": max(1, ceil(events / PAGE)),
        }
        first = fleet.plane.audit()
        with Watching():
            eventually(lambda: known(fleet) == (NODES, PODS), 60)
            eventually(say(fleet), 30)
            found = lists(first.asked(account))
            assert (found["nodes"], found["pods"]) == (pages["nodes"], pages["pods"])
            assert found["events"] <= pages["events"] + 1
            assert [one for one in first.asked(account) if one.verb not in ("list", "watch")] == []

            later, before = fleet.plane.audit(), revision(fleet)
            for beat in (1, 2):
                at_once(lambda number, beat=beat: heartbeat(fleet, number, beat), NODES)
            eventually(say(fleet), 30)
            eventually(lambda: only_told(fleet, before))
            assert [one for one in later.asked(account) if one.verb != "watch"] == []
        watches = [one.resource for one in first.asked(account) if one.verb == "watch"]
        assert sorted(watches) == sorted(KINDS)

        again, before = fleet.plane.audit(), revision(fleet)
        tasks.relist_cluster(str(fleet.cluster.pk))
        found = lists(again.asked(account))
        assert (found["nodes"], found["pods"]) == (pages["nodes"], pages["pods"])
        eventually(lambda: only_told(fleet, before))

        (kept, passing), (_, whole) = held(fleet, PODS // 10), held(fleet, 10 * PODS)
        assert kept < PODS * NOTE  # less than the annotations alone
        assert passing < whole / 4
