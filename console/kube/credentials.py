"""How a request says who we are, and how the connection is encrypted.

A bound service-account token ends after about an hour and its file is replaced; a process that read it once is locked out for
ever. So a token file is read for each request (tens of microseconds), and a command's token is asked for anew on a 401.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import orjson
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import Cluster, User

from console.kube.errors import KubeconfigRefused, Unauthorized
from console.kube.fields import mapping, text
from console.kube.kubeconfig import Command, Connection, encoded

_UNAUTHORIZED = 401

# A credential command that has not answered by then will not; seconds.
_COMMAND_LIMIT = 20

# All of our environment that a credential command gets: no database address, no key of ours.
_COMMAND_ENVIRONMENT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY")

# A JWT is a few KB; Azure's with many groups are the longest.
_TOKEN_CHARS = 64 * 1024


class FixedToken(httpx2.Auth):
    """A token out of the kubeconfig itself."""

    def __init__(self, token: str) -> None:
        self._bearer = f"Bearer {token}"

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        request.headers["Authorization"] = self._bearer
        yield request


class TokenFile(httpx2.Auth):
    """A token that others replace on disk. On a 401 the request is sent once more if the file has changed since."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = self._read()
        request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == _UNAUTHORIZED and (token := self._read()) != used:
            request.headers["Authorization"] = f"Bearer {token}"
            yield request

    def _read(self) -> str:
        try:
            return self._path.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise Unauthorized(f"The token file {self._path.name} cannot be read.") from error


class CommandToken(httpx2.Auth):
    """A token that an allow-listed command prints; kept until the API refuses it."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._token: str | None = None
        self._lock = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = await self._fresh(None)
        request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            request.headers["Authorization"] = f"Bearer {await self._fresh(used)}"
            yield request

    async def _fresh(self, refused: str | None) -> str:
        async with self._lock:
            if self._token is None or self._token == refused:
                self._token = await _ask(self._command)
            return self._token


async def _ask(command: Command) -> str:
    name = command.argv[0]
    info = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {key: os.environ[key] for key in _COMMAND_ENVIRONMENT if key in os.environ}
    environment |= dict(command.env) | {"KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise Unauthorized(f"The credential command {name} cannot be started.") from error
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), _COMMAND_LIMIT)
    except TimeoutError as error:
        raise Unauthorized(f"The credential command {name} did not answer within {_COMMAND_LIMIT} seconds.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = orjson.loads(printed)
    except orjson.JSONDecodeError:
        answer = None
    token = text(mapping(answer, "status"), "token", _TOKEN_CHARS) if isinstance(answer, dict) else ""
    if not token:
        raise Unauthorized(f"The credential command {name} gave no token.")
    return token


def auth(connection: Connection) -> httpx2.Auth | None:
    """What adds our credentials to each request; None where a client certificate, or nothing, is enough."""
    if connection.token_file:
        return TokenFile(connection.token_file)
    if connection.token:
        return FixedToken(connection.token)
    return CommandToken(connection.command) if connection.command else None


def tls(connection: Connection) -> ssl.SSLContext:
    """The TLS settings of a connection. Raises KubeconfigRefused for certificates that OpenSSL does not take."""
    ca, cert, key = (encoded(pem) if pem else None for pem in (connection.ca, connection.client_cert, connection.client_key))
    cluster = Cluster(server=connection.server, certificate_auth_data=ca)
    user = User(client_cert_data=cert, client_key_data=key)
    try:
        return verify_cluster(cluster, user, abs_file=lambda name: name, trust_env=False)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise KubeconfigRefused("A certificate or key of this kubeconfig is broken, or they do not belong together.") from error
