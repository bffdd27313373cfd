"""The one page for every sign-in that failed: what happened, what to do, and what an administrator should look at."""

import logging

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.accounts.changes import audit

log = logging.getLogger(__name__)


def refuse(request: HttpRequest, message: str, look_at: str, status: int = 401) -> HttpResponse:
    """Render it, and leave a row in the trail, where an administrator finds it by the person's clock."""
    log.warning("sign_in_refused", extra={"why": message, "look_at": look_at, "path": request.path})
    with transaction.atomic():
        audit(request.actor, "session.refused", message, after={"look_at": look_at})  # type: ignore[attr-defined]
    return render(request, "accounts/refused.html", {"message": message, "look_at": look_at}, status=status)
