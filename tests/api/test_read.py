"""Reading clusters, regions and projects: the client's shapes, and only what one's role shows."""

import base64
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.clusters.models import Cluster, ComputeClass, Machine
from tests.api.world import KUBECONFIG, Api, World, error, new_cluster, new_machine, new_node, tell

LIST = "/v1/compute/clusters"
DECLARED = {
    "add_ons": list, "allocated_preemptible_gpus": int, "billing_type": str, "cluster_id": str, "cluster_name": str,
    "cluster_type": str, "control_plane_nodes": list, "cuda_version": str, "desired_preemptible_gpus": int, "gpu_type": str,
    "gpu_worker_nodes": list, "kube_config": str, "num_capacity_pool_gpus": int, "num_cpu_workers": int, "num_gpus": int,
    "num_reserved_gpus": int, "nvidia_driver_version": str, "phase_transitions": list, "project_id": str, "region": str,
    "status": str, "volumes": list,
}  # fmt: skip
DECLARED_OF_NODES = {
    "host_name": str, "memory_gib": float, "networks": list, "node_id": str, "num_cpu_cores": int, "num_gpus": int,
    "phase_transitions": list, "status": str,
}  # fmt: skip


def typed(found: dict[str, object], declared: dict[str, type]) -> bool:
    return all(type(found[name]) is kind for name, kind in declared.items())


def browser(world: World, person: str) -> Api:
    client = Client()
    client.force_login(world.people[person])
    return Api(client)


def test_every_field_that_the_client_declares_is_there_with_its_type(operator: Api, world: World, path: str) -> None:
    new_node(world.train, "gpu-dp-1")
    new_machine(world.train, "gone", Machine.State.GONE, gone_at=timezone.now())
    for found in (operator.get(path).json(), operator.get(LIST).json()["clusters"][0]):
        assert typed(found, DECLARED)
        assert all(typed(node, DECLARED_OF_NODES) for node in found["gpu_worker_nodes"] + found["deleted_gpu_worker_nodes"])
        assert [phase["phase"] for phase in found["phase_transitions"]][-1] == "CLUSTER_PHASE_READY"
        assert found["created_at"] == "2026-11-01T00:00:00Z"


def test_a_machine_is_one_worker_node_from_asked_to_gone(operator: Api, world: World, path: str) -> None:
    made = world.train
    now = timezone.now()
    new_machine(made, "a", Machine.State.ASKED)
    new_machine(made, "b", Machine.State.BOOTING)
    new_machine(made, "c", Machine.State.LEAVING)
    new_node(made, "d")
    new_node(made, "e", ComputeClass.PREEMPTIBLE, draining=True)
    new_node(made, "f", ready=False)
    new_node(made, "g", ready=None)
    new_node(made, "h", unschedulable=True)
    new_node(made, "i", startup_pending=True)
    new_machine(made, "x", Machine.State.GONE, gone_at=now, joined_at=now)
    new_machine(made, "y", Machine.State.GIVEN_UP, gone_at=now - timedelta(hours=1))
    new_machine(made, "z", Machine.State.GONE, gone_at=now - timedelta(hours=73))
    found = operator.get(path).json()
    words = {node["host_name"]: node["status"] for node in found["gpu_worker_nodes"]}
    assert words == {
        "a": "Pending",
        "b": "Booting",
        "c": "Draining",
        "d": "Running",
        "e": "Draining",
        "f": "NotReady",
        "g": "Unknown",
        "h": "Cordoned",
        "i": "Booting",
    }
    assert [node["host_name"] for node in found["gpu_worker_nodes"] if node["marked_for_deletion"]] == ["e", "c"]
    gone = {
        node["host_name"]: (node["status"], [at["phase"] for at in node["phase_transitions"]])
        for node in found["deleted_gpu_worker_nodes"]
    }
    assert gone == {
        "x": ("Deleted", ["NODE_PHASE_PENDING", "NODE_PHASE_BOOTSTRAPPING", "NODE_PHASE_SUCCEEDED"]),
        "y": ("Failed", ["NODE_PHASE_PENDING", "NODE_PHASE_FAILED"]),
    }


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "Ready"),
        ({"allocated_preemptible_gpus": 0}, "Ready"),
        ({"status": Cluster.Status.CREATING}, "WaitingForControlPlaneNodes"),
        ({"allocated_standard_gpus": 0}, "WaitingForDataPlaneNodes"),
        ({"unreachable_since": timezone.now()}, "Degraded"),
        ({"status": Cluster.Status.DELETING}, "Deleting"),
    ],
)
def test_the_status_is_a_word_of_the_client(
    operator: Api, world: World, path: str, change: dict[str, object], status: str
) -> None:
    Cluster.objects.filter(pk=world.train.pk).update(**change)
    assert operator.get(path).json()["status"] == status


