"""The simulator's control API, as `manage.py sim` speaks to it: the address of the settings, the token of the state folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

TIMEOUT = 10.0  # seconds


class SimError(Exception):
    """It was not done; the text says why, to a person."""


@dataclass(frozen=True)
class Control:
    """One simulator. Every method raises SimError."""

    url: str
    token_file: Path

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One request below `/control/`; the JSON of its answer."""
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise SimError(f"There is no simulator here: {self.token_file} cannot be read. `make up` starts one.") from error
        headers = {"Authorization": f"Bearer {token}"}
        try:
            answer = httpx.request(
                method, f"{self.url}/control/{path}", json=body, headers=headers, timeout=TIMEOUT, trust_env=False
            )
        except httpx.HTTPError as error:
            raise SimError(f"The simulator does not answer at {self.url}. Is `make up` running?") from error
        try:
            said = answer.json()
        except ValueError:
            said = {}
        if answer.is_error:
            why = said.get("message") or said.get("reason") or f"it answered {answer.status_code}"
            raise SimError(f"The simulator refuses: {why}")
        return said

    def clusters(self, name: str = "") -> dict[str, str]:
        """Names by id of the cluster with this name or id, or of all."""
        there = {one["id"]: one["name"] for one in self.ask("GET", "clusters")["clusters"]}
        found = {key: title for key, title in there.items() if name in ("", key, title)}
        if name and not found:
            known = ", ".join(sorted(there.values())) or "none yet"
            raise SimError(f"The simulator has no cluster named {name}. It has: {known}.")
        return found

    def pool(self, wanted: str = "") -> dict[str, Any]:
        """The pool named `region/gpu_type`, or the first one."""
        pools: list[dict[str, Any]] = self.ask("GET", "pools")["pools"]
        for pool in pools:
            if wanted in ("", title(pool)):
                return pool
        raise SimError(f"The simulator has no pool {wanted}. It has: {', '.join(title(pool) for pool in pools)}.")

    def machines(self, pool: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Machines that are there, of a pool or of all."""
        query = f"?region={pool['region']}&gpu_type={pool['gpu_type']}" if pool else ""
        return [one for one in self.ask("GET", f"machines{query}")["machines"] if one["state"] != "terminated"]


def title(pool: dict[str, Any]) -> str:
    return f"{pool['region']}/{pool['gpu_type']}"


def number(count: int, what: str) -> str:
    """1 machine, 2 machines."""
    return f"{count} {what}" + ("" if count == 1 else "s")
