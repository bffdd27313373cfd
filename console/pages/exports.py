"""A timeline as a file, CSV or JSON, of any length: read and sent a piece at a time, so memory stays what one piece takes.

Each piece is a query of its own that goes on from the last one's place. No transaction is open while a slow reader loads, and
what is written meanwhile is newer than where the file began, so no row is missed or comes twice.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.accounts.access import signed_in
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.pages.asking import actor_of
from console.timeline.export import COLUMNS, csv_lines, fields
from console.timeline.filters import LENGTHS, Filter, for_browser, parse
from console.timeline.models import Entry
from console.timeline.queries import Place, older

PIECE = 1000  # rows read and sent at once: about a megabyte


@signed_in
@require_safe
def timeline_csv(request: HttpRequest, cluster_id: UUID) -> StreamingHttpResponse:
    return _file(request, cluster_id, "csv", "text/csv; charset=utf-8", _csv)


@signed_in
@require_safe
def timeline_json(request: HttpRequest, cluster_id: UUID) -> StreamingHttpResponse:
    return _file(request, cluster_id, "json", "application/json", _json)


Writer = Callable[[Cluster, Filter, AsyncIterator[list[Entry]]], AsyncIterator[str]]


def _file(request: HttpRequest, cluster_id: UUID, kind: str, content_type: str, write: Writer) -> StreamingHttpResponse:
    cluster, now = get_cluster(actor_of(request), cluster_id), timezone.now()
    chosen = settled(parse(request.GET), now)
    answer = StreamingHttpResponse(write(cluster, chosen, _pieces(cluster, chosen, now)), content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{file_name(cluster.name, chosen, now)}.{kind}"'
    return answer


def settled(chosen: Filter, now: datetime) -> Filter:
    """With its ends as instants: a file says what it covers, and what comes later is in none of its pieces."""
    since = now - LENGTHS[chosen.last] if chosen.last else chosen.since
    return replace(chosen, last="", since=since, until=min(chosen.until or now, now) if since is None or since <= now else since)


def file_name(cluster: str, chosen: Filter, now: datetime) -> str:
    """Cluster and range, in letters every file system takes: `aurora-train_timeline_2026-11-11T1403Z_to_2026-11-12T1403Z`."""
    name = re.sub(r"[^A-Za-z0-9-]+", "-", cluster).strip("-") or "cluster"
    start = f"{chosen.since:%Y-%m-%dT%H%MZ}" if chosen.since else "beginning"
    return f"{name}_timeline_{start}_to_{chosen.until or now:%Y-%m-%dT%H%MZ}"


async def _pieces(cluster: Cluster, chosen: Filter, now: datetime) -> AsyncIterator[list[Entry]]:
    place: Place | None = None
    more = True
    while more:
        rows, more = await sync_to_async(older)(cluster.stream, PIECE, chosen, now, place)
        if rows:
            place = (rows[-1].at, rows[-1].pk)
            yield rows


async def _csv(_: Cluster, __: Filter, pieces: AsyncIterator[list[Entry]]) -> AsyncIterator[str]:
    yield csv_lines([COLUMNS])
    async for rows in pieces:
        yield csv_lines(fields(entry).values() for entry in rows)


async def _json(cluster: Cluster, chosen: Filter, pieces: AsyncIterator[list[Entry]]) -> AsyncIterator[str]:
    head = {"cluster": {"id": str(cluster.pk), "name": cluster.name}, "filter": for_browser(chosen), "zone": "UTC"}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "entries": ['
    first = True
    async for rows in pieces:
        yield ("" if first else ",") + ",".join("\n" + json.dumps(fields(entry), ensure_ascii=False) for entry in rows)
        first = False
    yield "\n]}\n"
