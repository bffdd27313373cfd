"""Reclaims, drains and drills by the API: who may, what comes back, page by page."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from console.accounts.models import User
from console.capacity.models import Drain, PodVerdict, Reclaim
from console.clusters.models import ComputeClass
from tests.api.world import Api, World, error, new_node

Verdict = PodVerdict.Verdict


@pytest.fixture(autouse=True)
def _fleet(world: World) -> None:
    """As in the demo: olu, who owns the operator's and the viewer's key, is a fleet operator."""
    User.objects.filter(username="olu").update(fleet_operator=True)
    for name in ("gpu-preemptible-dp-1", "gpu-preemptible-dp-2"):
        new_node(world.train, name, ComputeClass.PREEMPTIBLE)
    new_node(world.train, "gpu-dp-1")


def taken(operator: Api, path: str, body: object, **headers: str) -> dict[str, Any]:
    answer = operator.post(f"{path}/reclaims", body, **headers)
    assert answer.status_code == 202, answer.content
    found: dict[str, Any] = answer.json()
    assert answer["Location"] == f"{path}/reclaims/{found['reclaim_id']}"
    return found


def test_gpus_are_taken_back_by_number(operator: Api, path: str) -> None:
    found = taken(operator, path, {"num_gpus": 8})
    assert set(found) == {"reclaim_id", "drains", "refused"}
    [drain] = found["drains"]
    assert set(drain) == {"drain_id", "node_name", "deadline"}
    row = Drain.objects.get()
    assert (str(row.pk), row.node_name, str(row.reclaim_id)) == (drain["drain_id"], drain["node_name"], found["reclaim_id"])
    assert row.asked_by == "operator key"


def test_nodes_are_taken_back_by_name_and_wrong_ones_hold_up_nothing(operator: Api, path: str) -> None:
    """aws/aws-node-termination-handler#272"""
    names = ["nobody-1", "", "gpu-dp-1", None, "gpu-preemptible-dp-2"]
    found = taken(operator, path, {"nodes": names})
    assert [drain["node_name"] for drain in found["drains"]] == ["gpu-preemptible-dp-2"]
    assert [refused["code"] for refused in found["refused"]] == ["unknown", "empty", "standard", "malformed"]
    counted = operator.get(f"{path}/drains").json()["refused_notices"]
    assert {one["reason"]: one["count"] for one in counted} == {"unknown": 1, "empty": 1, "standard": 1, "malformed": 1}


