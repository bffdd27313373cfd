"""A control plane with what tests want of it beside: namespaces, accounts with few rights, and who asked for what."""

import json
import os
import ssl
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from console.runner.controlplane.files import kubeconfig
from console.runner.controlplane.plane import ControlPlane
from console.simulator.values import instant

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One answered request, as the audit log tells it. `body` is there for evictions and deletes of pods and nodes."""

    at: datetime
    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    uri: str
    agent: str
    body: Json


class Audit:
    """What was asked since this was made."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0

    def asked(self, user: str | None = None) -> list[Asked]:
        """All answered requests so far, or those of one user; a watch is there once it has ended."""
        with self._log.open("rb") as file:
            file.seek(self._start)
            rows = [json.loads(line) for line in file if line.endswith(b"\n")]
        every = [_asked(row) for row in rows]
        return [one for one in every if user in (None, one.user)]


def _asked(row: Json) -> Asked:
    about = row.get("objectRef") or {}
    at = instant(row["requestReceivedTimestamp"])
    assert at is not None
    names = {field: str(about.get(field) or "") for field in ("resource", "subresource", "namespace", "name")}
    return Asked(
        at=at, user=row["user"].get("username", ""), verb=row["verb"], code=(row.get("responseStatus") or {}).get("code", 0),
        uri=row["requestURI"], agent=row.get("userAgent", ""), body=row.get("requestObject") or {}, **names,
    )  # fmt: skip


@dataclass(frozen=True)
class Account:
    """A ServiceAccount with a token; `user` is its name in the audit log."""

    user: str
    token: str
    kubeconfig: str


class Admin:
    """What tests do in a cluster, real or simulated, as its admin and by plain HTTP."""

    http: httpx.Client

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Json:
        """The admin's request; fails the test where it is refused."""
        content = None if body is None else json.dumps(body)
        answer = self.http.request(method, path, content=content, headers={"content-type": kind})
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return dict(answer.json())

    @contextmanager
    def namespace(self, stem: str = "t") -> Iterator[str]:
        """A namespace of this test's own, with its default ServiceAccount; it is told to go at the end."""
        name = f"{stem}-{uuid.uuid4().hex[:8]}"
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        # Pods may be made at once: admission would else wait for the controller.
        self.http.post(f"/api/v1/namespaces/{name}/serviceaccounts", json={"metadata": {"name": "default"}})
        try:
            yield name
        finally:
            self.http.delete(f"/api/v1/namespaces/{name}")


class Plane(Admin, ControlPlane):
    """A running control plane for tests."""

    @cached_property
    def http(self) -> httpx.Client:
        """The admin's plain HTTP client."""
        return self.client(self.token)

    def client(self, token: str) -> httpx.Client:
        """A plain HTTP client with this token."""
        headers = {"authorization": f"Bearer {token}"}
        trust = ssl.create_default_context(cafile=self.authority)
        return httpx.Client(base_url=self.url, headers=headers, verify=trust, timeout=30, trust_env=False)

    def kubectl(self, *words: str, feed: str | None = None) -> subprocess.CompletedProcess[str]:
        """The admin's kubectl, to its end."""
        return subprocess.run(
            [self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *words],
            capture_output=True, text=True, input=feed, timeout=120, check=False, env={**os.environ, "HOME": str(self.home)},
        )  # fmt: skip

    def uncordon(self, node: str) -> None:
        """As a person does it."""
        assert self.kubectl("uncordon", node).returncode == 0

    def audit(self) -> Audit:
        """What is asked from now on."""
        return Audit(self.audit_log)

    def account(self, namespace: str, *rules: Json, name: str = "halftide") -> Account:
        """A ServiceAccount that may do what `rules` (of a ClusterRole) say, everywhere in the cluster, and nothing else."""
        role = f"{namespace}-{name}"
        rbac, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        self.ask("POST", f"{rbac}/clusterroles", {"metadata": {"name": role}, "rules": list(rules)})
        bind = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}, "subjects": [subject]}
        self.ask("POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": role}, **bind})
        wanted = {"spec": {"expirationSeconds": 3600}}
        made = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", wanted)
        token = made["status"]["token"]
        return Account(
            f"system:serviceaccount:{namespace}:{name}", token, kubeconfig(self.url, self.authority.read_bytes(), token)
        )
