"""Reading scripts: the newest versions, one of them, and the history page by page. Lists leave the texts where they are."""

from django.db.models import QuerySet

from console.clusters.models import Cluster
from console.http import NotFound
from console.scripts.kinds import Kind
from console.scripts.models import Version

LARGEST = 2**31 - 1  # what the column of numbers holds


def current(cluster: Cluster, kind: Kind) -> Version | None:
    """The script as it is; None where none was ever saved."""
    return _of(cluster, kind).order_by("-number").first()


def currents(cluster: Cluster) -> dict[str, Version]:
    """The newest version of each kind, without texts, in one query."""
    rows = Version.objects.filter(cluster=cluster).defer("text").order_by("kind", "-number").distinct("kind")
    return {row.kind: row for row in rows}


def history(cluster: Cluster, kind: Kind, limit: int, before: int | None = None) -> list[Version]:
    """The newest versions, or those before a number, newest first, without texts."""
    rows = _of(cluster, kind).defer("text").order_by("-number")
    return list((rows.filter(number__lt=before) if before is not None else rows)[:limit])


def numbered(cluster: Cluster, kind: Kind, *numbers: int) -> dict[int, Version]:
    """Those of the numbers that are there, with their texts, in one query."""
    possible = [number for number in numbers if 0 < number <= LARGEST]
    return {row.number: row for row in _of(cluster, kind).filter(number__in=possible)}


def version(cluster: Cluster, kind: Kind, number: int) -> Version:
    """Raises NotFound."""
    found = numbered(cluster, kind, number).get(number)
    if found is None:
        raise NotFound(f"{kind.name} of {cluster.name} has no version {number}.", param="version", code="no_such_version")
    return found


def _of(cluster: Cluster, kind: Kind) -> QuerySet[Version]:
    return Version.objects.filter(cluster=cluster, kind=kind.name)
