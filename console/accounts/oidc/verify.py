"""The one function that decides whether a token is believed: ID tokens in the browser's sign-in and bearer tokens at the API.

Both doors use it, because the libraries behind them check different halves: allauth skips the signature of an ID token it
fetched itself and sends no nonce; mozilla-django-oidc checks neither issuer, audience nor expiry.
"""

import json
from collections.abc import Mapping
from typing import Any

import jwt
from jwt.types import Options

from console.accounts.oidc.config import Provider
from console.accounts.oidc.discovery import Published
from console.accounts.oidc.refusal import Refused

LEEWAY = 60  # seconds two clocks may be apart; SecObserve/SecObserve#3775 saw 11
FAR_FUTURE = 10**11  # seconds; beyond it a number is no time, and would not fit a float either
SUBJECT_LIMIT = 255  # OpenID Connect Core 2: `sub` must not be longer

NUL = b"\\u0000"  # as JSON writes it
# Times and names are checked by us, against an instant that is given to us and with a sentence for each.
SIGNATURE_ONLY: Options = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}

Claims = Mapping[str, Any]


def verify(token: str, provider: Provider, published: Published, now: float, nonce: str | None = None) -> Claims:
    """The claims of a token that may be believed. `nonce` is what the sign-in sent; None where there was no sign-in.

    Raises Refused, or ProviderDown where the keys cannot be had.
    """
    claims = _signed(token, provider, published)
    _check_issuer(claims, provider)
    _check_audience(claims, provider)
    _check_times(claims, now)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LIMIT:
        raise Refused("The token does not say whom it is about.", "The provider must put a text of 1 to 255 letters into `sub`.")
    require_storable(claims)
    if nonce is not None and claims.get("nonce") != nonce:
        raise Refused(
            "This answer belongs to another sign-in. Start again.",
            "The provider must return the `nonce` it was sent. An answer from another browser has another.",
        )
    return claims


def unverified_issuer(token: str) -> object:
    """Only to choose whose keys to ask. Raises Refused for what is no token at all."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise _unreadable() from error
    return claims.get("iss")


def require_storable(claims: Claims) -> None:
    """PostgreSQL keeps neither NUL nor half of a surrogate pair; a claim with one would fail later, and elsewhere."""
    try:
        text = json.dumps(claims, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        text = NUL
    if NUL in text:
        raise Refused(
            "The token contains a letter that is none.", "Look for a NUL or a broken emoji in the person's names or groups."
        )


def _signed(token: str, provider: Provider, published: Published) -> Claims:
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise _unreadable() from error
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm != provider.algorithm:
        raise Refused(
            "The token is signed in a way that Halftide does not accept.",
            f"{provider.name} must sign with {provider.algorithm}; this token says {str(algorithm)[:20]}.",
        )
    if str(header.get("typ", "")).lower() == "logout+jwt":
        raise Refused("This token ends sessions; it cannot start one.", "Send an ID token or an access token.")
    for key in published.keys_for(kid if isinstance(kid, str) else None):
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[provider.algorithm],
                options=SIGNATURE_ONLY,
            )
        except (jwt.PyJWTError, TypeError, ValueError):
            continue
        return found
    raise Refused(
        "The token's signature does not fit any key of the identity provider.",
        f"{provider.name} must publish the key {str(kid)[:60]!r} under the `jwks_uri` of {provider.discovery_url}.",
    )


def _unreadable() -> Refused:
    return Refused("This is no token that can be read.", "A token has three parts with dots between them, the first two JSON.")


def _check_issuer(claims: Claims, provider: Provider) -> None:
    if claims.get("iss") != provider.issuer:
        raise Refused(
            "The token comes from another issuer than the one Halftide trusts.",
            f"HALFTIDE_OIDC_ISSUER is {provider.issuer}; the token says {str(claims.get('iss'))[:200]}. "
            "They must be equal letter for letter; with Entra ID, the tenant's id included.",
        )


def _check_audience(claims: Claims, provider: Provider) -> None:
    audience = claims.get("aud")
    many = audience if isinstance(audience, list) else [audience]
    if provider.client_id not in many:
        raise Refused(
            "The token was made for another application.",
            f"Its `aud` must contain HALFTIDE_OIDC_CLIENT_ID, {provider.client_id}.",
        )
    party = claims.get("azp")
    if (party is None and len(many) > 1) or (party is not None and party != provider.client_id):
        raise Refused(
            "The token was handed to another application.",
            f"Its `azp` must be HALFTIDE_OIDC_CLIENT_ID, {provider.client_id}, and must be there when `aud` names several.",
        )


def _check_times(claims: Claims, now: float) -> None:
    issued, expires = _instant(claims, "iat"), _instant(claims, "exp")
    begins = _instant(claims, "nbf") if "nbf" in claims else issued
    ahead = max(issued, begins) - now
    if ahead > LEEWAY:
        raise Refused(
            "The token is from the future.",
            f"The provider's clock is {ahead:.0f} s ahead of Halftide's (accepted: {LEEWAY} s). Let both follow a time server.",
        )
    if now - expires >= LEEWAY:
        raise Refused(
            "The token has expired. Sign in again.",
            f"It expired {now - expires:.0f} s ago by Halftide's clock. If it is new, let both clocks follow a time server.",
        )


def _instant(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < FAR_FUTURE:
        raise Refused(f"The token lacks `{name}`.", f"The provider must put `{name}`, in seconds since 1970, into its tokens.")
    return float(value)
