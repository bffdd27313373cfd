"""What to connect to, out of a kubeconfig that somebody pasted.

A kubeconfig is a program as much as an address: it can name a command to run and files to read, and ours is read on a server that
holds other people's secrets. So commands are refused unless they are allow-listed, files of the machine are refused unless the
text is our own operator's, and a connection without encryption goes to this machine only.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from console.kube.errors import KubeconfigRefused
from console.kube.fields import NOTHING, Json, mapping, mappings, texts

# Kubernetes itself keeps kubeconfigs well below this; a larger text is no kubeconfig and not worth parsing.
_LARGEST_TEXT = 512 * 1024

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_UNUSED = {
    "auth-provider": "an auth-provider, which Kubernetes has given up; use a token or a client certificate",
    "username": "a password, which Kubernetes no longer takes; use a token or a client certificate",
    "password": "a password, which Kubernetes no longer takes; use a token or a client certificate",
    "as": "impersonation (as), which is not supported",
}


@dataclass(frozen=True, slots=True)
class Command:
    """An allow-listed credential command of a kubeconfig (client-go's exec credential plugin)."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    api_version: str


@dataclass(frozen=True, slots=True)
class Connection:
    """Where an API server is and how to be known there. Secrets are left out of its repr, so that a log cannot show them."""

    server: str
    ca: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = field(default=None, repr=False)
    command: Command | None = field(default=None, repr=False)
    read_only: bool = False  # ours, not the kubeconfig's: whoever opens it can send no write, whatever they try

    def to_kubeconfig(self, name: str) -> str:
        """A kubeconfig with one context called `name`, everything in it embedded except a token file."""
        cluster: dict[str, str] = {"server": self.server}
        if self.ca:
            cluster["certificate-authority-data"] = encoded(self.ca)
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": name, "cluster": cluster}],
                "users": [{"name": name, "user": self._user()}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "current-context": name,
            },
            sort_keys=False,
        )

    def _user(self) -> dict[str, object]:
        user: dict[str, object] = {}
        if self.token:
            user["token"] = self.token
        if self.token_file:
            user["tokenFile"] = self.token_file
        if self.client_cert and self.client_key:
            user["client-certificate-data"] = encoded(self.client_cert)
            user["client-key-data"] = encoded(self.client_key)
        if self.command:
            user["exec"] = {
                "apiVersion": self.command.api_version,
                "command": self.command.argv[0],
                "args": list(self.command.argv[1:]),
                "env": [{"name": name, "value": value} for name, value in self.command.env],
                "interactiveMode": "Never",
            }
        return user


def in_cluster(host: str, port: str, account: Path = _SERVICE_ACCOUNT) -> Connection:
    """The connection of a pod to its own cluster; the token is read anew from its file as Kubernetes rotates it."""
    name = f"[{host}]" if ":" in host else host
    return Connection(f"https://{name}:{port}", ca=_file(account / "ca.crt"), token_file=str(account / "token"))


def parse(
    text: str,
    *,
    context: str | None = None,
    allowed_commands: Collection[str] = frozenset(),
    files: bool = False,
) -> Connection:
    """The connection of `context` (else of the current one). Raises KubeconfigRefused with a sentence.

    `files` lets it name files by absolute path: only for a kubeconfig that the operator of this machine wrote.
    """
    config = _loaded(text)
    wanted = context if context is not None else _text(config, "current-context")
    if not wanted:
        raise KubeconfigRefused("This kubeconfig names no current context. Choose one of its contexts.")
    chosen = _entry(config, "contexts", "context", wanted)
    cluster = _entry(config, "clusters", "cluster", _text(chosen, "cluster"))
    user = _entry(config, "users", "user", _text(chosen, "user")) if chosen.get("user") else NOTHING
    for key, why in _UNUSED.items():
        if user.get(key):
            raise KubeconfigRefused(f"This kubeconfig uses {why}.")
    for key in ("proxy-url", "tls-server-name"):
        if cluster.get(key):
            raise KubeconfigRefused(f"This kubeconfig uses {key}, which is not supported.")
    cert, key_text = _pem(user, "client-certificate", files), _pem(user, "client-key", files)
    if bool(cert) != bool(key_text):
        raise KubeconfigRefused("This kubeconfig has only one half of a client certificate and its key.")
    return Connection(
        server=_server(cluster),
        ca=_pem(cluster, "certificate-authority", files),
        token=_token(user),
        token_file=_token_file(user, files),
        client_cert=cert,
        client_key=key_text,
        command=_command(user, allowed_commands, files),
    )


