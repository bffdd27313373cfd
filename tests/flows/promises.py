"""What was promised of a preemption, against everything that can be seen of it; what is not so is put into words."""

from collections import Counter
from datetime import timedelta

from tests.flows.conftest import cluster_row
from tests.flows.preemption import STEP, Preemption, Rows, until

ALLOWANCE = timedelta(seconds=15)  # beyond the deadline (DESIGN 16, guarantee 2)


def judge(scene: Preemption, allowance: timedelta) -> None:
    """At the end, once the clusters are full again."""
    drains = scene.drains()
    expect(scene, "drains", sorted(drain["node_uid"] for drain in drains), sorted(scene.uids))
    expect(scene, "states of drains", {drain["state"] for drain in drains}, {"removed"})
    last = max((drain["deadline"] for drain in drains), default=scene.began)
    if scene.gone_at is None or scene.gone_at > last + allowance:
        scene.wrong.append(f"gone at {scene.gone_at}, deadline {last}")
    scene.collect()
    expect(scene, "pods that nobody told", scene.pods - scene.told, set())
    _judge_machines(scene)
    _judge_ledger(scene, drains)
    until(30, lambda: not _events_that_are_not(scene), 0.5)
    scene.wrong += _events_that_are_not(scene)


def adds_up_while_waiting(scene: Preemption) -> None:
    """Desired is what is there, what comes, and what is waited for."""
    query = (
        "SELECT c.desired_preemptible_gpus AS desired, c.allocated_preemptible_gpus AS allocated, w.preemptible AS waiting,"
        " (SELECT count(*) FROM clusters_machine m WHERE m.cluster_id = c.id AND m.compute_class = 'preemptible'"
        "  AND m.state IN ('asked', 'booting')) AS coming"
        " FROM clusters_cluster c JOIN capacity_wait w ON w.cluster_id = c.id WHERE c.name = %s"
    )
    for name in scene.targets:
        for row in scene.rows(query, name):
            found = row["allocated"] + STEP * (row["waiting"] + row["coming"])
            expect(scene, f"the difference of {name}", found, row["desired"])


def expect(scene: Preemption, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        scene.wrong.append(f"{what}: {found}, not {wanted}")


def _judge_machines(scene: Preemption) -> None:
    """As many were launched as were needed, once, and all that the provider has are known."""
    new = {token: one for token, one in scene.machines().items() if token not in scene.tokens}
    asked = Counter({scene.clusters[name]: machines for name, machines in scene.targets.items()})
    expect(scene, "launches", Counter(one["cluster_id"] for one in new.values()), asked)
    expect(scene, "states of launched machines", {one["state"] for one in new.values()}, {"running"})
    known = {str(row["id"]) for row in scene.rows("SELECT id FROM clusters_machine")}
    expect(scene, "machines that nobody lists", set(new) - known, set())
    for name, machines in scene.targets.items():
        row = cluster_row(scene.here, name)
        alive = scene.rows(
            "SELECT 1 FROM clusters_machine WHERE cluster_id = %s AND compute_class = 'preemptible'"
            " AND state IN ('asked', 'booting', 'joined', 'leaving')",
            row["id"],
        )
        expect(scene, f"rows of machines of {name}", len(alive), machines)
        expect(scene, f"GPUs of {name}", row["allocated_preemptible_gpus"], row["desired_preemptible_gpus"])


def _judge_ledger(scene: Preemption, drains: Rows) -> None:
    """Own entries, once each, since this preemption began."""
    entries = scene.rows(
        "SELECT * FROM timeline_entry WHERE stream_id = ANY(%s::uuid[]) AND recorded_at >= %s",
        list(scene.clusters.values()),
        scene.began,
    )
    count = Counter(entry["reason"] for entry in entries)
    announced = Counter(entry["drain_id"] for entry in entries if entry["reason"] == "TogetherPreempted")
    expect(scene, "announcements", announced, Counter(drain["id"] for drain in drains))
    ends = Counter(entry["subject_uid"] for entry in entries if entry["reason"] in ("DrainFinished", "DrainTimedOut"))
    expect(scene, "ends of drains", ends, Counter(scene.uids))
    launched = sum(entry["data"]["machines"] for entry in entries if entry["reason"] == "LaunchAsked")
    expect(scene, "launches in the ledger", launched, scene.number)
    expect(scene, "nodes that came, in the ledger", count["TogetherScaledUp"], scene.number)
    expect(scene, "lines about waiting", count["WaitingForCapacity"], len(scene.targets))
    expect(scene, "lines about capacity's return", count["CapacityReturned"], len(scene.targets))


def _events_that_are_not(scene: Preemption) -> list[str]:
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
        ours = Counter(event["involvedObject"]["name"] for event in events if event["reason"] == "TogetherPreempted")
        nodes = [one["node_name"] for one in scene.taken.values() if one["cluster_id"] == cluster]
        wrong += [f"{name}: {ours[name]} Events, not one" for name in nodes if ours[name] != 1]
    return wrong
