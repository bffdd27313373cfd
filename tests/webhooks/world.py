"""A project with clusters whose ledger grows through the house's own `change`, and webhooks that read it."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.db import connections

from console.accounts.access import Actor
from console.accounts.models import Role
from console.accounts.sealing import seal
from console.clusters.models import Cluster
from console.timeline.changes import change
from console.timeline.models import Entry
from console.webhooks import reading, sweeping
from console.webhooks.models import Delivery, Webhook
from console.webhooks.sending import send_due
from tests.pages import world as pages

NOW = datetime(2026, 11, 12, 14, 2, tzinfo=UTC)
SECRET = "htwh_known-to-this-test"
ALL = ["preemptions", "timeouts", "capacity", "kubernetes", "automation", "targets", "warnings"]


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def a_cluster(name: str = "aurora-train", project: str = "aurora") -> Cluster:
    pool = pages.Pool.objects.first() or pages.a_pool()
    return pages.a_cluster(pool, name, project)


def a_webhook(cluster: Cluster, address: str, *, groups: Iterable[str] = ALL, alone: bool = False, **more: object) -> Webhook:
    """Of the cluster's project, or of the cluster `alone`; it begins at NOW."""
    webhook = Webhook(
        project=cluster.project,
        cluster=cluster if alone else None,
        **{"name": "ops", "kind": "json", "host": "127.0.0.1", "tail": "path", **more},
    )
    webhook.groups, webhook.address, webhook.secret = list(groups), seal(address), seal(SECRET)
    webhook.created_at, webhook.created_by = NOW, "ada"
    webhook.begins_at = NOW
    webhook.save(force_insert=True)
    reading.begin(webhook, NOW)
    webhook.save()
    return webhook


def happens(cluster: Cluster, reason: str, message: str = "", at: datetime = NOW, **more: object) -> Entry:
    with change(at) as made:
        return made.entry(cluster.stream, reason, message or f"{cluster.name}: {reason}", **more)


def preempted(cluster: Cluster, number: int, at: datetime = NOW) -> list[Entry]:
    """Nodes taken back in one change, as a reclaim writes them."""
    with change(at) as made:
        return [
            made.entry(
                cluster.stream,
                "TogetherPreempted",
                f"gpu-preemptible-dp-{n:04x} goes back: atlas-serve needs 8 GPUs, gone by 14:07:00 UTC",
                severity=Entry.Severity.WARNING,
                subject=("Node", f"gpu-preemptible-dp-{n:04x}", str(uuid4())),
                drain_id=uuid4(),
                data={"gpus": 8, "deadline": after(300).isoformat(), "why": "atlas-serve needs 8 GPUs"},
            )
            for n in range(number)
        ]


def sweep(seconds: float) -> bool:
    return sweeping.sweep(after(seconds))


def send(seconds: float) -> int:
    return send_due(after(seconds), dice=lambda: 0.5)


def sweeps(until: float, begin: float = 0, every: float = 2) -> None:
    """As beat would, without waiting."""
    moment = begin
    while moment <= until:
        sweep(moment)
        moment += every


def side_by_side(call: Callable[[], object], number: int = 2) -> list[object]:
    """The same call in several threads that start together, each on a connection of its own; the first failure is raised."""
    ready = threading.Barrier(number)

    def one(_: int) -> object:
        try:
            ready.wait(10)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(one, range(number)))


def told(webhook: Webhook) -> list[Delivery]:
    return list(webhook.deliveries.order_by("made_at", "pk"))


def an_admin(project: str = "aurora", role: Role = Role.ADMIN) -> Actor:
    user = pages.a_person(f"{role.label}-of-{project}", role, project)
    return Actor(user=user, roles={pages.a_project(project).pk: role})