def test_a_sick_standard_node_degrades_a_cluster_and_a_preemptible_one_does_not(operator: Api, world: World, path: str) -> None:
    new_node(world.train, "p", ComputeClass.PREEMPTIBLE, ready=False)
    assert operator.get(path).json()["status"] == "Ready"
    new_node(world.train, "s", ready=False)
    assert operator.get(path).json()["status"] == "Degraded"


def test_the_kubeconfig_is_for_operators_and_up_and_never_in_the_list(api: object, path: str) -> None:
    shown = {role: api(role).get(path).json()["kube_config"] for role in ("viewer", "operator", "admin")}
    assert shown["viewer"] == ""
    assert base64.b64decode(shown["operator"]).decode() == base64.b64decode(shown["admin"]).decode() == KUBECONFIG
    assert all(one["kube_config"] == "" for one in api("admin").get(LIST).json()["clusters"])


def test_a_kubeconfig_that_cannot_be_opened_hides_nothing_else(operator: Api, world: World, path: str) -> None:
    Cluster.objects.filter(pk=world.train.pk).update(kubeconfig=b"sealed with another key")
    found = operator.get(path)
    assert (found.status_code, found.json()["kube_config"]) == (200, "")


def test_events_of_three_days_are_one_for_each_node_and_reason_newest_first(operator: Api, world: World, path: str) -> None:
    now = timezone.now()
    for reason, node, minutes in (
        ("TogetherScaledUp", "n1", 9),
        ("NodeNotReady", "n1", 8),
        ("NodeNotReady", "n1", 7),
        ("NodeNotReady", "n2", 6),
        ("TogetherPreempted", "n1", 60 * 24 * 4),
        ("KubeletStarted", "n1", 1),
    ):
        tell(world.train, reason, node, now - timedelta(minutes=minutes))
    tell(world.train, "LaunchAsked", "n3", now - timedelta(minutes=10), kind="Machine")
    tell(world.train, "TargetChanged", "aurora-train", now, kind="Cluster")
    tell(world.other, "TogetherPreempted", "n9", now)
    found = operator.get(path).json()["node_lifecycle_events"]
    assert [(event["node_id"], event["reason"]) for event in found] == [
        ("n2", "NodeNotReady"),
        ("n1", "NodeNotReady"),
        ("n1", "TogetherScaledUp"),
        ("n3", "LaunchAsked"),
    ]
    assert found[1]["timestamp"].startswith((now - timedelta(minutes=7)).strftime("%Y-%m-%dT%H:%M"))


def test_everybody_lists_the_clusters_of_their_projects(api: object, world: World) -> None:
    def names(someone: Api, query: str = "") -> list[str]:
        return [one["cluster_name"] for one in someone.get(LIST + query).json()["clusters"]]

    assert names(api("admin")) == ["aurora-train"]  # a key of ada, who sees everything, sees its own project
    assert names(browser(world, "ada")) == ["aurora-train", "borealis-eval"]
    assert names(browser(world, "vic")) == ["aurora-train"]
    assert names(browser(world, "ada"), f"?projectId={world.borealis.pk}") == ["borealis-eval"]
    error(browser(world, "vic").get(f"{LIST}?projectId={world.borealis.pk}"), 404)
    assert error(browser(world, "vic").get(f"{LIST}?projectId=%00"), 400)["param"] == "projectId"


def test_a_list_of_many_costs_as_many_queries_as_a_list_of_one(operator: Api, world: World) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert operator.get(LIST).status_code == 200
        return len(seen)

    new_node(world.train, "first")
    new_machine(world.train, "gone", Machine.State.GONE, gone_at=timezone.now())
    tell(world.train, "TogetherScaledUp", "first")
    operator.get(LIST)  # marks the key as used
    few = queries()
    for number in range(5):
        more = new_cluster(world.aurora, f"more-{number}")
        for which in range(4):
            new_node(more, f"n{number}-{which}")
            new_machine(more, f"m{number}-{which}", Machine.State.BOOTING)
            tell(more, "TogetherScaledUp", f"n{number}-{which}")
    assert queries() == few <= 10


def test_regions_say_which_gpu_types_have_a_pool(operator: Api) -> None:
    image = "machine-image"
    driver = {"id": image, "cuda_version": image, "nvidia_driver_version": image, "os": image}
    assert operator.get("/v1/compute/regions").json() == {
        "regions": [
            {"name": "eu-north-1", "supported_instance_types": ["H100_SXM"], "driver_versions": [driver]},
            {"name": "us-central-2", "supported_instance_types": ["B200_SXM"], "driver_versions": [driver]},
        ]
    }
