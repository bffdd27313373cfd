"""`seed_idp`: the demo's people and groups, the console as its client, and a signing key. Can run at every start."""

import os
from functools import cache
from typing import Any

from allauth.account.models import EmailAddress
from allauth.idp.oidc.models import Client
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from console.idp import environment
from console.idp.people import CLIENT_ID, PASSWORD, PEOPLE, Person

KEY_BITS = 2048  # what providers use today
SCOPES = ["openid", "profile", "email", "offline_access", "groups"]


class Command(BaseCommand):
    help = "Make the demo identity provider's people, client and key; keeps what was changed by hand."
    requires_system_checks = ()  # they load every page, and a start waits for this

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--migrate", action="store_true", help="Bring the tables up to date first.")

    def handle(self, *_args: Any, migrate: bool = False, **_options: Any) -> None:
        if migrate:
            call_command("migrate", verbosity=0)
        make_key()
        with transaction.atomic():
            for person in PEOPLE:
                make_person(person)
            make_client()


def make_key() -> None:
    """Once; a new key would make every open session's tokens unreadable. Only its owner may read it."""
    if environment.KEY_FILE.exists():
        return
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    draft = environment.KEY_FILE.with_name(f"{environment.KEY_FILE.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(pem)
    draft.replace(environment.KEY_FILE)


def make_person(person: Person) -> None:
    """Groups are given once, with the person: taking somebody out of one by hand must survive the next start."""
    first, _, last = person.name.partition(" ")
    user, made = get_user_model().objects.get_or_create(
        username=person.username, defaults={"first_name": first, "last_name": last, "email": person.email}
    )
    if not made:
        return
    user.password = hashed_password()
    user.save(update_fields=["password"])
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in person.groups])
    EmailAddress.objects.create(user=user, email=person.email, verified=True, primary=True)


@cache
def hashed_password() -> str:
    """Once for all of them: it is the same one, everybody knows it, and hashing it takes a third of a second."""
    return make_password(PASSWORD)


def make_client() -> None:
    """Written anew each time, because the console's address and secret are environment."""
    client = Client.objects.filter(pk=CLIENT_ID).first() or Client(pk=CLIENT_ID)
    client.name = "Halftide"
    client.skip_consent = True
    client.set_scopes(SCOPES)
    client.grant_types = "authorization_code\nrefresh_token"
    client.set_response_types([Client.ResponseType.CODE])
    client.set_redirect_uris([f"{environment.CONSOLE_URL}/oidc/demo/login/callback/"])
    client.set_post_logout_redirect_uris([f"{environment.CONSOLE_URL}/signed-out/"])
    client.set_secret(environment.CLIENT_SECRET)
    client.save()
