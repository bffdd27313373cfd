"""Reasons in groups that people understand: what a webhook can be asked to tell. Pure.

A reason belongs to one group at most. *Warnings* is everything that is a warning or worse; where a webhook has asked for an
entry's own group too, it is told under that one, so that no entry is told twice.
"""

from collections.abc import Collection
from dataclasses import dataclass

WARNINGS = "warnings"
FAILING, WORKS = "WebhookFailing", "WebhookRecovered"  # our own entries about webhooks


@dataclass(frozen=True)
class Group:
    key: str
    title: str
    hint: str
    reasons: tuple[str, ...] = ()


GROUPS = (
    Group(
        "preemptions",
        "Preemptions",
        "Nodes are taken back, with their number and deadline.",
        ("TogetherPreempted", "NoticeWaits"),
    ),
    Group("timeouts", "Drains that timed out", "Pods were left at the deadline, or a budget holds a node.", ("DrainTimedOut",)),
    Group(
        "capacity",
        "Waiting for capacity",
        "The pool has none, a launch was given up, capacity is back.",
        ("WaitingForCapacity", "LaunchGivenUp", "CapacityReturned"),
    ),
    Group(
        "kubernetes",
        "Kubernetes unreachable",
        "Halftide no longer hears a cluster, and when it does again.",
        ("KubernetesUnreachable", "KubernetesBack"),
    ),
    Group(
        "automation",
        "Automation stopped",
        "Somebody flipped the stop switch, either way.",
        ("AutomationStopped", "AutomationStarted"),
    ),
    Group("targets", "Target changes", "Who asked for how many GPUs.", ("TargetChanged", "StandardChanged")),
    Group(WARNINGS, "All warnings", "Whatever a timeline marks as a warning or as critical, of the kinds above or any other."),
)
BY_KEY = {group.key: group for group in GROUPS}
OF_REASON = {reason: group.key for group in GROUPS for reason in group.reasons}


def reasons_of(keys: Collection[str]) -> list[str]:
    """The reasons that these groups name."""
    return [reason for key in keys for reason in BY_KEY[key].reasons]


def group_of(reason: str, keys: Collection[str]) -> str:
    """The group under which a webhook with these groups tells an entry that it wants."""
    own = OF_REASON.get(reason)
    return own if own is not None and own in keys else WARNINGS
