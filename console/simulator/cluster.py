"""One cluster: its API behind a token, a log of who asked what, and the faults that tests put in between."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from console.simulator import skew
from console.simulator.faults import Faults
from console.simulator.identity import Identity
from console.simulator.journal import Journal
from console.simulator.kubernetes.errors import unauthorized
from console.simulator.kubernetes.paths import Target, parse
from console.simulator.kubernetes.server import Api, verb_of
from console.simulator.kubernetes.store import Store
from console.simulator.machines.client import AGENT
from console.simulator.values import Json, loads, micro_stamp
from console.simulator.web import Request, Response, Stream

LOG = 5000  # requests remembered


@dataclass(frozen=True)
class Asked:
    """One request from outside. `body`: what an eviction or a deletion asked for, which says with how much grace."""

    at: str
    verb: str
    path: str
    query: str
    status: int
    user_agent: str
    body: Json


class Cluster:
    """A cluster as served under `/clusters/<id>`."""

    def __init__(self, identity: Identity, journal: Journal, clock: Callable[[], datetime], control_token: str) -> None:
        self.identity = identity
        self.store = Store(identity.id, journal)
        self.api = Api(self.store, clock, identity.version)
        self.faults = Faults()
        self.asked: deque[Asked] = deque(maxlen=LOG)
        self._clock = clock
        self._tokens = {identity.token, control_token}

    async def __call__(self, request: Request) -> Response | Stream:
        """Answer one request. Our own machines pass by log and faults."""
        if request.headers.get("user-agent") == AGENT:
            return await self.api(request, tracked=False)
        target = parse(request.path)
        verb = verb_of(request, target) if target else request.method.lower()
        resource = target.resource.plural if target else ""
        response = await self._guarded(request, target, verb, resource)
        agent = request.headers.get("user-agent", "")
        shown = "&".join(f"{key}={value}" for key, value in request.query.items())
        options = _options(request) if verb == "delete" or request.path.endswith("/eviction") else {}
        self.asked.append(Asked(micro_stamp(self._clock()), verb, request.path, shown, response.status, agent, options))
        return skew.told(response, self.faults.offset, self._clock())

    async def _guarded(self, request: Request, target: Target | None, verb: str, resource: str) -> Response | Stream:
        given = request.headers.get("authorization", "")
        if given and given.removeprefix("Bearer ") not in self._tokens:
            return unauthorized().response()
        if instead := await self.faults.before(verb, resource):
            return instead
        request = skew.heard(request, self.faults.offset)
        if target is not None and verb == "list":
            asked = self.faults.asked(request, resource, self.store.oldest(target.resource), self.store.version)
            if isinstance(asked, Response):
                return asked
            request = asked
        response = await self.api(request)
        if isinstance(response, Stream):
            return Stream(self.faults.through(response.chunks, resource), response.content_type)
        return response


def _options(request: Request) -> Json:
    try:
        body = loads(request.body or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
