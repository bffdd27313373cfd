"""How a request says who we are, and how the connection is encrypted.

A bound service-account token ends after about an hour and its file is replaced; a process that read it once is locked out for
ever. So a token file is read for each request (tens of microseconds), and a command's token is asked for anew on a 401.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Protocol

import orjson
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import Cluster, User

from console.kube.errors import KubeconfigRefused, Unauthorized
from console.kube.fields import mapping, text
from console.kube.kubeconfig import Command, Connection, encoded

# A credential command that has not answered by then will not; seconds.
_COMMAND_LIMIT = 20

# All of our environment that a credential command gets: no database address, no key of ours.
_COMMAND_ENVIRONMENT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY")

# A JWT is a few KB; Azure's with many groups are the longest.
_TOKEN_CHARS = 64 * 1024


class Credentials(Protocol):
    """Where the bearer token of a request comes from."""

    async def token(self, refused: str | None) -> str | None:
        """The token to send. `refused` is the one that the API has just answered with 401; None where there is no newer one."""


class FixedToken:
    """A token out of the kubeconfig itself; none where a client certificate, or nothing, is enough."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    async def token(self, refused: str | None) -> str | None:
        return None if refused else self._token


class TokenFile:
    """A token that others replace on disk."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def token(self, refused: str | None) -> str | None:
        found = self._read()
        return None if found == refused else found

    def _read(self) -> str:
        try:
            return self._path.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise Unauthorized(f"The token file {self._path.name} cannot be read.") from error


class CommandToken:
    """A token that an allow-listed command prints; kept until the API refuses it."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._token: str | None = None
        self._lock = asyncio.Lock()

    async def token(self, refused: str | None) -> str | None:
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


def credentials(connection: Connection) -> Credentials:
    """What a connection signs its requests with."""
    if connection.token_file:
        return TokenFile(connection.token_file)
    return CommandToken(connection.command) if connection.command and not connection.token else FixedToken(connection.token)


def tls(connection: Connection) -> ssl.SSLContext:
    """The TLS settings of a connection. Raises KubeconfigRefused for certificates that OpenSSL does not take."""
    ca, cert, key = (encoded(pem) if pem else None for pem in (connection.ca, connection.client_cert, connection.client_key))
    cluster = Cluster(server=connection.server, certificate_auth_data=ca)
    user = User(client_cert_data=cert, client_key_data=key)
    try:
        return verify_cluster(cluster, user, abs_file=lambda name: name, trust_env=False)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise KubeconfigRefused("A certificate or key of this kubeconfig is broken, or they do not belong together.") from error