def test_a_body_that_is_no_json_is_refused_and_the_next_is_answered(operator: Api, path: str) -> None:
    """aws/aws-node-termination-handler#272"""
    assert error(operator.post(f"{path}/reclaims", b'{"nodes": ['), 400)["code"] == "not_json"
    taken(operator, path, {"nodes": ["gpu-preemptible-dp-1"]})


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "one_of"),
        ({"num_gpus": 8, "nodes": ["gpu-preemptible-dp-1"]}, 422, "one_of"),
        ({"num_gpus": 12}, 422, "not_a_multiple"),
        ({"num_gpus": 0}, 422, "nothing"),
        ({"num_gpus": "8"}, 422, "not_a_number"),
        ({"num_gpus": 64}, 422, "too_many"),
        ({"nodes": []}, 422, "nothing"),
        ({"nodes": "gpu-preemptible-dp-1"}, 422, None),
        ({"nodes": ["gpu-dp-1"]}, 422, "standard"),
        ({"num_gpus": 8, "drill": "yes"}, 422, None),
        ({"num_gpus": 8, "when": "now"}, 422, "unknown_field"),
        ([8], 400, "not_an_object"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(operator: Api, path: str, body: object, status: int, code: str | None) -> None:
    found = error(operator.post(f"{path}/reclaims", body), status)
    assert code is None or found["code"] == code
    assert not Drain.objects.exists()


def test_the_same_key_gets_the_same_answer_and_409_with_another_body(operator: Api, path: str) -> None:
    first = operator.post(f"{path}/reclaims", {"num_gpus": 8}, **{"Idempotency-Key": "n-1"})
    again = operator.post(f"{path}/reclaims", {"num_gpus": 8}, **{"Idempotency-Key": "n-1"})
    assert (again.status_code, again.content) == (202, first.content)
    found = error(operator.post(f"{path}/reclaims", {"num_gpus": 16}, **{"Idempotency-Key": "n-1"}), 409)
    assert (found["code"], found["param"], found["reclaim_id"]) == ("key_used", "Idempotency-Key", first.json()["reclaim_id"])
    assert error(operator.post(f"{path}/reclaims", {"num_gpus": 8}, **{"Idempotency-Key": " "}), 422)["code"] == "bad_key"
    assert Drain.objects.count() == 1


def test_only_keys_of_fleet_operators_that_may_act_take_anything(api: Any, path: str) -> None:
    assert error(api("viewer").post(f"{path}/reclaims", {"num_gpus": 8}), 403)  # of a fleet operator, but only to look
    assert error(api("admin").post(f"{path}/reclaims", {"num_gpus": 8}), 403)  # its owner is none
    assert error(api(None).post(f"{path}/reclaims", {"num_gpus": 8}), 401)
    assert not Drain.objects.exists()


def test_a_key_of_another_project_finds_nothing(operator: Api, world: World) -> None:
    there = f"/v1/compute/clusters/{world.other.pk}"
    assert error(operator.post(f"{there}/reclaims", {"num_gpus": 8}), 404)
    assert error(operator.get(f"{there}/drains"), 404)


def test_a_drain_says_its_state_and_the_verdict_on_each_pod(operator: Api, path: str) -> None:
    drain_id = taken(operator, path, {"nodes": ["gpu-preemptible-dp-1"]})["drains"][0]["drain_id"]
    row = Drain.objects.get()
    told = row.started_at + timedelta(seconds=1)
    rest = {"drain": row, "namespace": "team", "asked_grace": 60}
    PodVerdict.objects.create(
        **rest, pod_uid="b", name="train-1", given_grace=60, told_at=told, ended_at=told + timedelta(seconds=34.25), exit_code=3,
        verdict=Verdict.FINISHED,
    )  # fmt: skip
    PodVerdict.objects.create(**rest, pod_uid="a", name="train-0", given_grace=0)
    found = operator.get(f"{path}/drains/{drain_id}").json()
    assert {"state", "cause", "deadline", "started_at", "cordoned_at", "told_at", "emptied_at", "removed_at"} <= set(found)
    assert (found["state"], found["cause"], found["why"]) == ("asked", "preempted", "operator key takes it back")
    assert found["verdicts"] == [
        {
            "pod": "train-0", "namespace": "team", "verdict": "stopping", "exit_code": None, "seconds": None,
            "given_grace": None, "budget": None,
        },
        {
            "pod": "train-1", "namespace": "team", "verdict": "finished", "exit_code": 3, "seconds": 34.2,
            "given_grace": 60, "budget": None,
        },
    ]  # fmt: skip
    assert error(operator.get(f"{path}/drains/{uuid4()}"), 404)["param"] == "drain_id"
    assert error(operator.get(f"{path}/drains/mine"), 404)


def test_drains_come_newest_first_page_by_page_and_by_state_and_cause(operator: Api, path: str, world: World) -> None:
    machine = new_node(world.train, "gpu-preemptible-dp-9", ComputeClass.PREEMPTIBLE).machine
    now = timezone.now()
    ids = []
    for number in range(7):
        drain = Drain.objects.create(
            cluster=world.train, machine=machine, node_name=f"n-{number}", cause=Drain.Cause.SCALED_DOWN, why="less is asked for",
            state=Drain.State.REMOVED, started_at=now - timedelta(minutes=number // 2), deadline=now,
        )  # fmt: skip
        ids.append((drain.started_at, drain.pk))
    wanted = [str(key) for _, key in sorted(ids, reverse=True)]
    seen: list[str] = []
    after = ""
    for _ in range(3):
        found = operator.get(f"{path}/drains?limit=3{after}").json()
        seen += [one["drain_id"] for one in found["drains"]]
        after = f"&after={found['next_cursor']}"
    assert seen == wanted
    assert found["next_cursor"] is None
    taken(operator, path, {"num_gpus": 8})
    assert len(operator.get(f"{path}/drains?cause=preempted").json()["drains"]) == 1
    assert len(operator.get(f"{path}/drains?state=removed&cause=scaled_down").json()["drains"]) == 7
    assert error(operator.get(f"{path}/drains?state=gone"), 422)["param"] == "state"
    assert error(operator.get(f"{path}/drains?after=AAAA"), 400)["code"] == "bad_cursor"
    assert error(operator.get(f"{path}/drains?colour=red"), 422)


def test_a_drill_has_a_report_and_another_reclaim_has_none(operator: Api, path: str) -> None:
    drill = taken(operator, path, {"nodes": ["gpu-preemptible-dp-1"], "drill": True})["reclaim_id"]
    plain = taken(operator, path, {"nodes": ["gpu-preemptible-dp-2"]})["reclaim_id"]
    found = operator.get(f"{path}/reclaims/{drill}").json()
    assert (found["drill"], found["num_gpus"], found["asked_by"], found["finished_at"]) == (True, None, "operator key", None)
    assert [drain["node_name"] for drain in found["drains"]] == ["gpu-preemptible-dp-1"]
    report = operator.get(f"{path}/reclaims/{drill}/report").json()
    assert {**report, "totals": None, "nodes": None} == {**found["report"], "totals": None, "nodes": None}
    [node] = report["nodes"]
    assert (node["node_name"], node["gpus"], node["state"], node["replaced_by"]) == ("gpu-preemptible-dp-1", 8, "asked", None)
    assert (report["totals"]["nodes"], report["totals"]["not_replaced"], report["before"]) == (1, 1, None)
    assert operator.get(f"{path}/reclaims/{plain}").json()["report"] is None
    assert error(operator.get(f"{path}/reclaims/{plain}/report"), 404)["code"] == "no_drill"
    assert error(operator.get(f"{path}/reclaims/{uuid4()}"), 404)["param"] == "reclaim_id"
    assert Reclaim.objects.count() == 2


def test_who_may_see_a_cluster_may_see_its_drains(api: Any, operator: Api, path: str) -> None:
    drill = taken(operator, path, {"num_gpus": 8, "drill": True})["reclaim_id"]
    for tail in ("drains", f"reclaims/{drill}", f"reclaims/{drill}/report"):
        assert api("viewer").get(f"{path}/{tail}").status_code == 200