def _loaded(text: str) -> Json:
    if len(text) > _LARGEST_TEXT:
        raise KubeconfigRefused("This is too long to be a kubeconfig.")
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigRefused("This is no YAML, so no kubeconfig.") from error
    if not isinstance(config, Mapping) or not isinstance(config.get("clusters"), list):
        raise KubeconfigRefused("This is no kubeconfig: it lists no clusters.")
    return config


def _text(holder: Json, key: str) -> str:
    # Never str() or repr() of what YAML gave: aliases of aliases are small to load and endless to print.
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _entry(config: Json, section: str, key: str, name: str) -> Json:
    for entry in mappings(config, section):
        if _text(entry, "name") == name and isinstance(entry.get(key), Mapping):
            return mapping(entry, key)
    raise KubeconfigRefused(f"This kubeconfig has no {key} named {name!r:.100}.")


def _server(cluster: Json) -> str:
    try:
        parts = urlsplit(_text(cluster, "server"))
        host = parts.hostname if parts.port != 0 else None
    except ValueError as error:
        raise KubeconfigRefused("The server of this kubeconfig is no http or https address.") from error
    if not host or parts.scheme not in ("http", "https"):
        raise KubeconfigRefused("The server of this kubeconfig is no http or https address.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise KubeconfigRefused("The server address of this kubeconfig holds more than a host, a port and a path.")
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigRefused("This kubeconfig skips TLS verification. Embed the cluster's certificate authority instead.")
    if parts.scheme == "http" and not _loopback(host):
        raise KubeconfigRefused("This kubeconfig talks plain http to another machine. Use https.")
    return parts.geturl().rstrip("/")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pem(holder: Json, key: str, files: bool) -> str | None:
    data, path = holder.get(f"{key}-data"), holder.get(key)
    if data:
        try:
            return base64.b64decode("".join(_text(holder, f"{key}-data").split()), validate=True).decode("ascii")
        except (binascii.Error, ValueError) as error:
            raise KubeconfigRefused(f"{key}-data of this kubeconfig is no base64 of a PEM text.") from error
    return _file(_path(path, key, files)) if path else None


def _path(path: object, key: str, files: bool) -> Path:
    if not files:
        raise KubeconfigRefused(
            f"{key} of this kubeconfig is a file of the machine it was made on. "
            "Embed it: kubectl config view --raw --flatten --minify."
        )
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise KubeconfigRefused(f"{key} of this kubeconfig is no absolute path.")
    return Path(path)


def _file(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        raise KubeconfigRefused(f"{path.name}, which this kubeconfig names, cannot be read.") from error


def _token(user: Json) -> str | None:
    token = user.get("token")
    if token is None:
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise KubeconfigRefused("The token of this kubeconfig is no plain text.")
    return token.strip() or None


def _token_file(user: Json, files: bool) -> str | None:
    path = user.get("tokenFile")
    return str(_path(path, "tokenFile", files)) if path else None


def _command(user: Json, allowed: Collection[str], files: bool) -> Command | None:
    if not user.get("exec"):
        return None
    plugin = mapping(user, "exec")
    name = _text(plugin, "command")
    if not name or name not in allowed:
        raise KubeconfigRefused(
            f"This kubeconfig would run the command {name!r:.100} on our server. Use a token or a client certificate, "
            "or have an administrator allow that command."
        )
    if plugin.get("env") and not files:
        # An environment (LD_PRELOAD, PATH) turns any allowed command into any command.
        raise KubeconfigRefused(f"This kubeconfig sets an environment for {name!r:.100}, which a pasted one may not.")
    return Command(
        argv=(name, *texts(plugin, "args")),
        env=tuple((_text(pair, "name"), _text(pair, "value")) for pair in mappings(plugin, "env")),
        api_version=_text(plugin, "apiVersion") or "client.authentication.k8s.io/v1",
    )


def encoded(pem: str) -> str:
    """A PEM text the way a kubeconfig embeds it."""
    return base64.b64encode(pem.encode()).decode("ascii")
