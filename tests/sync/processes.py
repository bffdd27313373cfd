"""The watch as a process of its own, on the database of the test."""

import os
import subprocess
import sys
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from console.env import ROOT


class Watchers:
    """`manage.py watch` processes on the test's own database."""

    def __init__(self) -> None:
        url = urlsplit(os.environ["DATABASE_URL"])
        name = f"/{connection.settings_dict['NAME']}"
        secrets = {"HALFTIDE_SECRET_KEY": settings.SECRET_KEY, "HALFTIDE_ENCRYPTION_KEY": settings.ENCRYPTION_KEY}
        self._environment = {**os.environ, **secrets, "DATABASE_URL": url._replace(path=name).geturl()}
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "manage.py", "watch"], cwd=ROOT, env=self._environment)
        self._running.append(process)
        return process

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
