"""What one watcher keeps in memory of one cluster: what it has written, and how well it hears.

It is a filter and nothing more. Lost with its process, it is made anew by the list with which every follower begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from console.clusters.leases import Held
from console.kube.shapes import Change, ChangeType, Kind, Listing, Shape
from console.kube.watch import Failed, Heard, Listed, Signal
from console.sync.apply import View, older, view
from console.sync.folding import Pace

# What a cluster's picture is made of. Events tell, but decide nothing.
KINDS: tuple[Kind, ...] = ("nodes", "pods", "events")
PICTURE: tuple[Kind, ...] = ("nodes", "pods")

# A watch that is cut and back within this time is daily life, not news; seconds.
PATIENCE = timedelta(seconds=10)

# Trouble that is back so soon after its end is told as over only when it has been well for a while: a connection that is answered
# and then cut, again and again, would else be two rows in the timeline each half a minute.
RELAPSE = timedelta(minutes=1)
STEADY = timedelta(seconds=15)

# `proved_to` moves no more often than this (DESIGN 11).
PROOF_EVERY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Seen:
    """One object as it is, from a list (`type` None, `version` the list's) or from a watch."""

    kind: Kind
    type: ChangeType | None
    shape: Shape
    version: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Complete:
    """The list is through: whatever it did not have is gone."""

    kind: Kind
    version: str
    uids: frozenset[str]
    at: datetime


@dataclass(frozen=True, slots=True)
class Alive:
    """The API spoke, though it had nothing new."""

    kind: Kind
    at: datetime


@dataclass(frozen=True, slots=True)
class Trouble:
    """The picture of a kind cannot be trusted to go on, since when and why."""

    kind: Kind
    since: datetime
    sentence: str
    partial: bool = False  # a list that had unreadable objects: only a whole list ends it


@dataclass(frozen=True, slots=True)
class Tick:
    """A second has passed."""


Item = Seen | Complete | Alive | Trouble | Tick


def items(kind: Kind, signal: Signal, now: datetime, floor: str = "") -> Iterable[Item]:
    """A follower's signal in pieces that fit a transaction. One unreadable object is no trouble of its stream."""
    match signal:
        case Listed(listing):
            return listed(listing, now, floor)
        case Change(_, type_, shape):
            return (Seen(kind, type_, shape, shape.resource_version, now),)
        case Heard(at):
            return (Alive(kind, at),)
        case Failed(error, since, next_try) if next_try > since:
            return (Trouble(kind, since, error.sentence),)
        case _:
            return ()


def listed(listing: Listing, now: datetime, floor: str) -> Iterable[Item]:
    """A list's objects, and its end.

    With unreadable objects in it, it ends in trouble instead and removes nothing. One that is older than `floor`, the version
    known before it was asked for, says nothing at all.
    """
    kind, version = listing.kind, listing.resource_version
    if older(version, floor):
        why = f"The Kubernetes API answered with version {version} of {kind}, but {floor} was seen before."
        yield Trouble(kind, now, f"{why} If it was restored from a backup, run: manage.py accept_older", True)
        return
    for shape in listing.items:
        yield Seen(kind, None, shape, version, now)
    if listing.broken:
        yield Trouble(kind, now, f"{len(listing.broken)} of the {kind} cannot be read: {listing.broken[0]}", True)
    else:
        yield Complete(kind, version, frozenset(shape.uid for shape in listing.items), now)


@dataclass(slots=True)
class Hearing:
    """How well one kind is heard. `recorded` is the trouble the database tells, '' for none, None until we know; `over_at` when
    it last said that trouble was over, `relapse` whether it came again soon after, `well_since` the first sign of life since."""

    heard_at: datetime | None = None
    well_since: datetime | None = None
    over_at: datetime | None = None
    relapse: bool = False
    complete: bool = False
    trouble: Trouble | None = None
    partial: Trouble | None = None
    recorded: str | None = None

    def hear(self, item: Item) -> None:
        """Take in one item. A watch that speaks ends trouble; only a whole list ends a partial picture.

        A list by itself does not: where lists are answered and watches refused, that would be news each time round.
        """
        match item:
            case Trouble(partial=True):
                self.partial, self.complete, self.trouble = item, False, None
            case Trouble():
                self.trouble, self.well_since = item, None
            case Complete(at=at):
                self.complete, self.partial, self.heard_at = True, None, at
            case Seen(type=None, at=at):
                self.heard_at = at
            case Seen(at=at) | Alive(at=at):
                self.trouble, self.heard_at, self.well_since = None, at, self.well_since or at

    def verdict(self, now: datetime) -> Trouble | bool | None:
        """Trouble to be said, True where all is well, None while it is too early for either."""
        found = self.trouble or self.partial
        if found:
            return found if now - found.since >= PATIENCE else None
        return True if self.complete and not self._relapses(now) else None

    def _relapses(self, now: datetime) -> bool:
        """Whether trouble that is told was a relapse, and its new end is too young to be believed."""
        return bool(self.recorded) and self.relapse and (self.well_since is None or now - self.well_since < STEADY)

    def told(self, trouble: Trouble | None, now: datetime) -> None:
        """The database says so now."""
        if trouble and not self.recorded:
            self.relapse = self.over_at is not None and now - self.over_at < RELAPSE
        if trouble is None and self.recorded:
            self.over_at = now
        self.recorded = trouble.sentence if trouble else ""


@dataclass(slots=True)
class Room:
    """One cluster, for as long as one lease is held."""

    cluster_id: UUID
    held: Held
    floors: dict[str, str] = field(default_factory=dict)  # versions by kind, known before the first list was asked for
    clock_offset: float = 0.0
    known: dict[Kind, dict[str, View | None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    hearing: dict[Kind, Hearing] = field(default_factory=lambda: {kind: Hearing() for kind in KINDS})
    proved_at: datetime | None = None  # the last `proved_to` written
    orphans: dict[str, Seen] = field(default_factory=dict)  # pod Events that came before their pods
    pace: Pace = field(default_factory=Pace)  # entries this minute

    def fresh(self, batch: Sequence[Item]) -> tuple[list[Seen | Complete], dict[Kind, dict[str, View | None]]]:
        """What of a batch is news, in order, and what will be known once it is written."""
        news: list[Seen | Complete] = []
        after: dict[Kind, dict[str, View | None]] = {kind: {} for kind in KINDS}
        for item in batch:
            if isinstance(item, Complete):
                news.append(item)
            elif isinstance(item, Seen):
                uid, now_seen = item.shape.uid, None if item.type == "DELETED" else view(item.shape)
                forgotten = now_seen is None and item.kind == "events"  # by Kubernetes after an hour, not by us
                if not forgotten and (now_seen is None or after[item.kind].get(uid, self.known[item.kind].get(uid)) != now_seen):
                    news.append(item)
                after[item.kind][uid] = now_seen
        return news, after

    def written(self, news: Sequence[Seen | Complete], after: dict[Kind, dict[str, View | None]]) -> None:
        """The batch is committed. What is gone is forgotten, so that memory holds what the cluster holds."""
        for kind, seen in after.items():
            self.known[kind].update(seen)
            for uid in [uid for uid, known in seen.items() if known is None]:
                del self.known[kind][uid]
        for item in news:
            if isinstance(item, Complete):
                for uid in self.known[item.kind].keys() - item.uids:
                    del self.known[item.kind][uid]

    def proof(self) -> datetime | None:
        """The instant up to which nodes are completely known, where it is time to write it down."""
        nodes = self.hearing["nodes"]
        if not nodes.complete or nodes.heard_at is None or nodes.trouble:
            return None
        due = self.proved_at is None or nodes.heard_at - self.proved_at >= PROOF_EVERY
        return nodes.heard_at if due else None
