"""`manage.py connect NAME < kubeconfig`: a cluster that is there already, or another way into one that is known.

By whoever runs the installation, on its own machine: a kubeconfig is a key, and on no page it would be as safe as in a pipe.
"""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.accounts.models import Project
from console.capacity.connecting import connect, reconnect
from console.clusters.models import Cluster
from console.http import DomainError


class Command(BaseCommand):
    stealth_options = ("stdin",)
    help = "Read a kubeconfig from standard input and observe the cluster it leads to. A known name gets this way in from now on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the cluster is called here")
        parser.add_argument("--project", required=True, help="the slug of its project")
        parser.add_argument("--region", default="", help="of a new one")
        parser.add_argument("--gpu-type", default="", help="of a new one")

    def handle(self, *_: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project with the slug {options['project']}.")
        text = (options.get("stdin") or sys.stdin).read()
        known = Cluster.objects.filter(project=project, name=options["name"]).first()
        try:
            if known is not None:
                reconnect(known, text)
                self.stdout.write(f"{known.name} is read with this kubeconfig from now on.")
                return
            made = connect(project, options["name"], text, options["region"], options["gpu_type"])
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{made.name} is connected and only observed. An administrator lets Halftide act on its page.")
