"""Deletes, of one object or of all that a list would show."""

from collections.abc import Callable
from datetime import datetime

from console.simulator.kubernetes import deletion, errors, intake, listing
from console.simulator.kubernetes.paths import Target
from console.simulator.kubernetes.render import Renderer
from console.simulator.kubernetes.store import Record, Store
from console.simulator.values import Json, copy, loads
from console.simulator.web import Request, Response, answer


def found(store: Store, target: Target) -> Record:
    """The object that is meant. Raises the API's 404."""
    record = store.get(target.resource, target.namespace, target.name)
    if record is None:
        raise errors.not_found(target.resource, target.name)
    return record


def _options(request: Request) -> deletion.Options:
    body: Json = {}
    if request.body:
        body = intake.decoded(request)
        if not isinstance(body, dict):
            raise errors.bad_request("DeleteOptions: no JSON object")
    return deletion.options(body, request.query)


class Removal:
    """The deletes of one cluster. All raise ApiError."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def one(self, request: Request, target: Target, renderer: Renderer) -> Response:
        """A DELETE of an object."""
        record, gone = self.remove(target, _options(request), dry=intake.dry(request))
        resource = target.resource
        if resource.plural in ("pods", "namespaces") or not gone:
            return Response(200, renderer.one(record))
        group = {"group": resource.group} if resource.group else {}
        details = {"name": target.name, **group, "kind": resource.plural, "uid": record.body["metadata"]["uid"]}
        return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    def all(self, request: Request, target: Target, renderer: Renderer) -> Response:
        """A DELETE of a collection."""
        asked = _options(request)
        plain = Renderer(target.resource, "plain", self._clock)
        records = []
        for item in loads(listing.respond(self._store, target, request.query, plain).body)["items"]:
            metadata = item["metadata"]
            one = Target(target.resource, metadata.get("namespace", ""), metadata["name"])
            records.append(self.remove(one, asked, dry=intake.dry(request))[0])
        return Response(200, renderer.many(records, {"resourceVersion": str(self._store.version)}))

    def remove(self, target: Target, asked: deletion.Options, *, dry: bool = False) -> tuple[Record, bool]:
        """Delete one object as far as it goes now; whether it is gone."""
        record = found(self._store, target)
        if problem := deletion.check(target.resource, record.body, asked):
            raise problem
        decision = deletion.decide(target.resource, record.body, asked, self._clock())
        if decision.body is None or dry:
            return record, decision.gone
        if decision.gone:
            return self._store.remove(target.resource, copy(decision.body)), True
        return self._store.put(target.resource, copy(decision.body)), False
