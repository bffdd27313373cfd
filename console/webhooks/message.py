"""A burst in words: what its message says, as plain data and as one sentence. Pure.

A burst is counted by reason; what is said of a single entry is its own sentence, and of many a sentence with their number:
"20 nodes of aurora-train were preempted (160 GPUs), deadline 14:07 UTC".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MOST_NAMES = 3  # clusters that a sentence names before it counts the rest
MOST_KINDS = 3  # kinds of entries that a summary says before it counts the rest
LONGEST_SUMMARY = 300

# What many entries of one reason are; {n} is their number, {clusters} their clusters.
MANY = {
    "NoticeWaits": "{n} nodes of {clusters} have notice and wait, because automation is stopped",
    "DrainTimedOut": "{n} drains of {clusters} timed out",
    "WaitingForCapacity": "{clusters} began to wait for capacity, {n} times in all",
    "LaunchGivenUp": "{n} launches of {clusters} were given up",
    "CapacityReturned": "Capacity is back for {clusters}, {n} times in all",
    "KubernetesUnreachable": "Kubernetes of {clusters} could not be reached, {n} times in all",
    "KubernetesBack": "Kubernetes of {clusters} is heard again, {n} times in all",
    "AutomationStopped": "Automation was stopped in {clusters}",
    "AutomationStarted": "Automation was started in {clusters}",
    "TargetChanged": "{n} changes of the preemptible target of {clusters}",
    "StandardChanged": "{n} changes of the standard GPUs of {clusters}",
    "NodeNotReady": "{n} times a node of {clusters} was not Ready",
    "NodeLost": "{n} nodes of {clusters} were lost",
    "MachineLost": "{n} machines of {clusters} were lost",
}


@dataclass(frozen=True)
class Place:
    """A cluster, as a message names it."""

    id: UUID
    name: str


@dataclass(frozen=True)
class Item:
    """One entry of a message."""

    id: int
    cluster: Place
    reason: str
    severity: str
    subject: tuple[str, str, str]  # kind, name, uid
    actor: str
    message: str
    at: datetime
    count: int


@dataclass(frozen=True)
class Tally:
    """All entries of one reason. `clusters` by number, those with most first; GPUs and deadline of preemptions only."""

    reason: str
    number: int
    clusters: tuple[Place, ...]
    gpus: int = 0
    deadlines: tuple[datetime, ...] = ()  # first and last


@dataclass(frozen=True)
class Message:
    """A burst. `items` are its entries, the gravest first, cut at a bound; `tallies` count all of them."""

    id: UUID
    at: datetime
    webhook: tuple[UUID, str]
    project: tuple[UUID, str]
    group: str
    number: int
    first_entry: int
    last_entry: int
    tallies: Sequence[Tally]
    items: Sequence[Item]


def summary(message: Message) -> str:
    """One sentence of at most 300 characters."""
    singles = {item.reason: item for item in message.items}
    said = [_kind(tally, singles) for tally in message.tallies[:MOST_KINDS]]
    more = len(message.tallies) - MOST_KINDS
    if more > 0:
        said.append(f"and {more} more {'kind' if more == 1 else 'kinds'} of entries")
    return cut("; ".join(said), LONGEST_SUMMARY)


def _kind(tally: Tally, singles: Mapping[str, Item]) -> str:
    if tally.number == 1 and tally.reason in singles:
        item = singles[tally.reason]
        return item.message if item.cluster.name in item.message else f"{item.cluster.name}: {item.message}"
    clusters = names([place.name for place in tally.clusters])
    if tally.reason == "TogetherPreempted":
        return f"{tally.number} nodes of {clusters} were preempted ({tally.gpus} GPUs){_deadline(tally.deadlines)}"
    return MANY.get(tally.reason, "{n} × {reason} in {clusters}").format(n=tally.number, reason=tally.reason, clusters=clusters)


def _deadline(deadlines: Sequence[datetime]) -> str:
    if not deadlines:
        return ""
    first, last = f"{deadlines[0]:%H:%M}", f"{deadlines[-1]:%H:%M}"
    return f", deadline {first} UTC" if first == last else f", deadlines {first} to {last} UTC"


def names(found: Sequence[str]) -> str:
    """ "a, b, c and 3 more"."""
    shown = ", ".join(found[:MOST_NAMES])
    return shown if len(found) <= MOST_NAMES else f"{shown} and {len(found) - MOST_NAMES} more"


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
