"""The provider's process."""

import os

from django.core.asgi import get_asgi_application

# Set, not defaulted: beside the console's own processes the variable names the console's settings.
os.environ["DJANGO_SETTINGS_MODULE"] = "console.idp.settings"

application = get_asgi_application()
