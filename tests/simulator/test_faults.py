"""Faults that change what is answered, machines that never arrive, pools that shrink: what the simulator does when told to."""

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from console.simulator.provider.pools import Pool
from console.simulator.skew import shifted
from tests.simulator.conftest import Api, Simulation, eventually, ready

CONFIGS = "/api/v1/namespaces/default/configmaps"
PLACE = {"region": "us-central-2", "gpu_type": "B200_SXM"}


@pytest.fixture
def faults(simulation: Simulation, api: Api) -> Iterator[Any]:
    def add(kind: str, **more: object) -> None:
        answer = simulation.control("POST", "faults", {"cluster_id": api.key, "kind": kind, **more})
        assert answer.status_code == 201, answer.text

    yield add
    assert simulation.control("POST", "clear").status_code == 200


def make(api: Api, name: str) -> int:
    return int(api.post(CONFIGS, {"metadata": {"name": name}}).json()["metadata"]["resourceVersion"])


def calm(api: Api) -> None:
    """Wait until nothing in the cluster changes any more."""

    def version() -> str:
        return str(api.get(CONFIGS).json()["metadata"]["resourceVersion"])

    def still() -> bool:
        before = version()
        time.sleep(0.3)
        return version() == before

    eventually(still)


def names(api: Api, **query: object) -> list[str]:
    return [item["metadata"]["name"] for item in api.get(CONFIGS, params=query).json()["items"]]


def test_a_list_can_be_as_it_was_some_changes_ago(api: Api, faults: Any) -> None:
    """A replica that has fallen behind, or a restored backup: older objects under an older version."""
    make(api, "one")
    calm(api)  # "changes ago" counts those of the cluster's own controllers too
    since = make(api, "two")
    last = make(api, "three")
    faults("older", behind=last - since, times=1)
    old = api.get(CONFIGS).json()
    assert int(old["metadata"]["resourceVersion"]) < last
    assert [item["metadata"]["name"] for item in old["items"]] in (["one", "two"], ["one"])
    assert names(api) == ["one", "three", "two"]


def test_an_older_list_never_goes_back_beyond_what_is_remembered(api: Api, faults: Any) -> None:
    make(api, "one")
    faults("older", behind=10**6)
    assert api.get(CONFIGS).status_code == 200


def test_of_a_list_in_pages_only_the_first_arrives(api: Api, faults: Any) -> None:
    for name in ("one", "two", "three"):
        make(api, name)
    faults("partial", code=500, reason="InternalError")
    first = api.get(CONFIGS, params={"limit": 500}).json()
    assert len(first["items"]) == 1
    token = first["metadata"]["continue"]
    assert api.get(CONFIGS, params={"limit": 500, "continue": token}).status_code == 500


@pytest.mark.parametrize("offset", [90, -3600])
def test_a_shifted_clock_is_in_the_date_and_in_every_instant_and_comes_back_as_it_was_said(
    api: Api, faults: Any, offset: int
) -> None:
    make(api, "before")
    right = api.get(f"{CONFIGS}/before").json()["metadata"]["creationTimestamp"]
    faults("skew", offset=offset)
    answer = api.get(f"{CONFIGS}/before")
    shown = datetime.fromisoformat(answer.json()["metadata"]["creationTimestamp"])
    assert shown - datetime.fromisoformat(right) == timedelta(seconds=offset)
    assert len(answer.headers.get_list("date")) == 1
    ahead = (parsedate_to_datetime(answer.headers["date"]) - datetime.now(UTC)).total_seconds()
    assert ahead == pytest.approx(offset, abs=3)
    mine = {"metadata": {"name": "mine", "annotations": {"until": "2026-11-30T12:00:00.250000Z", "note": "2026-99-99T12:00:00Z"}}}
    api.post(CONFIGS, mine)
    assert api.get(f"{CONFIGS}/mine").json()["metadata"]["annotations"] == mine["metadata"]["annotations"]
    [line] = api.watch(CONFIGS, 1, resourceVersion=0, fieldSelector="metadata.name=before", last="ADDED")
    assert line["object"]["metadata"]["creationTimestamp"] == answer.json()["metadata"]["creationTimestamp"]


