"""What can go wrong between us and a Kubernetes API, in our own words.

The library underneath can be replaced, so its exceptions never leave this room. Each error carries `sentence`: what a person on
a page may read, without a stack, a token or an address of ours.
"""

from __future__ import annotations


class KubeError(Exception):
    """Anything an API server did, or failed to do. `sentence` says it to a person."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Unreachable(KubeError):
    """No usable answer: no connection, silence past the time-out, TLS refused, or a 5xx. Worth trying again later."""


class Broken(Unreachable):
    """It answered, with a 5xx: its own trouble, or that of a webhook it had to ask."""


class Unauthorized(KubeError):
    """401: the API does not know us (a token that ended, a certificate of another authority)."""


class Forbidden(KubeError):
    """403: it knows us and says no. What we cannot see must not be taken for absent."""


class NotFound(KubeError):
    """404: no such object (or no such API)."""


class Conflict(KubeError):
    """409: another uid or another version than the one we meant."""


class Expired(KubeError):
    """410: the version we continued from is forgotten. List again."""


class Throttled(KubeError):
    """429 of the API's own flow control, longer than we were willing to wait. `retry_after` in seconds."""

    def __init__(self, sentence: str, retry_after: float) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class Refused(KubeError):
    """The API read the request and will not have it: 400, 422 and every other 4xx."""


class Garbage(KubeError):
    """Bytes that are no Kubernetes JSON: a proxy's page, half an object, an object without identity."""


class ReadOnly(KubeError):
    """A write on a connection that is for reading only. Nothing was sent."""


class Stale(KubeError):
    """A list older than what we have already seen. Nothing may be removed because of it."""


class KubeconfigRefused(KubeError):
    """A kubeconfig we will not connect with; the sentence says which part of it and why."""
