"""What a control plane reads beside its keys: who its tokens belong to, what it writes down, and the kubeconfigs."""

import base64
import csv
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import yaml

# name of the kubeconfig: (user, uid, groups)
PEOPLE = {
    "admin": ("admin", "1", "system:masters"),
    "scheduler": ("system:kube-scheduler", "2", ""),
    "controllers": ("system:kube-controller-manager", "3", ""),
}

# Every answered request, by whom; of what tells a pod to end also the body, since grace and preconditions stand in it.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Request", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/eviction"]}]},
        {"level": "Request", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods", "nodes"]}]},
        {"level": "Metadata"},
    ],
}


def write(home: Path, port: int) -> None:
    """Write tokens, audit policy and one kubeconfig for each of `PEOPLE`. Tokens of an earlier start are kept."""
    tokens = home / "tokens.csv"
    if not tokens.exists():
        tokens.touch(mode=0o600)
        with tokens.open("w", newline="") as file:
            csv.writer(file).writerows([secrets.token_urlsafe(24), *person] for person in PEOPLE.values())
    with tokens.open(newline="") as file:
        known = {row[1]: row[0] for row in csv.reader(file)}
    (home / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
    authority = (home / "ca.crt").read_bytes()
    for name, (user, *_) in PEOPLE.items():
        file_of(home, name).touch(mode=0o600)
        file_of(home, name).write_text(kubeconfig(f"https://127.0.0.1:{port}", authority, known[user]))


def port(home: Path) -> int | None:
    """The port of an earlier start, if there was one."""
    try:
        text = file_of(home, "admin").read_text()
    except FileNotFoundError:
        return None
    return urlsplit(str(yaml.safe_load(text)["clusters"][0]["cluster"]["server"])).port


def file_of(home: Path, name: str) -> Path:
    """The kubeconfig of one of `PEOPLE`."""
    return home / f"{name}.kubeconfig"


def kubeconfig(server: str, authority: bytes, token: str, name: str = "halftide") -> str:
    """A kubeconfig with one context, whole in itself: it names no other file."""
    data = base64.b64encode(authority).decode()
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": data}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        },
        sort_keys=False,
    )
