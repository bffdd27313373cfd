"""Loads the catalogue (regions, GPU types, rates, pools) and the demo (projects, people, keys, fleet) from `fixtures/`.

Each step can run again: what is there is left as it is, so that a second `make up` finds the state of the first.
"""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from console.accounts import identities
from console.accounts.access import Actor
from console.accounts.changes import apply_claims, rules_for
from console.accounts.models import ApiKey, Project, Role, User
from console.accounts.oidc.config import Provider, by_id
from console.accounts.services import actor_for_session, create_key, fingerprint
from console.capacity.models import Pool
from console.capacity.services import create_cluster
from console.clusters.models import Cluster, GpuType, Rate, Region
from console.timeline.models import INSTALLATION, Stream


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@transaction.atomic
def catalogue(data: dict[str, Any]) -> None:
    """Regions, GPU types with the rate that is in force from `rates_from` on, and a pool with its stream for each pair."""
    Stream.objects.get_or_create(id=INSTALLATION, defaults={"kind": Stream.Kind.INSTALLATION})
    for region in data["regions"]:
        Region.objects.update_or_create(name=region["name"], defaults={"title": region["title"]})
    for one in data["gpu_types"]:
        gpu_type, _ = GpuType.objects.update_or_create(name=one["name"], defaults={"gpus_per_node": one["gpus_per_node"]})
        Rate.objects.get_or_create(
            gpu_type=gpu_type,
            effective_from=datetime.fromisoformat(data["rates_from"]),
            defaults={"on_demand": Decimal(one["on_demand"])},
        )
    for one in data["pools"]:
        pool, _ = Pool.objects.get_or_create(region_id=one["region"], gpu_type_id=one["gpu_type"])
        Stream.objects.get_or_create(id=pool.pk, defaults={"kind": Stream.Kind.POOL})


def demo(data: dict[str, Any], now: datetime) -> list[Cluster]:
    """Projects, people with what their groups give them, keys, and the clusters that are not there yet. Returns the new ones."""
    projects = {one["slug"]: _project(one) for one in data["projects"]}
    provider = by_id(data["provider"])
    if provider is None:
        raise ImproperlyConfigured(f"The identity provider {data['provider']} is not among the settings' providers.")
    people = {one["subject"]: _person(provider, one, now) for one in data["people"]}
    for one in data["keys"]:
        if not ApiKey.objects.filter(fingerprint=fingerprint(one["key"])).exists():
            role = Role[one["role"].upper()]
            create_key(None, projects[one["project"]], people[one["owner"]], one["name"], role, now, secret=one["key"])
    asks = actor_for_session(people[data["asks"]], None)
    return [made for one in data["clusters"] if (made := _cluster(asks, projects[one["project"]], one)) is not None]


def _project(one: dict[str, Any]) -> Project:
    project, _ = Project.objects.get_or_create(slug=one["slug"], defaults={"name": one["name"]})
    return project


def _person(provider: Provider, one: dict[str, Any], now: datetime) -> User:
    """As their first sign-in would make them, so that the demo's keys have an owner with rights before anybody signs in."""
    claims = {"preferred_username": one["subject"], "email": one["email"]}
    account = identities.find_or_create(provider.id, provider.issuer, one["subject"], claims)
    if not account.extra_data.get("applied_iat"):
        # Issued at second 1: whatever the provider says later is newer.
        apply_claims(account, {"iat": 1, "groups": one["groups"]}, "groups", rules_for(provider), now)
    return User.objects.get(pk=account.user_id)


def _cluster(asks: Actor, project: Project, one: dict[str, Any]) -> Cluster | None:
    if Cluster.objects.filter(project=project, name=one["name"]).exists():
        return None
    return create_cluster(asks, project, one["name"], one["region"], one["gpu_type"], one["standard"], one["preemptible"])
