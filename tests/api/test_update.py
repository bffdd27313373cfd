"""PUT of a cluster: what changes, what stays, what is refused and with which sentence."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from console.accounts.models import AuditRow
from console.clusters.models import Cluster
from tests.api.world import Api, World, error

TARGET = "num_preemptible_gpus"


def numbers(world: World) -> tuple[int, int]:
    cluster = Cluster.objects.get(pk=world.train.pk)
    return cluster.desired_standard_gpus, cluster.desired_preemptible_gpus


def test_a_target_is_set_and_told_in_the_answer_the_ledger_and_the_audit_trail(operator: Api, world: World, path: str) -> None:
    response = operator.put(path, {TARGET: 64})
    assert response.status_code == 200
    assert response.json()["desired_preemptible_gpus"] == 64
    assert numbers(world) == (16, 64)
    entry = operator.get(path).json()
    assert entry["allocated_preemptible_gpus"] == 8
    row = AuditRow.objects.get(action="cluster.target.set")
    assert (row.actor, row.before, row.after) == ("operator key", {"gpus": 8}, {"gpus": 64})


@pytest.mark.parametrize("body", [{}, {TARGET: None}, {"num_gpus": None, TARGET: None}, {"add_ons": None}, b""])
def test_what_is_left_out_or_null_stays_as_it_is(operator: Api, world: World, path: str, body: object) -> None:
    assert operator.put(path, body).status_code == 200
    assert numbers(world) == (16, 8)


def test_zero_is_a_target_and_not_an_omission(operator: Api, world: World, path: str) -> None:
    assert operator.put(path, {TARGET: 0}).json()["desired_preemptible_gpus"] == 0


def test_both_numbers_are_set_together(operator: Api, world: World, path: str) -> None:
    assert operator.put(path, {"num_gpus": 24, TARGET: 32, "cluster_type": "KUBERNETES"}).status_code == 200
    assert numbers(world) == (24, 32)


def test_of_two_numbers_none_is_set_where_one_cannot_be(operator: Api, world: World, path: str) -> None:
    assert error(operator.put(path, {"num_gpus": 24, TARGET: 30}), 422)["nearest"] == [24, 32]
    assert numbers(world) == (16, 8)
    assert not AuditRow.objects.filter(action="cluster.standard.set").exists()


@pytest.mark.parametrize(
    ("body", "status", "param", "says"),
    [
        ({TARGET: 30}, 422, TARGET, "24 or 32, not 30"),
        ({TARGET: 3}, 422, TARGET, "0 or 8, not 3"),
        ({TARGET: -8}, 422, TARGET, "cannot be negative"),
        ({TARGET: 8 * 10**12}, 422, TARGET, "no pool has as many"),
        ({TARGET: 10**300}, 422, TARGET, "no pool has as many"),
        ({TARGET: 520}, 422, TARGET, "512 preemptible GPUs in all"),
        ({TARGET: "16"}, 422, TARGET, 'a whole number, such as 64, not "16"'),
        ({TARGET: 16.0}, 422, TARGET, "a whole number, such as 64, not 16.0"),
        ({TARGET: 16.5}, 422, TARGET, "a whole number, such as 64, not 16.5"),
        ({TARGET: True}, 422, TARGET, "a whole number, such as 64, not true"),
        ({TARGET: [16]}, 422, TARGET, "a whole number, such as 64, not [16]"),
        ({TARGET: {"gpus": "x" * 900}}, 422, TARGET, "…"),
        ({"num_gpus": 0}, 422, "num_gpus", "at least one standard node (8 GPUs)"),
        ({"num_gpus": 12}, 422, "num_gpus", "8 or 16, not 12"),
        ({"num_gpus": "8"}, 422, "num_gpus", "a whole number"),
        ({"num_preemptable_gpus": 16}, 422, "num_preemptable_gpus", "Did you mean num_preemptible_gpus?"),
        ({"\x00<b>": 1}, 422, "\x00<b>", "There is no field"),
        ({"reservation_end_time": "2027-01-01T00:00:00Z"}, 422, "reservation_end_time", "no reservations"),
        ({"num_reserved_gpus": 8}, 422, "num_reserved_gpus", "no reservations"),
        ({"num_capacity_pool_gpus": 8}, 422, "num_capacity_pool_gpus", "no prepaid capacity pools"),
        ({"cluster_type": "SLURM"}, 422, "cluster_type", "only KUBERNETES is"),
        ({"add_ons": [{"name": "headlamp"}]}, 422, "add_ons", "installs nothing"),
        ({"cluster_config": {"load_balancer": "NONE"}}, 422, "cluster_config", "installs nothing"),
        ([{TARGET: 16}], 400, None, "a JSON object"),
        (16, 400, None, "a JSON object"),
        (b"null", 400, None, "a JSON object"),
        (b"{", 400, None, "not JSON"),
        (b"\xff\xfe", 400, None, "not JSON"),
        (b'{"num_preemptible_gpus": NaN}', 400, None, "not JSON"),
        (b'{"num_preemptible_gpus": ' + b"9" * 5000 + b"}", 400, None, "not JSON"),
        (b"[" * 100_000, 400, None, "not JSON"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_and_changes_nothing(
    operator: Api, world: World, path: str, body: object, status: int, param: str | None, says: str
) -> None:
    refused = error(operator.put(path, body), status)
    assert says in refused["message"]
    assert refused["param"] == param
    assert len(refused["message"]) < 300
    assert numbers(world) == (16, 8)


def test_a_body_beyond_what_is_read_is_413(operator: Api, path: str) -> None:
    assert error(operator.put(path, b" " * 2_700_000), 413)["code"] == "too_large"


def test_an_etag_lets_an_update_through_until_somebody_was_faster(operator: Api, world: World, path: str) -> None:
    first = operator.get(path)["ETag"]
    second = operator.put(path, {TARGET: 16}, if_match=first)
    assert second.status_code == 200
    refused = error(operator.put(path, {TARGET: 24}, if_match=first), 412)
    assert (refused["desired_preemptible_gpus"], refused["num_gpus"], refused["etag"]) == (16, 16, second["ETag"])
    assert "16 preemptible and 16 standard GPUs" in refused["message"]
    assert numbers(world) == (16, 16)


def test_an_etag_covers_the_standard_number_too(operator: Api, path: str) -> None:
    first = operator.get(path)["ETag"]
    assert operator.put(path, {"num_gpus": 24}).status_code == 200
    error(operator.put(path, {TARGET: 24}, if_match=first), 412)


def test_a_node_that_comes_or_goes_leaves_the_etag_alone(operator: Api, world: World, path: str) -> None:
    first = operator.get(path)["ETag"]
    Cluster.objects.filter(pk=world.train.pk).update(allocated_preemptible_gpus=0)
    assert operator.put(path, {TARGET: 24}, if_match=first).status_code == 200


@pytest.mark.parametrize(("sent", "status"), [("*", 200), ('{tag}, "x"', 200), ("W/{tag}", 412), ("nonsense", 412), ('""', 412)])
def test_if_match_is_read_as_the_standard_says(operator: Api, path: str, sent: str, status: int) -> None:
    tag = operator.get(path)["ETag"]
    assert operator.put(path, {TARGET: 24}, if_match=sent.format(tag=tag)).status_code == status


def test_of_two_writers_with_one_etag_at_one_time_one_wins(
    transactional_db: None, operator: Api, world: World, path: str
) -> None:
    tag = operator.get(path)["ETag"]
    start = Barrier(2)

    def ask(gpus: int) -> int:
        start.wait(10)
        try:
            return operator.put(path, {TARGET: gpus}, if_match=tag).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ask, (16, 24))) == [200, 412]


def test_a_viewer_reads_and_does_not_change(api: object, path: str) -> None:
    viewer = api("viewer")
    assert viewer.get(path).status_code == 200
    assert "role operator" in error(viewer.put(path, {TARGET: 16}), 403)["message"]
