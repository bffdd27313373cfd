"""The web process: Django for HTTP, the feed for sockets."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django = get_asgi_application()

import console.celery  # noqa: E402  (so that a request that wakes a worker knows the broker)
import console.urls  # noqa: E402, F401  (else all pages are loaded for whoever asks first)
from console.feed.routing import sockets  # noqa: E402  (models may be imported only once Django stands)

application = ProtocolTypeRouter({"http": django, "websocket": URLRouter(sockets)})
