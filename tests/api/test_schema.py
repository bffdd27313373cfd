"""Schemathesis: the OpenAPI document keeps its word for made-up requests, good and bad, on the real database."""

from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi import checks

from console.accounts.models import User
from console.accounts.services import actor_for_key
from console.capacity.services import reclaim
from console.clusters.models import ComputeClass
from console.scripts.kinds import NODE_INIT
from console.scripts.services import save
from tests.api.world import World, new_node, tell

load_all_checks()
PROMISES = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
ONE = "/v1/compute/clusters/{cluster_id}"
OPERATIONS = [
    ("GET", "/v1/compute/clusters"),
    ("POST", "/v1/compute/clusters"),
    ("GET", ONE),
    ("PUT", ONE),
    ("GET", f"{ONE}/node_lifecycle_events"),
    ("POST", f"{ONE}/reclaims"),
    ("GET", f"{ONE}/reclaims/{{reclaim_id}}"),
    ("GET", f"{ONE}/reclaims/{{reclaim_id}}/report"),
    ("GET", f"{ONE}/drains"),
    ("GET", f"{ONE}/drains/{{drain_id}}"),
    ("GET", f"{ONE}/drains/preview"),
    ("GET", f"{ONE}/startup_scripts"),
    ("GET", f"{ONE}/startup_scripts/{{kind}}"),
    ("PUT", f"{ONE}/startup_scripts/{{kind}}"),
    ("GET", f"{ONE}/startup_scripts/{{kind}}/versions"),
    ("GET", f"{ONE}/startup_scripts/{{kind}}/versions/{{version}}"),
    ("GET", f"{ONE}/workloads"),
    ("GET", "/v1/compute/regions"),
    ("GET", "/v1/projects"),
    ("GET", "/v3/whoami"),
]


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """A request closes connections as it ends; here it shares the test's, whose transaction is rolled back at the end."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def ids(world: World) -> dict[str, str]:
    """Of things that are there: a drill with one drain, a script with one version."""
    User.objects.filter(username="ada").update(fleet_operator=True)
    new_node(world.train, "gpu-preemptible-dp-1", ComputeClass.PREEMPTIBLE)
    ada = actor_for_key(world.keys["admin"], None, timezone.now())
    drill = reclaim(ada, world.train, 8, drill=True)
    save(ada, world.train, NODE_INIT, "#!/bin/bash\n")
    drain = drill.drains.get()
    known = {"cluster_id": world.train.pk, "reclaim_id": drill.pk, "drain_id": drain.pk, "kind": NODE_INIT.name, "version": 1}
    return {name: str(value) for name, value in known.items()}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_the_document_keeps_its_word(world: World, mode: GenerationMode, method: str, path: str) -> None:
    new_node(world.train, "gpu-dp-1")
    tell(world.train, "TogetherScaledUp", "gpu-dp-1")
    schema = schemathesis.openapi.from_wsgi("/api/openapi.json", get_wsgi_application())
    operation = schema[path][method]
    known = {name: value for name, value in ids(world).items() if f"{{{name}}}" in path} or None
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
        pytest.skip("nothing of this request could be wrong")

    # Schemathesis reads what a WSGI application answers as it is, so nothing may be compressed.
    headers = {"Authorization": f"Bearer {world.keys['admin']}", "Accept-Encoding": "identity"}

    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(mode, path_parameters=known))
    def promise(case: Case) -> None:
        case.call_and_validate(headers=headers, checks=PROMISES)

    promise()


def test_the_documents_operations_are_all_tried(world: World) -> None:
    schema = schemathesis.openapi.from_wsgi("/api/openapi.json", get_wsgi_application())
    assert {(one.ok().method.upper(), one.ok().path) for one in schema.get_all_operations()} == set(OPERATIONS)
