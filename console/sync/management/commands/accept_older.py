"""`manage.py accept_older NAME`: a person's word that a cluster was restored from a backup, so that its older picture is true."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.clusters.models import Cluster, KindState


class Command(BaseCommand):
    help = "Believe a cluster that answers with an older picture than was seen before, because it was restored from a backup."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="name or id of the cluster")

    def handle(self, *_: Any, **options: Any) -> None:
        wanted = str(options["cluster"])
        found = [cluster for cluster in Cluster.objects.all() if wanted in (cluster.name, str(cluster.pk))]
        if len(found) != 1:
            raise CommandError(f"{len(found)} clusters are called {wanted}. Give an id.")
        KindState.objects.filter(cluster=found[0]).update(resource_version="")
        self.stdout.write(f"{found[0].name}: restart the watchers now; they will list it and believe what they see.")