def test_without_a_fault_the_date_is_right_everywhere(simulation: Simulation, api: Api) -> None:
    for answer in (api.get(CONFIGS), simulation.control("GET", "pools"), api.get("/nowhere")):
        [said] = answer.headers.get_list("date")
        assert abs((parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()) < 3


def test_only_whole_instants_are_moved() -> None:
    text = (
        b'{"a":"2026-12-31T23:59:59Z","b":"2026-12-31T23:59:59.000001Z","c":"at 2026-12-31T23:59:59Z","d":"0001-01-01T00:00:00Z"}'
    )
    assert shifted(text, 1) == (
        b'{"a":"2027-01-01T00:00:00Z","b":"2027-01-01T00:00:00.000001Z","c":"at 2026-12-31T23:59:59Z","d":"0001-01-01T00:00:01Z"}'
    )
    assert b'"0001-01-01T00:00:00Z"' in shifted(text, -1)


@pytest.mark.parametrize("wrong", [{"kind": "skew"}, {"kind": "skew", "offset": 1.5}, {"kind": "older", "behind": -1}])
def test_a_fault_without_sense_is_refused(simulation: Simulation, api: Api, wrong: dict[str, object]) -> None:
    assert simulation.control("POST", "faults", {"cluster_id": api.key, **wrong}).status_code == 400


def test_faults_can_be_listed_and_those_that_have_run_out_are_not(simulation: Simulation, api: Api, faults: Any) -> None:
    faults("status", code=403, verbs=["delete"], resources=["pods"], for_seconds=60)
    faults("down", times=1)
    api.get(CONFIGS)
    [left] = simulation.control("GET", f"faults?cluster_id={api.key}").json()["faults"]
    assert (left["kind"], left["verbs"], left["resources"], left["code"]) == ("status", ["delete"], ["pods"], 403)
    assert 50 < left["for_seconds"] <= 60


def test_a_machine_can_run_and_never_register(simulation: Simulation, api: Api, faults: Any) -> None:
    assert simulation.control("POST", "joins", {"machines": 1, "after": None}).json() == {"joins": [None]}
    never = simulation.machine(api, "never", **PLACE)["token"]
    simulation.node(api, "after-it", **PLACE)
    eventually(lambda: simulation.control("GET", f"machines/{never}").json()["state"] == "running")
    time.sleep(0.5)
    assert api.get("/api/v1/nodes/never").status_code == 404
    assert simulation.control("DELETE", f"machines/{never}").status_code == 202
    eventually(lambda: simulation.control("GET", f"machines/{never}").json()["state"] == "terminated")


def test_a_machine_can_register_late_and_not_at_all_once_it_was_ended(simulation: Simulation, api: Api, faults: Any) -> None:
    simulation.control("POST", "joins", {"machines": 2, "after": 3})
    began = time.monotonic()
    late, ended = (simulation.machine(api, name, **PLACE)["token"] for name in ("late", "ended"))
    eventually(lambda: simulation.control("GET", f"machines/{late}").json()["state"] == "running")
    simulation.control("DELETE", f"machines/{ended}")
    assert api.get("/api/v1/nodes/late").status_code == 404
    eventually(lambda: ready(api, "late"), 15)
    assert time.monotonic() - began > 3
    assert api.get("/api/v1/nodes/ended").status_code == 404


def test_a_machine_that_never_registers_does_not_do_so_after_a_restart(tmp_path: Any) -> None:
    own = Simulation(tmp_path).start()
    api = own.cluster()
    own.control("POST", "joins", {"machines": 1, "after": None})
    token = own.machine(api, "never")["token"]
    eventually(lambda: own.control("GET", f"machines/{token}").json()["state"] == "running")
    own.end(9)
    own.start()
    own.node(api, "other")
    assert api.get("/api/v1/nodes/never").status_code == 404
    assert own.end() == 0


def test_a_pool_that_shrinks_below_what_we_hold_owes_the_rest(simulation: Simulation, api: Api, faults: Any) -> None:
    simulation.control("POST", "demand", PLACE | {"machines": 1, "auto": False})
    held = [one for one in simulation.control("GET", "machines").json()["machines"] if one["gpu_type"] == "B200_SXM"]
    before = sum(one["state"] != "terminated" for one in held)
    for number in range(2):
        simulation.machine(api, f"mine-{number}", **PLACE)
    shrunk = simulation.control("POST", "capacity", PLACE | {"machines": 1}).json()
    assert (shrunk["total"], shrunk["free"], shrunk["owed"]) == (1, 0, before + 2)
    refused = {**PLACE, "token": str(uuid.uuid4()), "cluster_id": api.key, "node_name": "x", "compute_class": "standard"}
    assert simulation.control("POST", "machines", refused).status_code == 409
    assert simulation.control("POST", "capacity", PLACE | {"machines": -1}).status_code == 400
    assert simulation.control("POST", "capacity", {**PLACE, "gpu_type": "X", "machines": 1}).status_code == 404
    simulation.control("POST", "clear")
    assert simulation.control("GET", "pools/us-central-2/B200_SXM").json()["total"] == 12


@pytest.mark.parametrize(
    ("total", "ours", "wanted", "held", "free", "owed"),
    [(8, 2, 4, 4, 2, 0), (8, 5, 4, 3, 0, 1), (2, 5, 0, 0, 0, 3), (2, 5, 4, 0, 0, 7), (0, 0, 0, 0, 0, 0)],
)
def test_no_number_of_a_pool_is_ever_negative(total: int, ours: int, wanted: int, held: int, free: int, owed: int) -> None:
    pool = Pool("r", "g", total, ours, wanted)
    assert (pool.held, pool.free, pool.owed) == (held, free, owed)


def test_machines_end_only_when_their_ends_are_not_held_back(simulation: Simulation, api: Api) -> None:
    first, second = (simulation.machine(api, f"gpu-{number}") for number in range(2))
    simulation.control("POST", "ends", {"held": True})
    simulation.control("DELETE", f"machines/{first['token']}")
    time.sleep(2)  # longer than an end takes

    def state(machine: dict[str, Any]) -> str:
        return str(simulation.control("GET", f"machines/{machine['token']}").json()["state"])

    assert state(first) != "terminated"
    simulation.control("POST", "ends", {"held": False})
    simulation.control("DELETE", f"machines/{second['token']}")
    eventually(lambda: {state(first), state(second)} == {"terminated"})
    assert simulation.control("POST", "ends", {"held": "no"}).status_code == 400


def test_clearing_gives_everything_back_as_it_was_started(simulation: Simulation, api: Api) -> None:
    simulation.control("POST", "faults", {"cluster_id": api.key, "kind": "down"})
    simulation.control("POST", "boot", {"seconds": 99})
    simulation.control("POST", "joins", {"machines": 3, "after": 7})
    assert simulation.control("POST", "clear").status_code == 200
    assert simulation.control("GET", "fleet").json() == {"boot_seconds": 0.2, "joins": []}
    assert api.get(CONFIGS).status_code == 200
