"""A cluster whose API is a real Kubernetes: only its machines and workloads are ours, as clients like any other.

What the simulator plays elsewhere, the API itself, the scheduler, the controllers, is there already. Nothing here stands between
that API and whoever speaks to it, so there are no faults and no log of requests.
"""

import ssl

import httpx

from console.kube.errors import KubeconfigRefused
from console.kube.kubeconfig import Connection, parse
from console.simulator.identity import Identity
from console.simulator.machines.client import Client, Lanes
from console.simulator.machines.controllers import Onlooker


class Outside:
    """One such cluster. Raises KubeconfigRefused for a kubeconfig that cannot be used here."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.connection: Connection = parse(identity.kubeconfig)
        if not self.connection.token:
            raise KubeconfigRefused("The simulated machines need a kubeconfig with a token.")
        trust = ssl.create_default_context(cadata=self.connection.ca)
        headers = {"authorization": f"Bearer {self.connection.token}"}
        self._http = httpx.AsyncClient(timeout=10, transport=Lanes(trust), headers=headers)
        self.client = Client(self._http, self.connection.server)
        self.controllers = Onlooker(self.client)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._http.aclose()
