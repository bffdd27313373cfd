"""What `manage.py sim` does to Kubernetes APIs. A fault stands on the way to an API: the machines inside do not notice it."""

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from console.demo.control import Control, SimError, number, title


def put(control: Control, options: Namespace, fault: dict[str, Any]) -> str:
    """Add a fault to the cluster named, or to all. Returns the second half of a sentence: where, and for how long."""
    clusters = control.clusters(options.cluster)
    if not clusters:
        raise SimError("The simulator has no cluster yet.")
    limits = {"times": options.times, "for_seconds": options.seconds}
    body = fault | {name: value for name, value in limits.items() if value is not None}
    for key in clusters:
        control.ask("POST", "faults", body | {"cluster_id": key})
    until = " until `sim clear`"
    if options.seconds is not None:
        until = f" for {options.seconds:g} s"
    if options.times is not None:
        until = f", {number(options.times, 'time')} at most{until}"
    return f"{', '.join(sorted(clusters.values()))}{until}"


def expired(control: Control, options: Namespace) -> str:
    """410, as a status or inside a stream whose status is 200."""
    if options.how == "stream":
        where = put(control, options, {"kind": "expired", "verbs": ["watch"]})
        return f"Watches end with an ERROR event of code 410 on {where}."
    refusal = {"kind": "status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    where = put(control, options, refusal | {"verbs": ["list", "watch"]})
    return f"Lists and watches are answered with HTTP 410 on {where}."


def throttled(control: Control, options: Namespace) -> str:
    """429 of the API's own flow control."""
    fault = {"kind": "status", "code": 429, "reason": "TooManyRequests", "message": "the server is busy"}
    where = put(control, options, fault | {"retry_after": options.retry_after})
    return f"Every request is answered with 429 and Retry-After: {options.retry_after} on {where}."


def unauthorized(control: Control, options: Namespace) -> str:
    """401: the token is worth nothing any more."""
    where = put(control, options, {"kind": "status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"})
    return f"Every request is answered with 401 on {where}."


def forbidden(control: Control, options: Namespace) -> str:
    """403 for some verbs, on some resources or all."""
    what = f"{', '.join(options.verbs)} of {', '.join(options.resource) or 'everything'}"
    fault = {"kind": "status", "code": 403, "reason": "Forbidden", "message": f"Halftide may not {what}"}
    where = put(control, options, fault | {"verbs": options.verbs, "resources": options.resource})
    return f"{what} is answered with 403 on {where}."


def silent(control: Control, options: Namespace) -> str:
    """Open watches say nothing: no data, no error, no end."""
    return f"Watches stay open and say nothing on {put(control, options, {'kind': 'silent'})}."


def cut(control: Control, options: Namespace) -> str:
    """Streams end in the middle of an object."""
    return f"Watches are cut off in the middle of their next line on {put(control, options, {'kind': 'cut'})}."


def older(control: Control, options: Namespace) -> str:
    """Lists from a replica that has fallen behind, or from a backup."""
    where = put(control, options, {"kind": "older", "behind": options.changes})
    return f"Lists are as they were {number(options.changes, 'change')} ago on {where}."


def partial(control: Control, options: Namespace) -> str:
    """Lists of which only the first page arrives."""
    fault = {"kind": "partial", "code": 500, "reason": "InternalError", "message": "this page cannot be read"}
    return f"Lists come one object a page, and every page but the first fails with 500, on {put(control, options, fault)}."


def down(control: Control, options: Namespace) -> str:
    """No API at all."""
    return f"The API is down: 503 for every request, and open watches end, on {put(control, options, {'kind': 'down'})}."


def shifted(control: Control, options: Namespace) -> str:
    """The API's clock is wrong."""
    where = put(control, options, {"kind": "skew", "offset": options.offset})
    way = "ahead" if options.offset >= 0 else "behind"
    return f"The clock is {abs(options.offset)} s {way} on {where}."


def clear(control: Control, _options: Namespace) -> str:
    """Everything as the simulator was started with; machines stay as they are."""
    control.ask("POST", "clear")
    return "All faults are gone, and pools, demand and boots are as at the start. What died stays dead."


def overview(control: Control, _options: Namespace) -> str:
    """What there is and what is wrong with it."""
    return "\n".join(_lines(control))


def _lines(control: Control) -> Iterator[str]:
    names = control.clusters()
    for pool in control.ask("GET", "pools")["pools"]:
        yield f"pool {title(pool)}: {number(pool['total'], 'machine')}, {pool['free']} free, {pool['owed']} owed"
    for machine in control.machines():
        where = names.get(machine["cluster_id"], machine["cluster_id"])
        yield f"machine {machine['node_name']} of {where}: {machine['compute_class']}, {machine['state']}"
    fleet = control.ask("GET", "fleet")
    yield f"boots take about {fleet['boot_seconds']:g} s"
    for after in fleet["joins"]:
        yield "the next machine " + ("never registers" if after is None else f"registers {after:g} s late")
    for key, name in names.items():
        for fault in control.ask("GET", f"faults?cluster_id={key}")["faults"]:
            about = ", ".join(f"{field} {value}" for field, value in fault.items() if field != "kind" and value not in ([], ""))
            yield f"fault on {name}: {fault['kind']}" + (f" ({about})" if about else "")
