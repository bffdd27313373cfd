"""`manage.py grant ISSUER SUBJECT ROLE`: the first administrator, before anybody could give a role on a page."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from console.accounts import identities
from console.accounts.models import Project, Role
from console.accounts.oidc import config
from console.accounts.oidc.refusal import Refused
from console.accounts.services import grant

ROLES = {role.label: role for role in Role}


class Command(BaseCommand):
    help = "Give a person a role, in one project or in all. The person need not have signed in yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("issuer", help="the identity provider, as in HALFTIDE_OIDC_ISSUER")
        parser.add_argument("subject", help="the person's `sub` there")
        parser.add_argument("role", choices=sorted(ROLES))
        parser.add_argument("--project", help="the slug of one project; without it the role holds in all")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's shape)
        try:
            provider = config.by_issuer(options["issuer"])
        except Refused as error:
            known = ", ".join(config.of_app(app).issuer for app in config.apps()) or "none"
            raise CommandError(f"No identity provider has this issuer. Set up: {known}.") from error
        project = Project.objects.filter(slug=options["project"]).first()
        if options["project"] and project is None:
            raise CommandError(f"There is no project with the slug {options['project']}.")
        account = identities.find_or_create(provider.id, provider.issuer, options["subject"], {})
        grant(None, account.user, project, ROLES[options["role"]], timezone.now())
        where = f"in {project.name}" if project else "everywhere"
        self.stdout.write(f"{account.user.get_username()} is {options['role']} {where}.")
