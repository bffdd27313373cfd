"""The simulator's provider: what a real one answers, and what is made of answers that are none."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from console.capacity.providers.base import NoCapacity, Order, ProviderError, Refused, Standing, Unclear
from console.capacity.providers.simulated import Simulated
from tests.simulator.conftest import Simulation

REGION, GPU_TYPE = "eu-north-1", "H200_SXM"


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    running = Simulation(tmp_path_factory.mktemp("simulator")).start()
    yield running
    running.end()


def provider_of(simulation: Simulation) -> Simulated:
    return Simulated(simulation.url, simulation.state / "control-token")


def order(cluster: uuid.UUID) -> Order:
    token = uuid.uuid4()
    return Order(token, REGION, GPU_TYPE, cluster, f"gpu-{token.hex[:8]}", "preemptible", {"halftide.io/machine": str(token)})


async def test_a_machines_whole_life(simulation: Simulation) -> None:
    simulation.control("POST", "demand", {"region": REGION, "gpu_type": GPU_TYPE, "machines": 0, "auto": False})
    async with provider_of(simulation) as provider:
        cluster = uuid.uuid4()
        made = await provider.create_cluster(cluster, "life", REGION)
        assert made == await provider.create_cluster(cluster, "life", REGION)
        assert made.server in made.kubeconfig
        assert made.kubeconfig not in repr(made)

        before = await provider.pool(REGION, GPU_TYPE)
        assert before in await provider.pools()
        wanted = order(cluster)
        assert await provider.look_up(wanted.token) is None
        first, second = await provider.launch(wanted), await provider.launch(wanted)
        assert first.provider_id == second.provider_id
        after = await provider.pool(REGION, GPU_TYPE)
        assert (after.free, after.version > before.version) == (before.free - 1, True)
        assert [machine.token for machine in await provider.list(REGION, GPU_TYPE) if machine.there] == [wanted.token]

        await provider.terminate(wanted.token)
        await provider.terminate(wanted.token)
        await provider.terminate(uuid.uuid4())


async def test_a_pool_that_is_full_and_one_that_owes(simulation: Simulation) -> None:
    async with provider_of(simulation) as provider:
        cluster = uuid.uuid4()
        await provider.create_cluster(cluster, "full", REGION)
        held = await provider.launch(order(cluster))
        assert held.there
        total = (await provider.pool(REGION, GPU_TYPE)).total
        simulation.control("POST", "demand", {"region": REGION, "gpu_type": GPU_TYPE, "machines": total, "auto": False})
        state = await provider.pool(REGION, GPU_TYPE)
        assert (state.free, state.owed >= 1) == (0, True)
        with pytest.raises(NoCapacity):
            await provider.launch(order(cluster))
        with pytest.raises(Refused, match="404 NoCluster"):
            await provider.launch(order(uuid.uuid4()))
        with pytest.raises(Refused, match="NoPool"):
            await provider.pool("mars", GPU_TYPE)


async def test_a_wrong_token_and_a_simulator_that_is_away_are_told_apart(simulation: Simulation, tmp_path: Path) -> None:
    async with Simulated(simulation.url, tmp_path / "no-token") as provider:
        with pytest.raises(Refused, match="401"):
            await provider.pools()
    async with Simulated("http://127.0.0.1:1", tmp_path / "no-token") as provider:
        with pytest.raises(Unclear, match="does not answer"):
            await provider.pools()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(500, json={}), Unclear),
        (httpx.Response(503, text="<html>"), Unclear),
        (httpx.Response(429, json={}), Unclear),
        (httpx.Response(200, text="not json"), Unclear),
        (httpx.Response(200, json=[]), Unclear),
        (httpx.Response(200, json={"token": "x"}), Unclear),
        (httpx.Response(200, json={"token": "x", "provider_id": "p", "state": "dreaming"}), Unclear),
        (httpx.Response(409, json={"reason": "NoCapacity"}), NoCapacity),
        (httpx.Response(409, json={"reason": "Other"}), Refused),
        (httpx.Response(400, json=["odd"]), Refused),
        (httpx.ReadTimeout("slow"), Unclear),
        (httpx.RemoteProtocolError("cut off"), Unclear),
    ],
)
async def test_a_launch_that_is_not_clearly_refused_may_have_happened(
    answer: httpx.Response | httpx.HTTPError, error: type[ProviderError], tmp_path: Path
) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, httpx.HTTPError):
            raise answer
        return answer

    async with Simulated("http://simulator", tmp_path / "token", transport=httpx.MockTransport(respond)) as provider:
        with pytest.raises(ProviderError) as raised:
            await provider.launch(order(uuid.uuid4()))
        assert type(raised.value) is error


async def test_a_list_with_one_machine_that_cannot_be_read_is_no_list(tmp_path: Path) -> None:
    """Acting on a part of a list would take the rest for gone."""
    good = {"token": str(uuid.uuid4()), "provider_id": "p", "state": "running"}
    bodies = iter([{"machines": [good, {"token": 7}]}, {"machines": [good]}])
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=next(bodies)))
    async with Simulated("http://simulator", tmp_path / "token", transport=transport) as provider:
        with pytest.raises(Unclear):
            await provider.list(REGION, GPU_TYPE)
        assert [machine.standing for machine in await provider.list(REGION, GPU_TYPE)] == [Standing.RUNNING]
