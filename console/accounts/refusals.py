"""The one page for every sign-in that failed: what happened, what to do, and what an administrator should look at."""

import logging

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.accounts.changes import audit

log = logging.getLogger(__name__)


def refuse(request: HttpRequest, message: str, look_at: str, status: int = 401, trail: bool = True) -> HttpResponse:
    """Render it, and leave a row in the trail, where an administrator finds it by the person's clock.

    No row (`trail` off) for what anybody can send as often as they like: an answer to a sign-in that was never begun.
    """
    log.warning("sign_in_refused", extra={"why": message, "look_at": look_at, "path": request.path})
    if trail:
        with transaction.atomic():
            audit(request.actor, "session.refused", message, after={"look_at": look_at})  # type: ignore[attr-defined]
    found = {"message": message, "look_at": look_at, "trail": trail}
    return render(request, "accounts/refused.html", found, status=status)
