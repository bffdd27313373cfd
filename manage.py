#!/usr/bin/env python
"""Django's commands. Beside a running `make up` it finds that installation's settings by itself (`console.env`)."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

from django.core.management import execute_from_command_line

import console.celery  # noqa: F401  (so that a command that wakes a worker knows the broker)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
