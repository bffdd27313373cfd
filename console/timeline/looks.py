"""How far a person has seen a cluster's timeline. Kept here, so that it holds on every screen of theirs."""

from datetime import datetime
from uuid import UUID

from console.timeline.models import Entry, LastLook


def look(user_id: int, stream: UUID, entry_id: int, now: datetime) -> bool:
    """An entry was on a page that was looked at. The mark only moves forward; an id that the stream has not moves nothing."""
    if not Entry.objects.filter(stream=stream, pk=entry_id).exists():
        return False
    LastLook.objects.get_or_create(user_id=user_id, stream_id=stream, defaults={"entry_id": 0, "at": now})
    mark = LastLook.objects.filter(user=user_id, stream=stream, entry_id__lt=entry_id)
    return mark.update(entry_id=entry_id, at=now) > 0
