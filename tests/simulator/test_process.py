"""The process: what outlives a kill, who is let in, what can be made to go wrong."""

import signal
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.simulator.conftest import Api, Json, Simulation, eventually, pod, ready

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Simulation]:
    """A simulator of this test's own, to be killed."""
    running = Simulation(tmp_path).start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.end()


def test_a_killed_simulator_comes_back_with_its_objects_and_never_an_older_version(own: Simulation) -> None:
    api = own.cluster("kept")
    own.node(api, "gpu-1")
    api.post(PODS, pod("worker"))
    eventually(lambda: api.get(f"{PODS}/worker").json()["status"]["phase"] == "Running")
    version = int(api.post("/api/v1/nodes", {"metadata": {"name": "last"}}).json()["metadata"]["resourceVersion"])
    own.end(signal.SIGKILL)
    own.start()
    uid = api.get(f"{PODS}/worker").json()["metadata"]["uid"]
    assert int(api.get("/api/v1/nodes").json()["metadata"]["resourceVersion"]) >= version
    assert api.get("/api/v1/nodes/last").status_code == 200
    assert ready(api, "gpu-1")
    old = api.watch("/api/v1/nodes", 1, resourceVersion=1)
    assert [(event["type"], event["object"]["code"]) for event in old] == [("ERROR", 410)]
    api.delete(f"{PODS}/worker", {"gracePeriodSeconds": 10})
    eventually(lambda: api.get(f"{PODS}/worker").status_code == 404)
    assert uid


def test_a_kill_in_the_middle_of_a_grace_changes_neither_deadline_nor_end(own: Simulation) -> None:
    api = own.cluster()
    own.node(api, "gpu-1")
    body = pod("worker")
    body["metadata"]["annotations"] = {"simulator.halftide.io/exit-seconds": "4"}
    api.post(PODS, body)
    eventually(lambda: api.get(f"{PODS}/worker").json()["status"]["phase"] == "Running")
    began = time.monotonic()
    deadline = api.delete(f"{PODS}/worker", {"gracePeriodSeconds": 30}).json()["metadata"]["deletionTimestamp"]
    own.end(signal.SIGKILL)
    own.start()
    assert api.get(f"{PODS}/worker").json()["metadata"]["deletionTimestamp"] == deadline
    eventually(lambda: api.get(f"{PODS}/worker").status_code == 404)
    assert time.monotonic() - began > 2.5


def test_a_machine_that_was_booting_at_the_kill_joins_after_it(tmp_path: Path) -> None:
    own = Simulation(tmp_path, HALFTIDE_SIM_BOOT_SECONDS="2").start()
    api = own.cluster()
    token = own.machine(api, "gpu-1")["token"]
    own.end(signal.SIGKILL)
    own.start()
    assert own.control("GET", f"machines/{token}").json()["state"] == "booting"
    eventually(lambda: ready(api, "gpu-1"), 10)
    assert own.control("GET", f"machines/{token}").json()["state"] == "running"
    assert own.end() == 0


def test_what_other_tenants_were_made_to_want_outlives_a_kill_until_all_is_cleared(own: Simulation) -> None:
    pool = {"region": "us-central-2", "gpu_type": "B200_SXM"}
    own.control("POST", "demand", {**pool, "machines": 12})
    own.end(signal.SIGKILL)
    own.start()
    assert own.control("GET", "pools/us-central-2/B200_SXM").json()["free"] == 0
    own.control("POST", "demand", {**pool, "machines": 2, "auto": True})
    own.end(signal.SIGKILL)
    own.start()
    assert own.control("GET", "pools/us-central-2/B200_SXM").json()["free"] == 9


def test_it_ends_quickly_while_watches_are_open(own: Simulation) -> None:
    api = own.cluster()
    lines, follower = follow(api, 60)
    began = time.monotonic()
    assert own.end() == 0
    assert time.monotonic() - began < 5
    follower.join()
    assert "broken" not in lines


