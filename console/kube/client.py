"""The verbs: everything Halftide reads from a cluster or does to it.

Writes touch single keys, so that what others put beside them survives (kubernetes/kubernetes#128304, kubernetes/autoscaler
PR#5415), and each names the uid it means, so that it cannot hit another object of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from console.kube import marks, parse
from console.kube.answers import Answer, budget_causes, error_of, loads
from console.kube.api import MERGE_PATCH, Api
from console.kube.errors import Conflict, Garbage, NotFound
from console.kube.fields import MESSAGE_CHARS, Json, mapping, text
from console.kube.resources import path
from console.kube.shapes import Absent, Blocked, Evicted, Kind, Listing, NodeShape, Shape

# Core/v1 takes an Event's message up to 1,024 bytes and refuses a longer one; so many characters fit also where each takes three.
_EVENT_MESSAGE_CHARS = 340


class Kube(Api):
    """One cluster: `async with Kube(connection) as kube`. Every method may raise any KubeError."""

    async def version(self) -> str:
        """The server's version, as 'v1.36.3'."""
        return text(await self.ask_json("GET", "/version"), "gitVersion")

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        page: int = 500,
    ) -> Listing:
        """All objects of `kind`, whole or not at all: where any page fails, that error is raised and nothing is given.

        `labels` and `fields` are selectors as the API takes them. `page` bounds an answer, and so the server's memory.
        """
        asked = {"limit": str(page)} | selectors(labels, fields)
        items: tuple[Shape, ...] = ()
        broken: tuple[str, ...] = ()
        while True:
            raw = await self.ask_json("GET", path(kind, namespace), params=asked)
            listing, more = _page(kind, raw, self.now())
            items += listing.items
            broken += listing.broken
            if not more:
                return Listing(kind, listing.resource_version, items, broken)
            asked["continue"] = more

    async def newest(self, kind: Kind) -> str:
        """The version that the API is at now, by a list of one object."""
        raw = await self.ask_json("GET", path(kind), params={"limit": "1"})
        return _page(kind, raw, self.now())[0].resource_version

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Shape:
        """One object. Raises NotFound."""
        return parse.shape(kind, await self.ask_json("GET", path(kind, namespace, name)), self.now())

    async def node(self, name: str) -> NodeShape:
        """One node. Raises NotFound."""
        shape = await self.get("nodes", name)
        assert isinstance(shape, NodeShape)
        return shape

    async def cordon(
        self,
        name: str,
        uid: str,
        *,
        cause: str,
        deadline: datetime,
        by: str | None = marks.SYSTEM,
        resource_version: str | None = None,
    ) -> NodeShape:
        """Close a node for a drain and say why and until when, in one write. Raises NotFound or, for another uid, Conflict.

        `by=None` leaves the mark as it is: for a node that a person has closed, whose cordon must outlive the drain.
        """
        notes = {marks.DRAIN_CAUSE: cause, marks.DRAIN_DEADLINE: rfc3339(deadline)}
        if by is not None:
            notes[marks.CORDONED_BY] = by
        return await self._patch_node(name, uid, notes=notes, unschedulable=True, resource_version=resource_version)

    async def mark_cordon(self, name: str, uid: str, by: str = marks.SYSTEM) -> NodeShape:
        """Close a node under our mark, without a drain."""
        return await self._patch_node(name, uid, notes={marks.CORDONED_BY: by}, unschedulable=True)

    async def uncordon(self, name: str, uid: str) -> bool:
        """Open a node that automation closed, and take its marks away.

        Where a person closed it, it stays closed, only the drain's own notes go, and the answer is False. Read first and written
        with the version read: whoever changes the node in between wins (Conflict).
        """
        node = await self.node(name)
        if node.uid != uid:
            raise Conflict(f"Another node is called {name} now.")
        ours = marks.is_ours(node.annotations.get(marks.CORDONED_BY))
        notes = dict.fromkeys((marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE, *((marks.CORDONED_BY,) if ours else ())))
        if ours or any(key in node.annotations for key in notes):
            opened = False if ours else None
            await self._patch_node(name, uid, notes=notes, unschedulable=opened, resource_version=node.resource_version)
        return ours or not node.unschedulable

    async def unmark(self, name: str, uid: str, resource_version: str) -> None:
        """Take our marks off a node, and leave it as open or closed as it is. Conflict: its version is another now."""
        notes = dict.fromkeys((marks.CORDONED_BY, marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE))
        await self._patch_node(name, uid, notes=notes, resource_version=resource_version)

    async def person_cordon(self, name: str, uid: str, unschedulable: bool, by: str) -> NodeShape:
        """A person's cordon or uncordon from our pages. The cordon carries who it was, and no automation lifts it."""
        notes: dict[str, str | None] = {marks.CORDONED_BY: marks.by_person(by)}
        if not unschedulable:
            notes = dict.fromkeys((marks.CORDONED_BY, marks.DRAIN_CAUSE, marks.DRAIN_DEADLINE))
        return await self._patch_node(name, uid, notes=notes, unschedulable=unschedulable)

    async def set_label(self, name: str, uid: str, key: str, value: str | None) -> NodeShape:
        """Set one label of a node, or with None take it away."""
        return await self._patch_node(name, uid, labels={key: value})

    async def evict(self, namespace: str, name: str, uid: str, grace: int) -> Evicted | Blocked | Absent:
        """Ask a pod to go, with `grace` seconds; a disruption budget may refuse, and its name comes back.

        A throttling server is waited for as everywhere; only a budget's refusal is Blocked (kubernetes/kubernetes#106286).
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"gracePeriodSeconds": grace, "preconditions": {"uid": uid}},
        }
        answer = await self.ask("POST", path("pods", namespace, name, "eviction"), body=body)
        if answer.ok:
            return Evicted()
        budgets = budget_causes(answer)
        if budgets is not None:
            return Blocked(budgets, text(loads(answer.body), "message", MESSAGE_CHARS))
        if isinstance(error := error_of(answer), NotFound | Conflict):
            return Absent()
        raise error

    async def delete_pod(self, namespace: str, name: str, uid: str, grace: int) -> bool:
        """Delete a pod with `grace` seconds, budgets or not. False where it is gone or another pod has its name."""
        return await self._delete(path("pods", namespace, name), uid, grace)

    async def delete_node(self, name: str, uid: str) -> bool:
        """Delete a node. False where it is gone or another node has its name."""
        return await self._delete(path("nodes", name=name), uid)

    async def emit_event(
        self,
        *,
        name: str,
        node_name: str,
        node_uid: str,
        reason: str,
        type: str,  # noqa: A002 - Kubernetes' word for it: Normal or Warning
        message: str,
        at: datetime,
    ) -> None:
        """Say something on a node, once: the caller derives `name` from what it stands for, so a repeat is no second Event."""
        when = rfc3339(at)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid},
            "reason": reason,
            "type": type,
            "message": message if len(message) <= _EVENT_MESSAGE_CHARS else message[: _EVENT_MESSAGE_CHARS - 1] + "…",
            "source": {"component": marks.REPORTING_COMPONENT},
            "reportingComponent": marks.REPORTING_COMPONENT,
            "reportingInstance": marks.REPORTING_COMPONENT,
            "action": reason,
            "firstTimestamp": when[:19] + "Z",
            "lastTimestamp": when[:19] + "Z",
            "eventTime": when,
            "count": 1,
        }
        answer = await self.ask("POST", path("events", "default"), body=body)
        if not answer.ok and not isinstance(error := error_of(answer), Conflict):
            raise error

    async def _delete(self, where: str, uid: str, grace: int | None = None) -> bool:
        body: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        answer: Answer = await self.ask("DELETE", where, body=body)
        if answer.ok:
            return True
        if isinstance(error := error_of(answer), NotFound | Conflict):
            return False
        raise error

    async def _patch_node(
        self,
        name: str,
        uid: str,
        *,
        labels: Mapping[str, str | None] | None = None,
        notes: Mapping[str, str | None] | None = None,
        unschedulable: bool | None = None,
        resource_version: str | None = None,
    ) -> NodeShape:
        meta: dict[str, object] = {"uid": uid}
        if resource_version is not None:
            meta["resourceVersion"] = resource_version
        if labels:
            meta["labels"] = labels
        if notes:
            meta["annotations"] = notes
        body: dict[str, object] = {"metadata": meta}
        if unschedulable is not None:
            # null takes the field away, as kubectl's uncordon leaves it.
            body["spec"] = {"unschedulable": True if unschedulable else None}
        raw = await self.ask_json("PATCH", path("nodes", name=name), body=body, content_type=MERGE_PATCH)
        node = parse.shape("nodes", raw, self.now())
        assert isinstance(node, NodeShape)
        return node


def selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    """Selectors as query parameters."""
    asked = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in asked.items() if value is not None}


def rfc3339(at: datetime) -> str:
    """An instant as Kubernetes writes its MicroTime."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _page(kind: Kind, raw: Json, now: datetime) -> tuple[Listing, str]:
    """One page of a list and the token of the next ('' for none). Raises Garbage for what is no list."""
    meta, found = mapping(raw, "metadata"), raw.get("items", ())
    version = text(meta, "resourceVersion")
    if not text(raw, "kind").endswith("List") or not version or not isinstance(found, list | None):
        raise Garbage(f"The answer is no list of {kind}.")
    items: list[Shape] = []
    broken: list[str] = []
    for entry in found or ():
        try:
            items.append(parse.shape(kind, entry, now))
        except Garbage as error:
            broken.append(error.sentence)
    return Listing(kind, version, tuple(items), tuple(broken)), text(meta, "continue", MESSAGE_CHARS)
