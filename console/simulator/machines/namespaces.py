"""The namespace controller: what is in a namespace that is to go goes first, then the namespace."""

from console.simulator.kubernetes.resources import NEW_EVENTS, RESOURCES
from console.simulator.machines.client import Call, Client, collection

NAMESPACES = "/api/v1/namespaces"


async def sweep(client: Client) -> None:
    """One look. Raises what the client raises."""
    listing = await client.get(NAMESPACES)
    for body in listing["items"]:
        if "deletionTimestamp" in body["metadata"]:
            name = body["metadata"]["name"]
            if await _emptied(client, name):
                body["spec"] = {"finalizers": []}
                await client.do(Call("PUT", f"{NAMESPACES}/{name}/finalize", body))


async def _emptied(client: Client, name: str) -> bool:
    """Ask for everything's deletion; whether nothing was there."""
    empty = True
    for resource in RESOURCES:
        if resource.namespaced and resource is not NEW_EVENTS:
            path = collection(resource.plural, name, resource.api_version if resource.group else "")
            if (await client.get(path))["items"]:
                empty = False
                await client.do(Call("DELETE", path, {}))
    return empty
