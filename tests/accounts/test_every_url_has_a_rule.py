"""Every URL of the console × every role and none. It reads the resolver, so a new URL is in it the moment it is mounted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

from console.accounts import rules
from console.accounts.access import FLEET, PUBLIC, SIGNED_IN
from console.accounts.models import Grant, Project, Role, User
from console.accounts.services import create_key
from console.capacity.models import Pool
from console.clusters.models import Cluster, GpuType, Rate, Region
from console.http import API_PREFIXES
from console.timeline.models import Stream

NOW = datetime(2026, 11, 1, 9, tzinfo=UTC)
OURS, THEIRS, NOBODYS = uuid4(), uuid4(), uuid4()
SAMPLES = {"int": "1", "str": "sample", "slug": "sample", "path": "sample"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
EXPRESSIONS = {"^(?:v1|v3|api)/": "v1/nowhere"}  # what an address may look like that only an expression describes
CHANGING = METHODS[1:]
REFUSALS = {400, 401, 403, 404, 405, 409, 412, 415, 422}
ROLES: dict[str, dict[str, Any] | None] = {
    "nobody": None,
    "no role": {},
    "viewer": {"role": Role.VIEWER},
    "operator": {"role": Role.OPERATOR},
    "admin": {"role": Role.ADMIN},
    "fleet operator": {"role": Role.VIEWER, "fleet_operator": True},
}


@dataclass(frozen=True)
class Url:
    """One pattern of the resolver. Its rule is asked for as the middleware asks."""

    route: str
    view: Any
    name: str

    @property
    def rule(self) -> str | None:
        return rules.rule_of(self.view) or rules.BY_NAME.get(self.name)

    @property
    def api(self) -> bool:
        return f"/{self.route}".startswith(API_PREFIXES)

    def path(self, cluster: UUID) -> str:
        def sample(found: re.Match[str]) -> str:
            kind, name = found.group(1) or "str", found.group(2)
            if name in ("cluster_id", "cluster"):
                return str(cluster)
            return str(NOBODYS) if kind in ("uuid", "uuidstr") else SAMPLES[kind]

        return "/" + re.sub(r"<(?:(\w+):)?(\w+)>", sample, self.route)


def walk(patterns: list[URLPattern | URLResolver], before: str = "", space: str = "") -> Iterator[Url]:
    for pattern in patterns:
        said = str(pattern.pattern)
        if not isinstance(pattern.pattern, RoutePattern):
            assert said in EXPRESSIONS, f"say here what the expression {said} may look like"
        route = before + EXPRESSIONS.get(said, said)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, route, f"{space}{pattern.namespace}:" if pattern.namespace else space)
        else:
            yield Url(route, pattern.callback, f"{space}{pattern.name or ''}")


URLS = list(walk(get_resolver("console.urls").url_patterns))
CLOSED = [url for url in URLS if url.rule != PUBLIC]


def each(urls: list[Url]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("url", urls, ids=lambda url: f"/{url.route}")


every_url = each(URLS)
closed_url = each(CLOSED)
closed_page = each([url for url in CLOSED if not url.api])
closed_api = each([url for url in CLOSED if url.api])
of_a_cluster = each([url for url in CLOSED if url.path(OURS) != url.path(THEIRS)])
api_of_a_cluster = each([url for url in CLOSED if url.api and url.path(OURS) != url.path(THEIRS)])


@pytest.fixture
def world(db, settings) -> Project:
    """Two projects with a cluster each; everybody here belongs to the first."""
    settings.PUBLIC_HOST = "testserver"
    region = Region.objects.create(name="eu-north-1", title="Stockholm")
    gpu = GpuType.objects.create(name="H100_SXM", gpus_per_node=8)
    Rate.objects.create(gpu_type=gpu, on_demand="3.99", effective_from=NOW)
    pool = Pool.objects.create(region=region, gpu_type=gpu)
    Stream.objects.create(id=pool.pk, kind=Stream.Kind.POOL)
    projects = []
    for name, cluster in (("aurora", OURS), ("borealis", THEIRS)):
        project = Project.objects.create(name=name, slug=name)
        Stream.objects.create(id=cluster, kind=Stream.Kind.CLUSTER)
        Cluster.objects.create(
            id=cluster,
            project=project,
            name=f"{name}-train",
            region=region,
            gpu_type=gpu,
            created_at=NOW,
            desired_standard_gpus=8,
        )
        projects.append(project)
    return projects[0]


def somebody(role: str, project: Project) -> User | None:
    given = ROLES[role]
    if given is None:
        return None
    user = User.objects.create(username="kim")
    if given:
        Grant.objects.create(user=user, project=project, source="person", origin="ada", granted_at=NOW, **given)
    return user


def ask(method: str, url: Url, user: User | None, cluster: UUID = OURS) -> int:
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser.generic(method, url.path(cluster), headers={"Accept": "application/json"}).status_code


def key_of(owner: User, project: Project) -> str:
    return create_key(None, project, owner, "ci", Role.ADMIN, NOW)[1]


def ask_with(key: str, method: str, url: Url, body: bytes, cluster: UUID = OURS) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return Client().generic(method, url.path(cluster), body, "application/json", headers=headers).status_code


def test_the_walk_sees_the_console():
    assert {"", "sign-in/", "v1/compute/clusters"} <= {url.route.rstrip("/") if url.api else url.route for url in URLS}


@every_url
def test_it_has_a_rule(url):
    assert url.rule in (PUBLIC, SIGNED_IN, FLEET), f"/{url.route} says for nobody whom it is for"


@closed_url
def test_nobody_gets_in_without_signing_in(url, world):
    assert {method: ask(method, url, None) for method in METHODS} == dict.fromkeys(METHODS, 401)


@closed_page
def test_a_page_sends_nobody_to_sign_in(url, world):
    answer = Client().get(url.path(OURS))
    assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (302, django_settings.LOGIN_URL)


@closed_url
def test_a_person_without_any_role_gets_nothing(url, world):
    user = somebody("no role", world)
    assert {ask(method, url, user) for method in METHODS} <= {401, 403}


@every_url
@pytest.mark.parametrize("role", ["viewer", "operator", "admin", "fleet operator"])
def test_it_answers_each_role_by_its_rule(role, url, world):
    status = ask("GET", url, somebody(role, world))
    if url.rule == FLEET and role != "fleet operator":
        assert status == 403
    else:
        assert status < 500
        assert status != 401


@closed_url
def test_a_viewer_changes_nothing(url, world):
    viewer = somebody("viewer", world)
    assert {ask(method, url, viewer) for method in CHANGING} <= REFUSALS


@of_a_cluster
def test_the_administrator_of_one_project_finds_nothing_of_another(url, world):
    """Fleet operators' addresses are refused before the cluster is looked for."""
    admin = somebody("admin", world)
    assert {ask(method, url, admin, THEIRS) for method in METHODS} <= {401, 404, 405, *([403] if url.rule == FLEET else [])}


@api_of_a_cluster
def test_an_administrators_key_finds_nothing_of_another_project(url, world):
    key = key_of(somebody("admin", world), world)
    assert {ask_with(key, method, url, b"{}", THEIRS) for method in METHODS} <= {404, 405}


@closed_api
def test_a_viewers_key_changes_nothing(url, world):
    key = key_of(somebody("viewer", world), world)
    bodies = (b"{}", b'{"num_preemptible_gpus": 8}')
    assert {ask_with(key, method, url, body) for method in CHANGING for body in bodies} <= REFUSALS
