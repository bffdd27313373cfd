"""A real identity provider (the demo's, a process of its own) and a browser that keeps cookies for both sides.

Loaded before Django stands (the run's own conftest sets it up), so models are asked for by name.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit, urlunsplit

import httpx
import psycopg
import pytest
from django.apps import apps
from django.test import Client
from django.utils.module_loading import import_string
from psycopg import sql

from console.accounts import environment
from tests.accounts.stub import CLIENT, Stub

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1:18000"
CONSOLE = f"http://{HOST}"
SECRET = "a secret between these two"


@dataclass
class Idp:
    issuer: str
    database: str

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.database, autocommit=True) as server:
            server.execute(statement, values)

    def leave_groups(self, person: str) -> None:
        self.execute("DELETE FROM auth_user_groups WHERE user_id = (SELECT id FROM auth_user WHERE username = %s)", person)

    def join(self, person: str, group: str) -> None:
        self.execute(
            "INSERT INTO auth_user_groups (user_id, group_id) SELECT u.id, g.id FROM auth_user u, auth_group g"
            " WHERE u.username = %s AND g.name = %s ON CONFLICT DO NOTHING",
            person,
            group,
        )


@pytest.fixture(scope="session")
def idp_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Idp]:
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = f"test_idp_{os.getpid()}"
    database = urlunsplit(parts._replace(path=f"/{name}"))
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world = {
        **os.environ,
        "HALFTIDE_DEMO": "1",
        "HALFTIDE_STATE": str(tmp_path_factory.mktemp("idp")),
        "HALFTIDE_IDP_DATABASE_URL": database,
        "HALFTIDE_IDP_PORT": str(port),
        "HALFTIDE_PUBLIC_URL": CONSOLE,
        "HALFTIDE_OIDC_CLIENT_SECRET": SECRET,
        "DJANGO_SETTINGS_MODULE": "console.idp.settings",
    }
    for command in (["migrate", "-v0"], ["seed_idp"]):
        subprocess.run([sys.executable, "-m", "django", *command], env=world, cwd=ROOT, check=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "console.idp.asgi:application", "--port", str(port), "--log-level", "warning"],
        env=world,
        cwd=ROOT,
    )
    issuer = f"http://127.0.0.1:{port}"
    await_answer(process, f"{issuer}/.well-known/openid-configuration")
    yield Idp(issuer, database)
    process.terminate()
    process.wait(timeout=10)
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def await_answer(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=1).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


@pytest.fixture
def console(settings, db) -> None:
    """The console under the name the provider knows, with the small pages behind its door, and no provider yet."""
    settings.PUBLIC_URL = CONSOLE
    settings.PUBLIC_HOST = HOST
    settings.ROOT_URLCONF = "tests.accounts.pages"
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {**settings.SOCIALACCOUNT_PROVIDERS["openid_connect"], "APPS": []}}
    import_string("console.accounts.oidc.discovery.published").cache_clear()


@pytest.fixture
def idp(idp_process: Idp, console: None, settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Idp]:
    monkeypatch.setenv("HALFTIDE_OIDC_CLIENT_SECRET", SECRET)
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] = [environment.demo(idp_process.issuer)]
    for slug in ("aurora", "borealis"):
        apps.get_model("accounts", "Project").objects.create(name=slug.title(), slug=slug)
    idp_process.execute("DELETE FROM allauth_idp_oidc_token")
    yield idp_process
    for person, group in (("ada", "halftide-admins"), ("olu", "halftide-operators"), ("vic", "aurora-viewers")):
        idp_process.join(person, group)


@dataclass
class Browser:
    """Follows redirects over both sides, as a browser would; each side keeps its own cookies."""

    console: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True, headers={"host": HOST}))
    outside: httpx.Client = field(default_factory=httpx.Client)
    visited: list[str] = field(default_factory=list)

    def go(self, url: str):
        """GET, then wherever it leads; returns the console's last answer, or the provider's page."""
        for _ in range(10):
            self.visited.append(url)
            ours = url.startswith(("/", CONSOLE))
            answer = self.console.get(url.removeprefix(CONSOLE)) if ours else self.outside.get(url)
            if answer.status_code not in (301, 302, 303):
                return answer
            url = urljoin(CONSOLE + url if url.startswith("/") else url, answer.headers["Location"])
        raise AssertionError(f"redirected in circles: {self.visited}")

    def post(self, url: str, **form: str):
        token = self.console.cookies["halftide_csrf"].value
        answer = self.console.post(url, {**form, "csrfmiddlewaretoken": token})
        return self.go(answer.headers["Location"]) if answer.status_code == 302 else answer

    def sign_in(self, person: str, after: str = "/"):
        page = self.console.get("/sign-in/", {"next": after})
        assert re.search(rf'name="login_hint" value="{person}"', page.content.decode())
        return self.post("/oidc/demo/login/", login_hint=person, next=after)

    def sign_out(self):
        self.console.get("/sign-in/")
        return self.post("/sign-out/")


@pytest.fixture
def browser() -> Browser:
    return Browser()


@pytest.fixture
def stub(console: None, settings) -> Iterator[Stub]:
    """A provider that lies on command, set up in the console under the id `stub`."""
    made = Stub()
    server = made.serve()
    rules = environment.role_map("rules", ("ml=operator", "sre=fleet"))
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] = [
        {
            "provider_id": "stub",
            "name": "Stub",
            "client_id": CLIENT,
            "secret": "hush",
            "settings": {"server_url": made.issuer, "rules": rules},
        }
    ]
    yield made
    server.shutdown()
    server.server_close()
