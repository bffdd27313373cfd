"""What the feed asks of the database, and the frames made of it. Plain functions, run on the feed's threads."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.db import Error
from django.http import HttpRequest
from django.utils import timezone

from console.accounts import queries as people
from console.accounts.services import actor_for_session
from console.clusters.access import get_cluster
from console.clusters.models import Cluster
from console.http import DomainError
from console.timeline.queries import heads as heads
from console.workloads import frames

log = logging.getLogger(__name__)

NOT_SIGNED_IN, NOT_FOUND, FORBIDDEN = 4401, 4404, 4403
LARGEST = 900_000  # bytes in a frame; proxies and clients commonly refuse from 1 MiB on
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
    """How far the streams were read, and what to send: no frame where nothing shown has changed, a number to close."""

    streams: Mapping[UUID, int]
    epoch: str
    frame: str | int | None
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


def lost(asked: Iterable[Who]) -> dict[Who, int]:
    """Of everybody with an open socket those to close, with the code; two queries for all.

    4401 where the session ended, so that the page offers to sign in; 4403 where the role went or the person was disabled.
    """
    everybody = set(asked)
    may = people.who_may_see((user, project) for user, _, project in everybody)
    open_now = people.open_sessions({key for _, key, _ in everybody}, timezone.now())
    signed_out = {who: NOT_SIGNED_IN for who in everybody if who[1] not in open_now}
    return {who: FORBIDDEN for who in everybody if (who[0], who[2]) not in may} | signed_out


def start(cluster_id: UUID) -> News:
    """Where a cluster's streams stand now. Raises Cluster.DoesNotExist."""
    streams = frames.streams_of(cluster_id)
    found = heads(streams)
    return News({stream: found[stream].revision for stream in streams}, str(found[cluster_id].epoch), None)


def news(cluster_id: UUID, seen: Mapping[UUID, int], epoch: str) -> News:
    """What has changed since the given revisions, one frame's worth. The heads are read first, so nothing is skipped."""
    found = heads(seen)
    now = {stream: head.revision for stream, head in found.items()}
    if cluster_id not in found:
        return News(seen, epoch, NOT_FOUND)
    if str(found[cluster_id].epoch) != epoch:
        return News(now, str(found[cluster_id].epoch), reload_frame("the console was restored"))
    if all(now[stream] <= seen[stream] for stream in now):
        return News(seen, epoch, None)
    beside = any(now[stream] > seen[stream] for stream in now if stream != cluster_id)
    frame, upto = _step(cluster_id, seen[cluster_id], now[cluster_id], epoch, beside)
    return News({**now, cluster_id: upto}, epoch, frame, upto < now[cluster_id])


def catch_up(cluster_id: UUID, since: int, epoch: str) -> list[str | int]:
    """What a page that stands at `since` has missed; it is told to load again where that is too much or makes no sense.

    At least one frame, with the panel: the page does not say how far it knows the pool, so it may have missed that.
    """
    head = heads([cluster_id]).get(cluster_id)
    if head is None:
        return [NOT_FOUND]
    if str(head.epoch) != epoch or since < 0 or since > head.revision:
        return [reload_frame("the page is of another time")]
    made: list[str | int] = []
    upto = since
    while not made or upto < head.revision:
        if head.revision - upto > frames.STEP * (FRAMES_BEHIND - len(made)):
            return [reload_frame("too much has happened since")]
        frame, upto = _step(cluster_id, upto, head.revision, epoch, beside=True)
        made.append(frame)
    return made


def _step(cluster_id: UUID, after: int, head: int, epoch: str, beside: bool) -> tuple[str | int, int]:
    """The next frame on the way to `head`, and the revision it reaches: less far where the rows are large."""
    upto = min(after + frames.STEP, head)
    while True:
        frame = _drawn(cluster_id, after, upto, epoch, beside)
        if isinstance(frame, int) or len(frame.encode()) <= LARGEST:
            return frame, upto
        if upto - after <= 1:
            return reload_frame("too much has changed at once"), upto
        upto = (after + upto) // 2


def _drawn(cluster_id: UUID, after: int, upto: int, epoch: str, beside: bool) -> str | int:
    try:
        frame = frames.compose(cluster_id, after, upto, epoch, beside)
    except Cluster.DoesNotExist:
        return NOT_FOUND
    except Error:
        raise
    except Exception:  # a door: a row that cannot be drawn would otherwise be tried for ever, and the cluster's pages deaf
        log.exception("frame_not_drawn", extra={"cluster": str(cluster_id), "after": after, "upto": upto})
        return reload_frame("something could not be drawn")
    return reload_frame("too much has happened since") if frame is None else _text(type="rows", **frame.payload())


def beats(clusters: list[UUID]) -> dict[UUID, str]:
    """The heartbeat of each cluster: the console's clock, and up to when Kubernetes was heard. One query."""
    now = timezone.now().isoformat()
    rows = Cluster.objects.filter(pk__in=clusters).values_list("pk", "proved_to")
    return {pk: _text(type="beat", at=now, heard_at=heard.isoformat() if heard else None) for pk, heard in rows}


def reload_frame(why: str) -> str:
    return _text(type="reload", why=why)


def _text(**payload: Any) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
