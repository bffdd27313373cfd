"""What was promised of preemptions, against everything that can be seen of them; what is not so is put into words."""

from collections import Counter

from tests.flows.preemption import STEP, WAITING, PodKey, Rows, Scene, until


def judge(scene: Scene) -> None:
    """At the end, once everything has come to rest."""
    drains = scene.rows("SELECT * FROM capacity_drain WHERE started_at >= %s", scene.began)
    expect(scene, "drains", sorted(drain["node_uid"] for drain in drains), sorted(scene.taken))
    expect(scene, "states of drains", {drain["state"] for drain in drains}, {"removed"})
    assert until(60, scene.collected), "the simulator does not answer"
    expect(scene, "pods that nobody told", scene.pods - scene.told - scene.excused - (scene.unlogged & _noted(scene)), set())
    adds_up_while_waiting(scene)
    _judge_machines(scene)
    _judge_ledger(scene, drains)
    until(30, lambda: not _events_that_are_not(scene), 0.5)
    scene.wrong += _events_that_are_not(scene)


def _noted(scene: Scene) -> set[PodKey]:
    """Pods whose telling has its row: that is all there is of it where the simulator's log died with the simulator."""
    query = (
        "SELECT d.cluster_id, v.namespace, v.name FROM capacity_podverdict v JOIN capacity_drain d ON d.id = v.drain_id"
        " WHERE v.told_at IS NOT NULL"
    )
    return {(str(row["cluster_id"]), row["namespace"], row["name"]) for row in scene.rows(query)}


def adds_up_while_waiting(scene: Scene) -> None:
    """Desired is what is there, what comes, and what is waited for."""
    query = (
        "SELECT c.desired_preemptible_gpus AS desired, c.allocated_preemptible_gpus AS allocated, w.preemptible AS waiting,"
        " (SELECT count(*) FROM clusters_machine m WHERE m.cluster_id = c.id AND m.compute_class = 'preemptible'"
        "  AND m.state IN ('asked', 'booting')) AS coming"
        " FROM clusters_cluster c JOIN capacity_wait w ON w.cluster_id = c.id WHERE c.name = %s"
    )
    for row in scene.rows(query, WAITING):
        found = row["allocated"] + STEP * (row["waiting"] + row["coming"])
        expect(scene, f"the difference of {WAITING}", found, row["desired"])


def expect(scene: Scene, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        scene.wrong.append(f"{what}: {found}, not {wanted}")


def needed(scene: Scene) -> Counter[str]:
    """Launches by cluster: one for each node that went, and one for each machine that came back to the scarce pool."""
    return Counter(one.cluster for one in scene.taken.values()) + Counter({scene.clusters[WAITING]: scene.returned})


def _judge_machines(scene: Scene) -> None:
    """As many were launched as were needed, once, and all that the provider has are known."""
    new = {token: one for token, one in scene.machines().items() if token not in scene.tokens}
    expect(scene, "launches", Counter(one["cluster_id"] for one in new.values()), needed(scene))
    held = Counter(one["cluster_id"] for one in scene.machines().values() if _held(one))
    wanted = {scene.clusters[name]: machines for name, machines in scene.wanted.items()}
    expect(scene, "machines held", {cluster: held[cluster] for cluster in wanted}, wanted)
    known = {str(row["id"]) for row in scene.rows("SELECT id FROM clusters_machine")}
    expect(scene, "machines that nobody lists", set(new) - known, set())
    alive = scene.rows(
        "SELECT cluster_id, count(*) AS machines FROM clusters_machine WHERE compute_class = 'preemptible'"
        " AND state IN ('asked', 'booting', 'joined', 'leaving') AND cluster_id = ANY(%s::uuid[]) GROUP BY cluster_id",
        list(wanted),
    )
    expect(scene, "rows of machines", {str(row["cluster_id"]): row["machines"] for row in alive}, wanted)


def _held(machine: dict[str, object]) -> bool:
    return machine["compute_class"] == "preemptible" and machine["state"] != "terminated"


def _judge_ledger(scene: Scene, drains: Rows) -> None:
    """Own entries, once each, since the first preemption."""
    entries = scene.rows(
        "SELECT * FROM timeline_entry WHERE stream_id = ANY(%s::uuid[]) AND recorded_at >= %s",
        list(scene.clusters.values()),
        scene.began,
    )
    announced = Counter(entry["drain_id"] for entry in entries if entry["reason"] == "TogetherPreempted")
    expect(scene, "announcements", announced, Counter(drain["id"] for drain in drains))
    ends = Counter(entry["subject_uid"] for entry in entries if entry["reason"] in ("DrainFinished", "DrainTimedOut"))
    expect(scene, "ends of drains", ends, Counter(list(scene.taken)))
    launches = needed(scene).total()
    launched = sum(entry["data"]["machines"] for entry in entries if entry["reason"] == "LaunchAsked")
    expect(scene, "launches in the ledger", launched, launches)
    came = Counter(entry["subject_uid"] for entry in entries if entry["reason"] == "TogetherScaledUp")
    expect(scene, "nodes that came, in the ledger", (len(came), came.total()), (launches, launches))
    waits = [entry for entry in entries if entry["reason"] in ("WaitingForCapacity", "CapacityReturned")]
    expect(scene, "new lines about waiting", len(waits), 0)


def _events_that_are_not(scene: Scene) -> list[str]:
    """Kubernetes' Events about nodes against the rows that carry their uid; our own, against the one preemption each."""
    wrong = []
    for cluster in scene.clusters.values():
        events = [event for event in scene.items(cluster, "events") if event["involvedObject"]["kind"] == "Node"]
        rows = scene.rows("SELECT source_uid FROM timeline_entry WHERE stream_id = %s", cluster)
        kept = Counter(row["source_uid"] for row in rows)
        wrong += [
            f"{event['reason']} of {event['involvedObject']['name']}: {times} rows"
            for event in events
            if (times := kept[event["metadata"]["uid"]]) != 1
        ]
        ours = Counter(event["involvedObject"]["uid"] for event in events if event["reason"] == "TogetherPreempted")
        expected = Counter(one.uid for one in scene.taken.values() if one.cluster == cluster)
        wrong += [f"{uid}: {ours[uid]} Events, not {expected[uid]}" for uid in ours | expected if ours[uid] != expected[uid]]
    return wrong
