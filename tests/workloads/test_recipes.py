"""The manifests parse, and the scheduler puts each where its title says."""

from typing import Any

import pytest
import yaml

from console.kube.pods import wish
from console.simulator.machines.scheduler import Room, place
from console.workloads.recipes import recipes

CLASS = "together.ai/compute-class"


def spec(code: str) -> dict[str, Any]:
    [found] = [recipe for recipe in recipes("aurora-train", 8, 300) if recipe.code == code]
    job = yaml.safe_load(found.yaml)
    assert job["kind"] == "Job"
    template: dict[str, Any] = job["spec"]["template"]["spec"]
    for container in template["containers"]:  # as admission does: a limit of an extended resource is its request
        container["resources"]["requests"] = container["resources"]["limits"]
    return template


def node(name: str, preemptible: bool) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {CLASS: "preemptible"} if preemptible else {}}, "spec": {}}


NODES = [node("standard", False), node("preemptible", True)]


def lands(code: str, full: str = "") -> str | None:
    rooms = {one["metadata"]["name"]: Room(0 if one["metadata"]["name"] == full else 8, 110) for one in NODES}
    return place({"metadata": {"name": "p"}, "spec": spec(code)}, NODES, rooms)[0]


@pytest.mark.parametrize(
    ("code", "free", "without_its_own"),
    [("preemptible", "preemptible", None), ("standard", "standard", None), ("prefer", "preemptible", "standard")],
)
def test_each_lands_where_it_says_and_waits_or_falls_back_as_it_says(code: str, free: str, without_its_own: str | None) -> None:
    assert lands(code) == free
    assert lands(code, full=free) == without_its_own


@pytest.mark.parametrize(("code", "asks"), [("preemptible", "required"), ("standard", "refused"), ("prefer", "preferred")])
def test_halftide_reads_of_each_what_it_wrote(code: str, asks: str) -> None:
    assert wish(spec(code)) == asks


@pytest.mark.parametrize("name", ["Ärgerlich & Söhne", "", "-", "x" * 300, "a: b\n- c", "<img>"])
def test_any_name_of_a_cluster_gives_manifests_that_parse(name: str) -> None:
    for recipe in recipes(name, 4, 30):
        job = yaml.safe_load(recipe.yaml)
        assert len(job["metadata"]["name"]) <= 63
        assert job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
        assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 4}
