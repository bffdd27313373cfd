"""What the server says it can do: groups, resources, version, and the OpenAPI that `kubectl apply` and `explain` read."""

from console.simulator.kubernetes import schemas
from console.simulator.kubernetes.resources import RESOURCES, VERBS, Resource
from console.simulator.values import Json

VERSION = "v1.36.3"
CHECKED = ("dryRun", "fieldManager", "fieldValidation", "force")
SUBRESOURCES: dict[str, Json] = {
    "pods/binding": {"kind": "Binding", "verbs": ["create"]},
    "pods/eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
    "pods/log": {"kind": "Pod", "verbs": ["get"]},
    "namespaces/finalize": {"kind": "Namespace", "verbs": ["update"]},
}


def version(number: str) -> Json:
    """`/version`."""
    major, minor = number.removeprefix("v").split(".")[:2]
    return {
        "major": major, "minor": minor, "gitVersion": number, "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    }  # fmt: skip


def groups() -> dict[str, str]:
    """Each named group and its one version."""
    return {resource.group: resource.version for resource in RESOURCES if resource.group}


def _group(name: str, version_: str) -> Json:
    at = {"groupVersion": f"{name}/{version_}", "version": version_}
    return {"name": name, "versions": [at], "preferredVersion": at}


def _resource(resource: Resource) -> list[Json]:
    entry: Json = {
        "name": resource.plural, "singularName": resource.kind.lower(), "namespaced": resource.namespaced, "kind": resource.kind,
        "verbs": [verb for verb in VERBS if not (verb == "deletecollection" and resource.plural == "namespaces")],
    }  # fmt: skip
    if resource.short:
        entry["shortNames"] = list(resource.short)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    more: list[Json] = []
    if resource.status:
        more.append({"name": f"{resource.plural}/status", "kind": resource.kind, "verbs": ["get", "patch", "update"]})
    more += [{"name": f"{resource.plural}/{sub}", **SUBRESOURCES[f"{resource.plural}/{sub}"]} for sub in resource.subresources]
    return [entry, *({"singularName": "", "namespaced": resource.namespaced, **item} for item in more)]


def _resources(group: str, version_: str) -> Json:
    found = [entry for item in RESOURCES if (item.group, item.version) == (group, version_) for entry in _resource(item)]
    name = f"{group}/{version_}" if group else version_
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}


def document(path: str, host: str, number: str) -> Json | None:
    """The discovery document at a path, None where there is none."""
    path = "/" + path.strip("/")
    parts = path.strip("/").split("/")
    named = groups()
    if path == "/version":
        return version(number)
    if path == "/api":
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
    if path == "/api/v1":
        return _resources("", "v1")
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*item) for item in named.items()]}
    if path == "/openapi/v3":
        versions = ["api/v1", *(f"apis/{name}/{at}" for name, at in named.items())]
        return {"paths": {at: {"serverRelativeURL": f"/openapi/v3/{at}"} for at in versions}}
    if parts[0] == "apis" and parts[1] in named:
        if len(parts) == 2:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], named[parts[1]])}
        if len(parts) == 3 and parts[2] == named[parts[1]]:
            return _resources(parts[1], parts[2])
    if path.startswith("/openapi/v3/"):
        return _openapi(path.removeprefix("/openapi/v3"))
    return None


def _openapi(prefix: str) -> Json | None:
    """OpenAPI of one group: its kinds' paths, as far as clients look at them, and the schemas."""
    paths: Json = {}
    served = [item for item in RESOURCES if (f"/apis/{item.api_version}" if item.group else "/api/v1") == prefix]
    for resource in served:
        where = "/namespaces/{namespace}" if resource.namespaced else ""
        about = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        checks = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in CHECKED]
        said = {schemas.KIND: about, "responses": {"200": {"description": "OK"}}}
        patch = {"x-kubernetes-action": "patch", "parameters": checks, **said}
        paths[f"{prefix}{where}/{resource.plural}/{{name}}"] = {"get": {"x-kubernetes-action": "get", **said}, "patch": patch}
    if not paths:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "components": {"schemas": schemas.closure(map(schemas.name_of, served))},
    }