def test_secrets_are_for_their_owner_only_and_the_kubeconfig_names_every_cluster(own: Simulation) -> None:
    for name in ("one", "two"):
        own.cluster(name)
    for name in ("control-token", "kubeconfig"):
        assert stat.S_IMODE((own.state / name).stat().st_mode) == 0o600
    body = yaml.safe_load((own.state / "kubeconfig").read_text())
    assert [context["name"] for context in body["contexts"]] == ["one", "two"]
    assert body["clusters"][0]["cluster"]["server"].startswith(f"{own.url}/clusters/")


def test_no_token_is_the_admin_and_a_wrong_one_is_nobody(simulation: Simulation, api: Api) -> None:
    assert api.get("/api/v1/nodes").status_code == 200
    wrong = api.get("/api/v1/nodes", headers={"authorization": "Bearer nope"})
    assert (wrong.status_code, wrong.json()["reason"]) == (401, "Unauthorized")
    made = simulation.control("POST", "clusters", {"id": api.key, "name": "again", "region": "eu-north-1"})
    assert made.status_code == 200
    token = yaml.safe_load(made.json()["kubeconfig"])["users"][0]["user"]["token"]
    assert api.get("/api/v1/nodes", headers={"authorization": f"Bearer {token}"}).status_code == 200
    assert httpx.get(f"{simulation.url}/control/pools").status_code == 401


def fault(simulation: Simulation, api: Api, kind: str, **more: object) -> None:
    answer = simulation.control("POST", "faults", {"cluster_id": api.key, "kind": kind, **more})
    assert answer.status_code == 201, answer.text


def test_an_api_can_be_down_forbidden_or_wanting_a_pause(simulation: Simulation, api: Api) -> None:
    fault(simulation, api, "down", times=1)
    assert api.get("/api/v1/nodes").status_code == 503
    assert api.get("/api/v1/nodes").status_code == 200
    fault(simulation, api, "status", code=403, reason="Forbidden", verbs=["delete"], resources=["pods"])
    assert api.delete(f"{PODS}/x").status_code == 403
    assert api.delete("/api/v1/nodes/x").status_code == 404
    fault(simulation, api, "status", code=429, reason="TooManyRequests", retry_after=5, times=1, verbs=["list"])
    assert api.get("/api/v1/nodes").headers["retry-after"] == "5"
    fault(simulation, api, "garbage", times=1)
    assert b"html" in api.get("/api/v1/nodes").content
    fault(simulation, api, "expired", times=1, verbs=["list"])
    assert api.get("/api/v1/nodes").status_code == 410
    simulation.control("DELETE", f"faults?cluster_id={api.key}")
    assert api.delete(f"{PODS}/x").status_code == 404


def follow(api: Api, seconds: int = 4) -> tuple[list[str], threading.Thread]:
    """The lines of an open watch, as they come."""
    lines: list[str] = []

    def run() -> None:
        try:
            with api.http.stream("GET", f"{api.url}/api/v1/configmaps?watch=1&timeoutSeconds={seconds}") as answer:
                lines.extend(answer.iter_lines())
        except httpx.TransportError:
            lines.append("broken")

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.4)
    return lines, thread


@pytest.mark.parametrize(("kind", "said"), [("expired", '"code":410'), ("garbage", "<html>")])
def test_an_open_watch_can_end_badly(simulation: Simulation, api: Api, kind: str, said: str) -> None:
    """kubernetes-client/python-base#57: a 410 comes inside a stream whose status is 200."""
    lines, thread = follow(api)
    fault(simulation, api, kind, times=1)
    thread.join()
    assert said in lines[-1]


def test_a_watch_can_be_cut_in_the_middle_of_a_line(simulation: Simulation, api: Api) -> None:
    lines, thread = follow(api)
    fault(simulation, api, "cut", times=1)
    api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}})
    thread.join()
    assert lines == ['{"type":"ADDED","obj']


def test_a_silent_watch_says_nothing_until_the_silence_is_over(simulation: Simulation, api: Api) -> None:
    """kubernetes-client/python#1148: no data, no error."""
    fault(simulation, api, "silent")
    lines, thread = follow(api)
    api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}})
    time.sleep(0.5)
    assert lines == []
    simulation.control("DELETE", f"faults?cluster_id={api.key}")
    thread.join()
    assert [line[:15] for line in lines] == ['{"type":"ADDED"']


