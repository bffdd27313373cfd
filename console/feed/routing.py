"""Which socket answers which address. The browser's own cookie signs it in; other origins are refused."""

from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import CookieMiddleware
from django.urls import path

from console.feed.consumer import LiveConsumer

sockets = [path("live/<uuid:cluster_id>/", AllowedHostsOriginValidator(CookieMiddleware(LiveConsumer.as_asgi())))]
