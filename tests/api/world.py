"""Two projects with people, keys and clusters, and a few machines in every state that an answer has a word for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from console.accounts.models import Grant, Project, Role, User
from console.accounts.services import create_key
from console.capacity.models import Pool, new_pool_stream
from console.clusters.models import Cluster, ComputeClass, GpuType, Machine, Node, Region, new_stream
from console.clusters.secrets import seal
from console.timeline.changes import change
from console.timeline.models import INSTALLATION, Stream

KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters:\n- name: atlas\n  cluster: {server: 'http://127.0.0.1:1'}\n"
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class World:
    aurora: Project
    borealis: Project
    train: Cluster
    other: Cluster
    people: dict[str, User]
    keys: dict[str, str]


def make() -> World:
    aurora = Project.objects.create(name="Aurora Labs", slug="aurora")
    borealis = Project.objects.create(name="Borealis Research", slug="borealis")
    Stream.objects.create(pk=INSTALLATION, kind=Stream.Kind.INSTALLATION)
    for name in ("eu-north-1", "us-central-2"):
        Region.objects.create(name=name, title=name)
    for name in ("H100_SXM", "B200_SXM"):
        GpuType.objects.create(name=name)
    for region, gpu_type in (("eu-north-1", "H100_SXM"), ("us-central-2", "B200_SXM")):
        new_pool_stream(Pool.objects.create(region_id=region, gpu_type_id=gpu_type, total_machines=8, free_machines=3)).save()
    people = {
        "ada": person("ada", None, Role.ADMIN),
        "olu": person("olu", None, Role.OPERATOR),
        "vic": person("vic", aurora, Role.VIEWER),
        "fay": User.objects.create_user("fay"),
    }
    owners = {"admin": "ada", "operator": "olu", "viewer": "olu"}
    keys = {
        role: create_key(None, aurora, people[owner], f"{role} key", Role[role.upper()], timezone.now())[1]
        for role, owner in owners.items()
    }
    train = new_cluster(aurora, "aurora-train")
    other = new_cluster(borealis, "borealis-eval", "us-central-2", "B200_SXM")
    return World(aurora, borealis, train, other, people, keys)


def person(name: str, project: Project | None, role: Role) -> User:
    user = User.objects.create_user(name)
    Grant.objects.create(
        user=user, project=project, role=role, source=Grant.Source.PERSON, origin="a test", granted_at=timezone.now()
    )
    return user


def new_cluster(project: Project, name: str, region: str = "eu-north-1", gpu_type: str = "H100_SXM") -> Cluster:
    cluster = Cluster(
        project=project,
        name=name,
        region_id=region,
        gpu_type_id=gpu_type,
        status=Cluster.Status.READY,
        created_at=datetime(2026, 11, 1, tzinfo=UTC),
        first_ready_at=datetime(2026, 11, 1, 0, 5, tzinfo=UTC),
        kubeconfig=seal(KUBECONFIG),
        desired_standard_gpus=16,
        allocated_standard_gpus=16,
        desired_preemptible_gpus=8,
        allocated_preemptible_gpus=8,
    )
    new_stream(cluster).save(force_insert=True)
    with change() as made:
        made.save(cluster.stream, cluster)
    return cluster


def new_node(cluster: Cluster, name: str, compute_class: str = ComputeClass.STANDARD, **more: Any) -> Node:
    """A Ready node with its machine."""
    machine = new_machine(
        cluster, name, Machine.State.JOINED, compute_class, joined_at=timezone.now(), first_ready_at=timezone.now()
    )
    node = Node(
        cluster=cluster,
        machine=machine,
        uid=f"uid-{name}",
        name=name,
        gpus=8,
        compute_class=compute_class,
        created_at=timezone.now(),
        resource_version="1",
        **{"ready": True, "internal_ip": "10.0.0.7", **more},
    )
    with change() as made:
        made.save(cluster.stream, node)
    return node


def new_machine(cluster: Cluster, name: str, state: str, compute_class: str = ComputeClass.PREEMPTIBLE, **more: Any) -> Machine:
    machine = Machine(
        cluster=cluster,
        region_id=cluster.region_id,
        gpu_type_id=cluster.gpu_type_id,
        compute_class=compute_class,
        node_name=name,
        state=state,
        asked_at=timezone.now() - HOUR,
        **more,
    )
    with change() as made:
        made.save(cluster.stream, machine)
    return machine


def tell(cluster: Cluster, reason: str, node: str, at: datetime | None = None, kind: str = "Node") -> None:
    with change() as made:
        made.entry(cluster.stream, reason, f"{node}: {reason}", at=at, subject=(kind, node, f"uid-{node}"))


@dataclass(frozen=True)
class Api:
    """Speaks JSON with a key, or as a person signed in in a browser, or as nobody."""

    client: Client
    key: str | None = None

    def send(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, path, data, content_type="application/json", headers=headers)

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.send("GET", path, **headers)

    def put(self, path: str, body: object, **headers: str) -> HttpResponse:
        return self.send("PUT", path, body, **headers)

    def post(self, path: str, body: object, **headers: str) -> HttpResponse:
        return self.send("POST", path, body, **headers)


def error(response: HttpResponse, status: int) -> dict[str, Any]:
    """What an answer's envelope holds, which must be whole."""
    found = response.json()
    assert response.status_code == status, found
    assert list(found) == ["error"]
    assert {"message", "type", "param", "code"} <= set(found["error"])
    assert found["error"]["message"].endswith((".", "?"))
    return found["error"]
