"""What a start is going to use, read from the environment once and refused before anything runs."""

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from console import env
from console.runner import ports
from console.runner.errors import RunnerError

# What a start makes up for the commands beside it, and what a person may have set for all of them.
OWN_PREFIX = "HALFTIDE_"
ADDRESSES = ("DATABASE_URL", "REDIS_URL")

# `make up KUBERNETES=real`: a word of the command rather than a setting of the console, so it has no prefix.
KUBERNETES = "KUBERNETES"


@dataclass(frozen=True)
class Plan:
    """The demo's ports, and the servers a person brought along (None: ours)."""

    state: Path
    port: int
    sim_port: int
    idp_port: int
    database_url: str | None
    redis_url: str | None
    real: bool = False  # each cluster of the demo gets a real control plane; its machines stay simulated

    @property
    def address(self) -> str:
        """Where the page answers."""
        return f"http://127.0.0.1:{self.port}"


def read_plan(state: Path) -> Plan:
    """Read the settings of a start. `runtime.env` of an earlier one is gone by now, so nothing of it sticks."""
    refuse_production()
    return Plan(
        state=state,
        port=env.port("HALFTIDE_PORT", 8000),
        sim_port=env.port("HALFTIDE_SIM_PORT", 8001),
        idp_port=env.port("HALFTIDE_IDP_PORT", 8002),
        database_url=_optional_url("DATABASE_URL", ("postgresql", "postgres")),
        redis_url=_optional_url("REDIS_URL", ("redis", "rediss", "unix")),
        real=_real(),
    )


def _real() -> bool:
    chosen = env.text(KUBERNETES, "simulated")
    if chosen not in ("simulated", "real"):
        raise RunnerError(f"{KUBERNETES} is simulated (the default) or real, not {chosen!r}.")
    return chosen == "real"


def _optional_url(name: str, schemes: tuple[str, ...]) -> str | None:
    return env.url(name, schemes=schemes) if env.raw(name) else None


def refuse_production() -> None:
    """The demo's people share one printed password and its keys are public, so it is for this machine alone."""
    if not env.boolean("HALFTIDE_DEMO", True):
        raise RunnerError("`make up` is the demo and HALFTIDE_DEMO says no: for production see docs/operations.md.")
    bind = env.text("HALFTIDE_BIND", "127.0.0.1")
    try:
        loopback = bind == "localhost" or ipaddress.ip_address(bind).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise RunnerError(f"The demo has public passwords and listens on loopback only: unset HALFTIDE_BIND={bind}.")


def require_ports(plan: Plan) -> None:
    """Refuse when a port is taken, or given twice."""
    wanted = {"HALFTIDE_PORT": plan.port, "HALFTIDE_SIM_PORT": plan.sim_port, "HALFTIDE_IDP_PORT": plan.idp_port}
    for variable, port in wanted.items():
        twice = next((other for other, taken in wanted.items() if taken == port and other != variable), None)
        if twice:
            raise RunnerError(f"{variable} and {twice} are both {port}: give each a port of its own.")
        ports.require_free(variable, port)


def runtime(plan: Plan, database: str, idp_database: str, redis: str, secrets: dict[str, str]) -> dict[str, str]:
    """What every process of this installation sees, and what `manage.py` beside it reads from `runtime.env`."""
    chosen = {name: value for name, value in os.environ.items() if name.startswith(OWN_PREFIX) or name in ADDRESSES}
    # A secret that a person set wins over the one made for the demo; so does one in a file.
    made = {name: value for name, value in secrets.items() if f"{name}_FILE" not in chosen}
    return {
        **made,
        **chosen,
        "HALFTIDE_DEMO": "1",
        "HALFTIDE_STATE": str(plan.state),
        "HALFTIDE_PORT": str(plan.port),
        "HALFTIDE_SIM_PORT": str(plan.sim_port),
        "HALFTIDE_IDP_PORT": str(plan.idp_port),
        "HALFTIDE_SIM_REAL": "1" if plan.real else "0",
        "HALFTIDE_PUBLIC_URL": chosen.get("HALFTIDE_PUBLIC_URL") or plan.address,
        "DATABASE_URL": database,
        "HALFTIDE_IDP_DATABASE_URL": idp_database,
        "REDIS_URL": redis,
    }
