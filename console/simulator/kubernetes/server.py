"""One cluster's API: from a request to the store and back. Every handler is one step of the event loop, so no locks."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from console.simulator.kubernetes import (
    discovery,
    errors,
    events_view,
    intake,
    listing,
    managed,
    patches,
    removal,
    streams,
    writes,
)
from console.simulator.kubernetes.errors import ApiError
from console.simulator.kubernetes.managed import Writer
from console.simulator.kubernetes.paths import Target, parse
from console.simulator.kubernetes.pod_verbs import PodVerbs
from console.simulator.kubernetes.render import Renderer, form
from console.simulator.kubernetes.resources import EVENTS, NAMESPACES, NEW_EVENTS, Resource
from console.simulator.kubernetes.store import Record, Store
from console.simulator.values import Json, copy, instant
from console.simulator.web import Request, Response, Stream, answer

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
EVENT_LIFE = timedelta(hours=1)


def verb_of(request: Request, target: Target) -> str:
    """The API's own word for what a request does: what RBAC and the request log speak of."""
    if request.method == "GET":
        if request.query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if target.name else "list"
    if request.method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(request.method, request.method.lower())


class Api:
    """The API server of one cluster."""

    def __init__(self, store: Store, clock: Clock, version: str = discovery.VERSION) -> None:
        self.store = store
        self.version = version
        self._clock = clock
        self._removal = removal.Removal(store, clock)
        self._pods = PodVerbs(store, clock, self._removal.remove)
        for name in SYSTEM_NAMESPACES:
            if store.get(NAMESPACES, "", name) is None:
                store.put(NAMESPACES, writes.created(NAMESPACES, {"metadata": {"name": name}}, "", clock()))

    async def __call__(self, request: Request, *, tracked: bool = True) -> Response | Stream:
        """Answer one request; refusals are Status bodies. Of who is not `tracked` no field is remembered to be theirs."""
        try:
            return self._answer(request, tracked)
        except ApiError as error:
            return error.response()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if request.method == "GET":
                raise
            # The real server decodes into types; here a field of the wrong shape shows only where it is used.
            log.info("%s %s: a body of the wrong shape", request.method, request.path, exc_info=True)
            return errors.bad_request(f"the object provided cannot be decoded: {error!r}").response()

    def _answer(self, request: Request, tracked: bool) -> Response | Stream:
        if request.path in ("/healthz", "/livez", "/readyz"):
            return Response(200, b"ok", "text/plain; charset=utf-8")
        found = discovery.document(request.path, request.headers.get("host", ""), self.version)
        if found is not None:
            if request.method != "GET":
                raise errors.method_not_allowed()
            return answer(found)
        target = parse(request.path)
        if target is None:
            if request.path.startswith(("/api/", "/apis/")):
                raise errors.unknown_path()
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        return self._resource(request, target, intake.writer(request, target, self._clock()) if tracked else None)

    def _resource(self, request: Request, target: Target, writer: Writer | None) -> Response | Stream:
        renderer = self._renderer(request, target)
        match verb_of(request, target), target.subresource:
            case "watch", "":
                if target.name:
                    query = {**request.query, "fieldSelector": f"metadata.name={target.name}"}
                    return Stream(streams.lines(self.store, streams.parse(target, query, renderer)))
                return Stream(streams.lines(self.store, streams.parse(target, request.query, renderer)))
            case "list", "":
                return listing.respond(self.store, target, request.query, renderer)
            case "get", "" | "status":
                return Response(200, renderer.one(self._find(target)))
            case "get", "log":
                return self._pods.log(self._find(target).body)
            case "create", "" if not target.name:
                return self._create(request, target, renderer, writer)
            case "create", "eviction":
                return self._pods.evict(target, self._find(target).body, intake.decoded(request), dry=intake.dry(request))
            case "create", "binding":
                return self._pods.bind(self._find(target).body, intake.decoded(request))
            case "update", "" | "status" | "finalize" if target.name:
                return self._update(request, target, renderer, writer)
            case "patch", "" | "status" if target.name and intake.is_apply(request):
                return self._apply(request, target, renderer)
            case "patch", "" | "status" if target.name:
                return self._patch(request, target, renderer, writer)
            case "delete", "":
                return self._removal.one(request, target, renderer)
            case "deletecollection", "":
                return self._removal.all(request, target, renderer)
        raise errors.method_not_allowed()

    def _renderer(self, request: Request, target: Target) -> Renderer:
        shape = form(request.headers.get("accept", ""))
        return Renderer(target.resource, shape, self._clock, request.query.get("includeObject", "Metadata"))

    def _find(self, target: Target) -> Record:
        return removal.found(self.store, target)

    def _create(self, request: Request, target: Target, renderer: Renderer, writer: Writer | None) -> Response:
        resource = target.resource
        body = writes.accepted(resource, intake.decoded(request))
        if writer is not None:
            body = intake.checked(request, resource, body)
        if resource is NEW_EVENTS:
            body = events_view.to_core(body)
        if resource.key == EVENTS.key:
            body = events_view.completed(body)
        fresh = self._new(target, body)
        if writer is not None:
            fresh = managed.updated(_stored(resource), None, fresh, writer)
        return self._made(request, resource, fresh, renderer)

    def _new(self, target: Target, body: Json) -> Json:
        """A new object, checked against what is there."""
        resource, namespace = target.resource, target.namespace or ("default" if target.resource.namespaced else "")
        if resource.namespaced:
            self._open_namespace(namespace)
        fresh = writes.created(resource, body, namespace, self._clock())
        name = fresh["metadata"]["name"]
        if self.store.get(resource, namespace, name) is not None:
            raise errors.already_exists(resource, name)
        return fresh

    def _made(self, request: Request, resource: Resource, fresh: Json, renderer: Renderer) -> Response:
        record = Record(0, fresh) if intake.dry(request) else self.store.put(resource, fresh)
        return Response(201, renderer.one(record))

    def _apply(self, request: Request, target: Target, renderer: Renderer) -> Response:
        """Server-side apply: makes the object where there is none."""
        resource, writer, config = target.resource, intake.writer(request, target, self._clock()), intake.config(request, target)
        accepted = writes.accepted(resource, config)
        old = self.store.get(resource, target.namespace, target.name)
        if old is None:
            if target.subresource:
                raise errors.not_found(resource, target.name)
            owned = managed.applied(resource, None, accepted, writer, force=False)["metadata"]["managedFields"]
            fresh = self._new(target, accepted)
            fresh["metadata"]["managedFields"] = owned
            return self._made(request, resource, fresh, renderer)
        whole = managed.applied(resource, old.body, accepted, writer, force=request.query.get("force") == "true")
        owned = whole["metadata"]["managedFields"]
        new = writes.replaced(resource, old.body, whole, subresource=target.subresource)
        new["metadata"]["managedFields"] = owned
        return Response(200, renderer.one(self._save(request, target, old, new)))

    def _open_namespace(self, name: str) -> None:
        found = self.store.get(NAMESPACES, "", name)
        if found is None:
            raise errors.not_found(NAMESPACES, name)
        if "deletionTimestamp" in found.body["metadata"]:
            message = f"unable to create new content in namespace {name} because it is being terminated"
            raise ApiError(403, "Forbidden", message, {"name": name, "kind": "namespaces"})

    def _update(self, request: Request, target: Target, renderer: Renderer, writer: Writer | None) -> Response:
        old = self._find(target)
        body = writes.accepted(target.resource, intake.decoded(request))
        if writer is not None:
            body = intake.checked(request, target.resource, body)
        if target.resource is NEW_EVENTS:
            body = events_view.to_core(body)
        new = writes.replaced(target.resource, old.body, body, subresource=target.subresource, put=True)
        if writer is not None:
            new = managed.updated(_stored(target.resource), old.body, new, writer)
        return Response(200, renderer.one(self._save(request, target, old, new)))

    def _patch(self, request: Request, target: Target, renderer: Renderer, writer: Writer | None) -> Response:
        resource, old = target.resource, self._find(target)
        shown = events_view.to_new(old.body) if resource is NEW_EVENTS else old.body
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, **shown}
        patch = intake.decoded(request, patch=True)
        body = writes.accepted(resource, patches.patched(request.headers.get("content-type", ""), whole, patch))
        if writer is not None:
            body = intake.checked(request, resource, body)
        if resource is NEW_EVENTS:
            body = events_view.to_core(body)
        new = writes.replaced(resource, old.body, body, subresource=target.subresource)
        if writer is not None:
            new = managed.updated(_stored(resource), old.body, new, writer)
        return Response(200, renderer.one(self._save(request, target, old, new)))

    def _save(self, request: Request, target: Target, old: Record, new: Json) -> Record:
        """Write the next state: none where nothing changed, gone where the last finalizer went."""
        if new == old.body:
            return old
        if intake.dry(request):
            return Record(old.version, new)
        new = copy(new)
        metadata = new["metadata"]
        waiting = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
        held = metadata.get("finalizers") or (new.get("spec") or {}).get("finalizers")
        if waiting and not held:
            return self.store.remove(target.resource, new)
        return self.store.put(target.resource, new)

    def expire_events(self) -> None:
        """Forget Events an hour after they were last written, as the real server's storage does."""
        oldest = self._clock() - EVENT_LIFE
        for _, record in list(self.store.records(EVENTS)):
            written = instant(record.body["metadata"].get("creationTimestamp"))
            seen = instant(record.body.get("lastTimestamp")) or written
            if seen is not None and written is not None and max(seen, written) < oldest:
                self.store.remove(EVENTS, copy(record.body))


def _stored(resource: Resource) -> Resource:
    """The resource whose shape is stored: of the two kinds of Event the core one."""
    return EVENTS if resource is NEW_EVENTS else resource
