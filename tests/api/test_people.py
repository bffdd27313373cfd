"""Who asks, and which projects they have."""

import pytest
from django.test import Client

from console.accounts.models import Project
from tests.api.world import Api, World, error


def test_a_key_is_told_its_project(operator: Api, world: World) -> None:
    found = operator.get("/v3/whoami").json()
    assert found["type"] == "project_api_key"
    assert found["project"] == {"id": str(world.aurora.pk), "name": "Aurora Labs", "slug": "aurora"}
    assert set(found["organization"]) == {"id", "name"}
    assert found["api_key"]["id"] not in world.keys.values()


def test_a_person_is_told_their_id(world: World) -> None:
    client = Client()
    client.force_login(world.people["vic"])
    assert Api(client).get("/v3/whoami").json() == {"type": "user_jwt", "user": {"id": str(world.people["vic"].pk)}}


def test_projects_are_paged_to_the_last(world: World) -> None:
    client = Client()
    client.force_login(world.people["ada"])
    for number in range(3):
        Project.objects.create(name=f"More {number}", slug=f"more-{number}")
    seen, after = [], ""
    while True:
        page = Api(client).get(f"/v1/projects?limit=2{after}").json()
        seen += [project["slug"] for project in page["data"]]
        if page["next_cursor"] is None:
            break
        after = f"&after={page['next_cursor']}"
    assert seen == ["aurora", "borealis", "more-0", "more-1", "more-2"]


def test_a_key_lists_its_own_project_only(api: object) -> None:
    assert [one["slug"] for one in api("admin").get("/v1/projects").json()["data"]] == ["aurora"]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=", "after=%00", "after=" + "x" * 201])
def test_a_page_that_cannot_be_is_refused(operator: Api, query: str) -> None:
    assert error(operator.get(f"/v1/projects?{query}"), 422)["param"] == query.split("=")[0]
