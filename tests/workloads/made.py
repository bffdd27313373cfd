"""Owners and pods as the pure parts take them, no bigger than a test needs."""

import uuid
from datetime import UTC, datetime, timedelta

from console.workloads.facts import PREEMPTIBLE, STANDARD, LastDrain, Owner, PodFacts

NOON = datetime(2026, 11, 12, 12, tzinfo=UTC)


def pod(name: str = "train-0", on: str = PREEMPTIBLE, **more: object) -> PodFacts:
    """It runs on a node of a class for an hour, and asked to."""
    fields: dict[str, object] = {"node_name": f"node-of-{on}", "compute_class": on, "wish": "required", "gpus": 8}
    return PodFacts(uid=name, name=name, **{**fields, "started_at": NOON - timedelta(hours=1), **more})  # type: ignore[arg-type]


def waiting(name: str = "train-0", why: str = "", **more: object) -> PodFacts:
    return pod(name, "", node_name="", phase="Pending", started_at=None, why=why, **more)


def ended(name: str = "train-0", code: int = 1, **more: object) -> PodFacts:
    return pod(name, phase="Succeeded" if code == 0 else "Failed", finished=True, exit_code=code, **more)


def owner(*pods: PodFacts, kind: str = "Job", name: str = "train", drained: LastDrain | None = None, **more: object) -> Owner:
    fields: dict[str, object] = {"first_seen_at": NOON, **more}
    return Owner(uuid.uuid4(), "team", kind, name, pods=pods, drained=drained, **fields)  # type: ignore[arg-type]


__all__ = ["NOON", "PREEMPTIBLE", "STANDARD", "ended", "owner", "pod", "waiting"]
