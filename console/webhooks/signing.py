"""The signature by which a receiver knows that a message is Halftide's, and fresh. Pure.

`Halftide-Signature: t=<unix time>,v1=<hex HMAC-SHA256 of "t.body">`; for a day after a rotation there are two `v1`, one a secret.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

PREFIX = "htwh_"
SIGNATURE, DELIVERY = "Halftide-Signature", "Halftide-Delivery"


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def signature(keys: Iterable[str], at: datetime, body: bytes) -> str:
    """The header's value for a body sent at an instant."""
    moment = int(at.timestamp())
    signed = f"{moment}.".encode() + body
    parts = [f"v1={hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()}" for key in keys]
    return ",".join([f"t={moment}", *parts])
