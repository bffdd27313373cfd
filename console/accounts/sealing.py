"""Tokens at rest: encrypted with the same key as kubeconfigs, because a refresh token acts for a person."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


def _box() -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(settings.ENCRYPTION_KEY.encode()).digest()))


def seal(text: str) -> str:
    return _box().encrypt(text.encode()).decode() if text else ""


def opened(sealed: str) -> str:
    """Empty where there is nothing, or the key has changed since: then the provider is simply not asked."""
    try:
        return _box().decrypt(sealed.encode()).decode() if sealed else ""
    except InvalidToken:
        return ""
