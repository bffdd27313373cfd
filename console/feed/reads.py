"""What the feed asks of the database, and the frames made of it. Plain functions, run on the feed's threads."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.utils import timezone

from console.accounts import queries as people
from console.accounts.services import actor_for_session
from console.capacity import frames
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.http import DomainError
from console.timeline.queries import heads as timeline_heads

NOT_SIGNED_IN, NOT_FOUND, FORBIDDEN = 4401, 4404, 4403
FRAMES_BEHIND = 4  # frames a returning page is caught up with; beyond, loading it again is less work for everybody

Who = tuple[int, str, UUID]  # user, session key, project


@dataclass(frozen=True)
class Door:
    """Who came in, and in which project the cluster is."""

    user_id: int
    session_key: str
    project_id: UUID


@dataclass(frozen=True)
class News:
    """How far the streams were read, and what to send; no frame where nothing shown has changed."""

    streams: Mapping[UUID, int]
    epoch: str
    frame: str | None
    more: bool = False  # the heads are further than this frame goes


def door(cookies: Mapping[str, str], cluster_id: UUID, address: str | None) -> Door | int:
    """Check the right to look at a cluster; a close code where there is none."""
    request = HttpRequest()
    request.session = SessionStore(cookies.get(settings.SESSION_COOKIE_NAME))
    actor = actor_for_session(get_user(request), address)
    if actor.user is None:
        return NOT_SIGNED_IN
    try:
        cluster = get_cluster(actor, cluster_id)
    except DomainError as error:
        return FORBIDDEN if error.status == FORBIDDEN - 4000 else NOT_FOUND
    return Door(actor.user.pk, request.session.session_key or "", cluster.project_id)


def still_allowed(asked: Iterable[Who]) -> set[Who]:
    """Of everybody with an open socket those who are still signed in and still have a role; two queries for all."""
    everybody = set(asked)
    may = people.who_may_see((user, project) for user, _, project in everybody)
    open_now = people.open_sessions({key for _, key, _ in everybody}, timezone.now())
    return {(user, key, project) for user, key, project in everybody if (user, project) in may and key in open_now}


def start(cluster_id: UUID) -> News:
    """Where a cluster's streams stand now."""
    streams = frames.streams_of(cluster_id)
    found = timeline_heads(streams)
    return News({stream: found[stream].revision for stream in streams}, str(found[cluster_id].epoch), None)


def heads(streams: Iterable[UUID]) -> dict[UUID, int]:
    return {stream: head.revision for stream, head in timeline_heads(list(streams)).items()}


def news(cluster_id: UUID, seen: Mapping[UUID, int], epoch: str) -> News:
    """What has changed since the given revisions, one frame's worth. The heads are read first, so nothing is skipped."""
    found = timeline_heads(list(seen))
    now = {stream: head.revision for stream, head in found.items()}
    if cluster_id not in found:
        return News(seen, epoch, reload_frame("this cluster is gone"))
    if str(found[cluster_id].epoch) != epoch:
        return News(now, str(found[cluster_id].epoch), reload_frame("the console was restored"))
    if all(now[stream] <= seen[stream] for stream in now):
        return News(seen, epoch, None)
    after, upto = frames.spans(seen[cluster_id], now[cluster_id])[0]
    return News({**now, cluster_id: upto}, epoch, _rows(frames.compose(cluster_id, after, upto, epoch)), upto < now[cluster_id])


def catch_up(cluster_id: UUID, since: int, epoch: str) -> list[str]:
    """What a page that stands at `since` has missed; it is told to load again where that is too much or makes no sense."""
    head = timeline_heads([cluster_id]).get(cluster_id)
    if head is None or str(head.epoch) != epoch or since < 0 or since > head.revision:
        return [reload_frame("the page is of another time")]
    missed = frames.spans(since, head.revision)
    if len(missed) > FRAMES_BEHIND:
        return [reload_frame("too much has happened since")]
    return [_rows(frames.compose(cluster_id, after, upto, epoch)) for after, upto in missed]


def beats(clusters: list[UUID]) -> dict[UUID, str]:
    """The heartbeat of each cluster: the console's clock, and up to when Kubernetes was heard. One query."""
    now = timezone.now().isoformat()
    rows = Cluster.objects.filter(pk__in=clusters).values_list("pk", "proved_to")
    return {pk: _text(type="beat", at=now, heard_at=heard.isoformat() if heard else None) for pk, heard in rows}


def reload_frame(why: str) -> str:
    return _text(type="reload", why=why)


def _rows(frame: frames.Frame | None) -> str:
    return reload_frame("too much has happened since") if frame is None else _text(type="rows", **frame.payload())


def _text(**payload: Any) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
