"""Static files of another version: a page that was open across an update asks for them under the old one's name."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_safe

from console.accounts.access import public
from console.http import NotFound


@public
@require_safe
def static_file(_request: HttpRequest, version: str, path: str) -> HttpResponse:
    """What is there was answered before any view. The newer file is nearer to right than none; no browser keeps the redirect."""
    if version == settings.STATIC_VERSION:
        raise NotFound("There is no such file.")
    return HttpResponseRedirect(f"{settings.STATIC_URL}{path}")