def test_a_fault_that_makes_no_sense_is_refused(simulation: Simulation, api: Api) -> None:
    answer = simulation.control("POST", "faults", {"cluster_id": api.key, "kind": "plague"})
    assert (answer.status_code, answer.json()["reason"]) == (400, "Invalid")


def test_an_odd_object_does_not_stop_the_controllers(simulation: Simulation, api: Api) -> None:
    budget = {"metadata": {"name": "odd"}, "spec": {"minAvailable": "most%", "selector": {"matchLabels": {"app": "x"}}}}
    api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    simulation.node(api, "gpu-1")
    api.post(PODS, pod("worker", labels={"app": "x"}))
    eventually(lambda: api.get(f"{PODS}/worker").json()["status"]["phase"] == "Running")


def test_who_asked_what_is_remembered_but_not_what_the_machines_ask(simulation: Simulation, api: Api) -> None:
    simulation.node(api, "gpu-1")
    api.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": True}})
    asked: list[Json] = simulation.control("GET", f"requests?cluster_id={api.key}").json()
    last = asked[-1]
    assert (last["verb"], last["path"], last["status"]) == ("patch", "/api/v1/nodes/gpu-1", 200)
    assert not any("lease" in entry["path"] for entry in asked)
    assert simulation.control("GET", f"requests?cluster_id={api.key}&since={last['at']}").json() == []


def test_the_same_token_is_the_same_machine_and_a_full_pool_has_none(simulation: Simulation, api: Api) -> None:
    """kubernetes/autoscaler#687: a launch that is asked for again must not be a second machine."""
    token = str(uuid.uuid4())
    first, again = (simulation.machine(api, "gpu-1", token=token, gpu_type="H200_SXM") for _ in range(2))
    assert first["provider_id"] == again["provider_id"]
    free = simulation.control("GET", "pools/eu-north-1/H200_SXM").json()["free"]
    for number in range(free):
        simulation.machine(api, f"more-{number}", gpu_type="H200_SXM")
    body = {"token": "t", "region": "eu-north-1", "gpu_type": "H200_SXM", "node_name": "x", "compute_class": "preemptible"}
    full = simulation.control("POST", "machines", {**body, "cluster_id": api.key})
    assert (full.status_code, full.json()["reason"]) == (409, "NoCapacity")
    nowhere = simulation.control("POST", "machines", {**body, "cluster_id": "nope"})
    assert (nowhere.status_code, nowhere.json()["reason"]) == (404, "NoCluster")
    assert simulation.control("POST", "machines", {"token": 3}).status_code == 400


def test_what_other_tenants_need_is_owed_and_a_machine_given_back_goes_to_them_first(simulation: Simulation, api: Api) -> None:
    pool = "pools/us-central-2/B200_SXM"
    where = {"region": "us-central-2", "gpu_type": "B200_SXM"}
    tokens = [simulation.machine(api, f"b-{number}", **where)["token"] for number in range(2)]
    before = simulation.control("GET", pool).json()
    assert simulation.control("POST", "demand", {**where, "machines": 11}).json()["owed"] == 1
    after = simulation.control("GET", f"pools?wait={before['version']}&timeout=5").json()
    assert after["version"] > before["version"]
    simulation.control("DELETE", f"machines/{tokens[0]}")
    eventually(lambda: simulation.control("GET", pool).json()["owed"] == 0)
    assert simulation.control("GET", pool).json()["free"] == 0
    assert simulation.control("DELETE", f"machines/{tokens[0]}").status_code == 202
    simulation.control("POST", "demand", {**where, "machines": 3})
    assert simulation.control("GET", pool).json()["free"] == 8


def test_a_long_poll_ends_when_something_changes_and_not_before(own: Simulation) -> None:
    api = own.cluster()
    version = own.control("GET", "pools").json()["version"]
    began = time.monotonic()
    later = threading.Timer(0.7, lambda: own.machine(api, "gpu-7"))
    later.start()
    assert own.control("GET", f"pools?wait={version}&timeout=8").json()["version"] > version
    assert 0.5 < time.monotonic() - began < 7
    later.join()
