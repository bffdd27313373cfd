"""The ledger of a cluster's nodes, page by page."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.api.world import Api, World, error, tell


@pytest.fixture
def events(path: str) -> str:
    return f"{path}/node_lifecycle_events"


def names(page: dict[str, list[dict[str, str]]]) -> list[str]:
    return [event["node_id"] for event in page["node_lifecycle_events"]]


def test_pages_are_whole_while_new_rows_arrive(operator: Api, world: World, events: str) -> None:
    """Rows of one instant too: the place of a row is its time and its number."""
    noon = timezone.now() - timedelta(days=80)  # far beyond the three days of the cluster's own answer
    for number in range(7):
        tell(world.train, "NodeNotReady", f"n{number}", noon)
    seen, after = [], ""
    while True:
        page = operator.get(f"{events}?limit=3{after}").json()
        seen += names(page)
        tell(world.train, "NodeNotReady", "newer", timezone.now())
        if page["next_cursor"] is None:
            break
        after = f"&after={page['next_cursor']}"
    assert seen == ["n6", "n5", "n4", "n3", "n2", "n1", "n0"]


def test_a_reason_and_a_node_can_be_picked(operator: Api, world: World, events: str) -> None:
    tell(world.train, "NodeNotReady", "n1")
    tell(world.train, "TogetherPreempted", "n1")
    tell(world.train, "TogetherPreempted", "n2")
    tell(world.train, "TargetChanged", "aurora-train", kind="Cluster")
    assert names(operator.get(f"{events}?reason=TogetherPreempted").json()) == ["n2", "n1"]
    assert names(operator.get(f"{events}?reason=TogetherPreempted&node=n1").json()) == ["n1"]
    assert names(operator.get(f"{events}?node=nobody").json()) == []
    assert len(names(operator.get(events).json())) == 3


def test_an_event_says_who_how_often_and_how_bad(operator: Api, world: World, events: str) -> None:
    tell(world.train, "NodeNotReady", "n1")
    (event,) = operator.get(events).json()["node_lifecycle_events"]
    assert set(event) == {"id", "node_id", "reason", "message", "timestamp", "severity", "count", "actor"}
    assert (event["severity"], event["count"], event["actor"]) == ("info", 1, "Halftide")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("after=abc", "after"),
        ("after=MjAyNi0xMS0xMiAxMg==", "after"),
        ("after=MjAyNi0xMS0xMlQxMjowMDowMCAx", "after"),  # a time without a zone
        ("after=%20", "after"),
        ("limit=1000", "limit"),
        ("reason=%00", "reason"),
        ("reason=" + "x" * 300, "reason"),
        ("node=a%20b", "node"),
    ],
)
def test_what_no_page_could_be_is_refused(operator: Api, events: str, query: str, param: str) -> None:
    response = operator.get(f"{events}?{query}")
    assert error(response, response.status_code)["param"] == param
    assert response.status_code in {400, 422}
