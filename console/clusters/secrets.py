"""Kubeconfigs at rest: encrypted with a key from the environment, opened only to connect or to hand out."""

import base64
import hashlib
from dataclasses import replace

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from console.clusters.models import Cluster
from console.http import Unavailable
from console.kube import kubeconfig
from console.kube.kubeconfig import Connection


def _box() -> Fernet:
    """Fernet wants 32 bytes; the setting may be any secret of any length."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(settings.ENCRYPTION_KEY.encode()).digest()))


def seal(text: str) -> bytes:
    return _box().encrypt(text.encode())


def opened(cluster: Cluster) -> str:
    """The kubeconfig as text. Raises Unavailable where there is none yet, or the key has changed since it was stored."""
    if not cluster.kubeconfig:
        raise Unavailable(f"{cluster.name} has no Kubernetes API yet: it is still being created.")
    try:
        return _box().decrypt(bytes(cluster.kubeconfig)).decode()
    except InvalidToken:
        raise Unavailable(
            f"The stored kubeconfig of {cluster.name} cannot be read: HALFTIDE_ENCRYPTION_KEY is not the one it was stored with."
        ) from None


def connection(cluster: Cluster) -> Connection:
    """How to reach the cluster's API, in *observe* for reading only. Raises Unavailable, or kube's KubeconfigRefused.

    Every way to Kubernetes begins here, so here alone it is made sure that what is observed is never written to (DESIGN 6).
    """
    found = kubeconfig.parse(opened(cluster), allowed_commands=settings.KUBECONFIG_COMMANDS)
    return replace(found, read_only=cluster.mode == Cluster.Mode.OBSERVE)
