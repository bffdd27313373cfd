"""Who did it, as a timeline says it, from who asked."""

from console.accounts import access
from console.timeline.changes import HALFTIDE, Actor
from console.timeline.models import Entry


def doer(actor: access.Actor) -> Actor:
    """A person, a key, or Halftide itself where nobody is signed in (the demo's commands)."""
    if not actor.signed_in:
        return HALFTIDE
    return Actor(Entry.ActorKind.KEY if actor.key is not None else Entry.ActorKind.PERSON, actor.name)
