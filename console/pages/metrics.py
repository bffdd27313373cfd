"""`/metrics`: with a token from anywhere, without one from this machine only."""

from ipaddress import ip_address
from secrets import compare_digest

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from console.accounts.access import public
from console.accounts.middleware import address_of
from console.http import Forbidden
from console.pages.measures import rows_now


@public
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not may_read(request):
        raise Forbidden("Metrics are for this machine, or for who sends the token of HALFTIDE_METRICS_TOKEN as a bearer token.")
    rows = CollectorRegistry(auto_describe=False)
    rows.register(rows_now())
    return HttpResponse(generate_latest(REGISTRY) + generate_latest(rows), content_type=CONTENT_TYPE_LATEST)


def may_read(request: HttpRequest) -> bool:
    """Where a token is set it is asked for everywhere. Without one, what a proxy passed on is not from this machine."""
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return compare_digest(given, f"Bearer {settings.METRICS_TOKEN}".encode())
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    address = address_of(request)
    return address is None or ip_address(address).is_loopback
