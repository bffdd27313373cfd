"""Why a token or a sign-in was refused: one sentence for the person, and one for the administrator who has to fix it."""

from console.http import NotSignedIn, Unavailable


class Refused(NotSignedIn):
    """A token that must not be believed. `look_at` says what an administrator should compare; it never repeats the token."""

    def __init__(self, message: str, look_at: str) -> None:
        super().__init__(message, code="token_refused")
        self.look_at = look_at


class ProviderDown(Unavailable):
    """The provider did not answer, or answered with something else than it should. Nobody's rights change by that."""

    def __init__(self, message: str, look_at: str) -> None:
        super().__init__(message, code="provider_unreachable")
        self.look_at = look_at
