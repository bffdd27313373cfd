"""The simulator's settings, from the environment; and what is in its pools, from `fixtures/simulator.json` or a file like it."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from console import env
from console.simulator.provider.demand import Curve
from console.simulator.values import Json, loads

FIXTURE = env.ROOT / "fixtures" / "simulator.json"


@dataclass(frozen=True)
class Settings:
    """What a simulator is started with."""

    port: int
    state: Path
    boot_seconds: float
    demand: bool
    seed: int
    fixture: Json
    real: bool = False  # whether a new cluster gets a real control plane

    @property
    def origin(self) -> str:
        """Its address. Loopback only: it lets everyone in."""
        return f"http://127.0.0.1:{self.port}"

    def pools(self) -> dict[tuple[str, str], tuple[int, Curve]]:
        """Total and demand of each pool."""
        return {
            (item["region"], item["gpu_type"]): (item["total"], Curve(item["others"], tuple(item["first"])))
            for item in self.fixture["pools"]
        }

    def workloads(self, cluster_name: str) -> list[Json]:
        """What runs on a cluster of that name."""
        known: dict[str, list[Json]] = self.fixture["workloads"]
        return [*known.get("*", []), *known.get(cluster_name, [])]


def read() -> Settings:
    """From the environment. Raises env.SettingError."""
    return Settings(
        port=env.port("HALFTIDE_SIM_PORT", 8001),
        state=env.state_dir(),
        boot_seconds=env.seconds("HALFTIDE_SIM_BOOT_SECONDS", 6.0, 0.0, 3600.0),
        demand=env.boolean("HALFTIDE_SIM_DEMAND", True),
        seed=env.integer("HALFTIDE_SIM_SEED", 1, 0, 2**31),
        fixture=loads(Path(env.text("HALFTIDE_SIM_FIXTURE", str(FIXTURE))).read_bytes()),
        real=env.boolean("HALFTIDE_SIM_REAL", False),
    )


def control_token(state: Path) -> str:
    """The control API's token, made at the first start."""
    path = state / "control-token"
    if not path.exists():
        state.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32), encoding="ascii")
    return path.read_text(encoding="ascii").strip()
