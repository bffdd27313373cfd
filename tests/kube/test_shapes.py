"""From hostile or ordinary JSON to shapes: what is read, what is left empty, and that nothing crashes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.kube import marks
from console.kube.errors import Garbage
from console.kube.fields import clean, parse_instant
from console.kube.parse import shape
from console.kube.shapes import BudgetShape, EventShape, Kind, LeaseShape, NodeShape, PodShape, Requirement, Taint
from tests.kube.objects import node

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KINDS: tuple[Kind, ...] = ("nodes", "pods", "events", "poddisruptionbudgets", "leases", "namespaces")

META = {"name": "n", "namespace": "team", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-11-30T11:00:00Z"}


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{clock}+00:00")


def a_node(**status: object) -> NodeShape:
    raw = node()
    made = shape("nodes", raw | {"status": raw["status"] | status}, NOW)  # type: ignore[operator]
    assert isinstance(made, NodeShape)
    return made


def a_pod(meta: dict[str, object] | None = None, spec: object = None, status: object = None) -> PodShape:
    made = shape("pods", {"metadata": META | (meta or {}), "spec": spec, "status": status}, NOW)
    assert isinstance(made, PodShape)
    return made


def an_event(**fields: object) -> EventShape:
    made = shape("events", {"metadata": META} | fields, NOW)
    assert isinstance(made, EventShape)
    return made


def ended(code: int, clock: str) -> dict[str, object]:
    return {"state": {"terminated": {"exitCode": code, "finishedAt": f"2026-11-30T{clock}Z"}}}


def test_a_node_gives_what_a_console_needs() -> None:
    raw = node(labels={"a": "b", "odd": 5}, finalizers=["x", None])
    raw["spec"] = {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}, "text"]}
    made = shape("nodes", raw, NOW)
    assert isinstance(made, NodeShape)
    assert (made.name, made.uid, made.gpus, made.ready, made.kubelet_version) == ("gpu-dp-1", "uid-gpu-dp-1", 8, True, "v1.36.3")
    assert (made.internal_ip, made.unschedulable, made.labels, made.finalizers) == ("127.1.0.1", True, {"a": "b"}, ("x",))
    assert made.taints == (Taint("k", "", "NoSchedule"),)
    assert (made.created_at, made.ready_since) == (at("10:00:00"), at("10:01:00"))


@pytest.mark.parametrize(("told", "ready"), [("True", True), ("False", False), ("Unknown", None), ("perhaps", None)])
def test_unknown_readiness_is_neither_ready_nor_not(told: str, ready: bool | None) -> None:
    assert a_node(conditions=[{"type": "Ready", "status": told}]).ready is ready
    assert a_node(conditions=[]).ready is None


@pytest.mark.parametrize(
    ("told", "gpus"),
    [("8", 8), (8, 8), ("1k", 1000), ("0", 0), ("8.5", 0), ("-8", 0), ("many", 0), (None, 0), ([], 0), ("9" * 30, 0)],
)
def test_gpus_are_a_whole_number_or_none(told: object, gpus: int) -> None:
    assert a_node(allocatable={marks.GPU_RESOURCE: told}).gpus == gpus


def test_a_pods_owner_is_the_controlling_one() -> None:
    owners = [{"kind": "Workflow", "name": "w"}, {"kind": "DaemonSet", "name": "agent", "controller": True}]
    made = a_pod({"ownerReferences": owners})
    assert (made.owner_kind, made.owner_name, made.daemonset) == ("DaemonSet", "agent", True)
    bare = a_pod({"ownerReferences": owners[:1]})
    assert (bare.owner_kind, bare.daemonset) == ("", False)
    assert a_pod({"annotations": {"kubernetes.io/config.mirror": "x"}}).mirror


def test_a_pods_grace_is_its_own_or_kubernetes_default() -> None:
    assert a_pod(spec={"terminationGracePeriodSeconds": 3600}).grace_seconds == 3600
    assert a_pod(spec={"terminationGracePeriodSeconds": 0}).grace_seconds == 0
    assert a_pod().grace_seconds == 30
    going = a_pod({"deletionTimestamp": "2026-11-30T12:00:20Z", "deletionGracePeriodSeconds": 20})
    assert (going.deletion_at, going.deletion_grace) == (at("12:00:20"), 20)


def test_a_pods_exit_code_is_that_of_the_first_container_to_fail() -> None:
    status = {"phase": "Failed", "containerStatuses": [ended(143, "11:00:09"), ended(3, "11:00:05"), ended(0, "11:00:01")]}
    made = a_pod(status=status)
    assert (made.finished, made.exit_code, made.ended_at) == (True, 3, at("11:00:09"))
    fine = a_pod(status={"phase": "Succeeded", "containerStatuses": [ended(0, "11:00:09"), ended(0, "11:00:05")]})
    assert (fine.exit_code, fine.ended_at) == (0, at("11:00:09"))
    running = a_pod(status={"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]})
    assert (running.finished, running.exit_code, running.ended_at) == (False, None, None)


def test_a_pods_gpus_are_those_of_its_containers_together() -> None:
    def needs(count: object) -> dict[str, object]:
        return {"resources": {"limits": {marks.GPU_RESOURCE: count}}}

    assert a_pod(spec={"containers": [needs("4"), needs("2"), {}]}).gpus == 6
    assert a_pod(spec={"containers": [needs("1")], "initContainers": [needs("8")]}).gpus == 8
    assert a_pod(spec={"nodeSelector": {marks.CLASS_LABEL: "preemptible"}}).prefers == {marks.CLASS_LABEL: "preemptible"}


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("2026-11-30T11:30:00Z", at("11:30:00")),
        ("2026-11-30T12:30:00+01:00", at("11:30:00")),
        ("2026-11-30T11:30:00", None),
        ("yesterday", None),
        ("", None),
        ("1970-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:00", None),
    ],
)
def test_a_tenants_checkpoint_is_a_time_with_a_zone_or_nothing(told: str, read: datetime | None) -> None:
    assert a_pod({"annotations": {marks.LAST_CHECKPOINT: told}}).last_checkpoint == read


def test_an_events_time_is_the_first_of_four_that_says_something_and_never_1970() -> None:
    times = {
        "eventTime": "2026-11-30T11:10:00.5Z",
        "series": {"count": 30, "lastObservedTime": "2026-11-30T11:20:00Z"},
        "lastTimestamp": "2026-11-30T11:15:00Z",
    }
    event = an_event(**times)
    assert (event.at, event.last_at, event.count) == (at("11:10:00.500000"), at("11:20:00"), 30)
    assert an_event(**times | {"eventTime": None}).at == at("11:20:00")
    assert an_event(lastTimestamp=times["lastTimestamp"], count=4).at == at("11:15:00")
    assert an_event(eventTime="1970-01-01T00:00:00Z", lastTimestamp=None).at == at("11:00:00")
    assert an_event(metadata={"name": "n", "uid": "u"}).at == NOW


def test_an_event_from_the_future_is_marked_and_keeps_its_time() -> None:
    assert an_event(eventTime="2026-11-30T13:00:00Z").from_future
    assert an_event(eventTime="2026-11-30T13:00:00Z").at == at("13:00:00")
    assert not an_event(eventTime="2026-11-30T12:00:04Z").from_future


def test_an_event_names_whom_it_is_about_and_who_says_so() -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "team", "uid": "pu"}
    event = an_event(involvedObject=involved, source={"component": "kubelet"}, type="Warning", reason="OOM", message="x" * 9000)
    assert (event.involved_kind, event.involved_name, event.involved_namespace, event.involved_uid) == ("Pod", "p", "team", "pu")
    assert (event.reporting_component, event.type) == ("kubelet", "Warning")
    assert len(event.message) == 4096
    assert event.message.endswith("…")
    assert an_event(type="Fatal", reportingComponent="halftide").type == "Normal"


def test_a_budget_and_a_lease_are_read() -> None:
    raw = {
        "metadata": META,
        "spec": {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}},
        "status": {"disruptionsAllowed": 2},
    }
    budget = shape("poddisruptionbudgets", raw, NOW)
    assert isinstance(budget, BudgetShape)
    assert (budget.match_labels, budget.match_expressions) == ({"a": "b"}, (Requirement("k", "In", ("v",)),))
    assert budget.disruptions_allowed == 2
    lease = shape("leases", {"metadata": META, "spec": {"renewTime": "2026-11-30T11:59:50.123456Z"}}, NOW)
    assert isinstance(lease, LeaseShape)
    assert lease.renew_time == at("11:59:50.123456")


def test_text_that_a_database_refuses_is_made_visible() -> None:
    assert clean("a\x00b\ud800c") == "a␀b�c"
    assert clean("x" * 300) == "x" * 252 + "…"
    assert clean("plain é ✓") == "plain é ✓"


@pytest.mark.parametrize("raw", [None, "text", [], {}, {"metadata": []}, {"metadata": {"name": "n"}}, {"metadata": {"uid": "u"}}])
@pytest.mark.parametrize("kind", KINDS)
def test_an_object_without_identity_is_garbage(kind: Kind, raw: object) -> None:
    with pytest.raises(Garbage):
        shape(kind, raw, NOW)


FIELDS = """
metadata spec status name uid labels annotations taints conditions type allocatable count nvidia.com/gpu series eventTime
containers containerStatuses state terminated exitCode finishedAt terminationGracePeriodSeconds ownerReferences selector
matchLabels matchExpressions values addresses
"""
KEYS = st.sampled_from(FIELDS.split())
# Lone surrogates too: they come out of JSON, and neither UTF-8 nor PostgreSQL takes them.
ANY_TEXT = st.text(st.characters(exclude_categories=()))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.just("2026-11-30T11:00:00Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | ANY_TEXT, inner, max_size=5),
    max_leaves=12,
)


def texts_in(value: object) -> Iterator[str]:
    """Every text in a shape, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | tuple | list):
        for inner in (*value.items(),) if isinstance(value, dict) else value:
            yield from texts_in(inner)


@given(kind=st.sampled_from(KINDS), spec=ANYTHING, status=ANYTHING, rest=st.dictionaries(KEYS, ANYTHING, max_size=4))
def test_no_object_with_an_identity_stops_the_reading(kind: Kind, spec: object, status: object, rest: dict[str, object]) -> None:
    made = shape(kind, {"spec": spec, "status": status} | rest | {"metadata": META | {"labels": spec}}, NOW)
    assert made.uid == "u"
    for text in texts_in(astuple(made)):
        assert "\x00" not in text
        text.encode()


@given(ANY_TEXT)
def test_any_text_is_a_utc_time_or_none(text: str) -> None:
    read = parse_instant(text)
    assert read is None or read.tzinfo is UTC
